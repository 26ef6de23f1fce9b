//go:build explore

package actor

import "github.com/braidgo/braid/suspend"

// goroutine calls f in a new task of the model checker's run, or on a new goroutine outside a run.
func goroutine(f func()) {
	if suspend.Here().Go(f) != nil {
		go f()
	}
}

// Requests returns the number of requests that the inbox keeps as their home, for the model checker.
func (in *Inbox[M]) Requests() (n int) {
	l := &in.life
	l.guard.Lock()
	defer l.guard.Unlock()
	for e := l.calls; e != nil && (n == 0 || e != l.calls); e = e.next {
		n++
	}
	return n
}
