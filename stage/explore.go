//go:build explore

package stage

// Explored prepares p for the model checker: idle workers wait as on plain goroutines, and p uses the timers of its scheduler.
func Explored(p *Pool) *Pool {
	p.linger, p.timers = true, p.on
	return p
}
