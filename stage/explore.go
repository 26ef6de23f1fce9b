//go:build explore

package stage

// Explored is for the model checker: the workers of p linger as on goroutines, and p uses the timers of its scheduler.
func Explored(p *Pool) *Pool {
	p.linger, p.timers = true, p.on
	return p
}
