package suspend

import "iter"

// pulled is the place where the caller of next leaves its binding for the body of the sequence.
type pulled struct{ bound *binding }

// Pull is iter.Pull, except that seq runs under the binding of whoever calls next or stop: a Suspend in it
// suspends the calling task. Under plain iter.Pull the body is a goroutine of its own that is bound to
// nothing, and a Suspend in it blocks whatever runs it, as a channel would. The rules of iter.Pull hold: a
// call of next while another has not returned is an error, also if that other is suspended.
func Pull[V any](seq iter.Seq[V]) (next func() (V, bool), stop func()) {
	p := &pulled{}
	pull, end := iter.Pull(func(yield func(V) bool) {
		rebind(&binding{via: p}, func() { seq(yield) })
	})
	next = func() (V, bool) {
		p.bound = current()
		defer func() { p.bound = nil }()
		return pull()
	}
	stop = func() {
		p.bound = current()
		defer func() { p.bound = nil }()
		end()
	}
	return next, stop
}
