//go:build explore

package stage

// Explored is for the model checker: the workers of p linger as on goroutines do, and the timers are those of its scheduler.
func Explored(p *Pool) *Pool {
	p.linger, p.timers = true, p.on
	return p
}
