package suspend

import (
	"iter"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/ledger"
)

// Pull is iter.Pull, except that seq runs under the binding of the caller of next or stop: a Suspend in it suspends the
// calling task. Under plain iter.Pull the body runs on a goroutine that is bound to nothing, and a Suspend in it
// blocks its caller, as a channel does.
//
// While a call of next or stop has not returned, also since it is suspended, another call of either panics, and changes
// nothing. What such a next waits for is to be cancelled by a context of the sequence.
func Pull[V any](seq iter.Seq[V]) (next func() (V, bool), stop func()) {
	p := &pulled{}
	pull, end := iter.Pull(func(yield func(V) bool) {
		p.id = gid.Get()
		p.lend(p.by)
		rebind(&binding{via: p}, func() { seq(yield) })
	})
	next = func() (V, bool) {
		defer p.enter()()
		return pull()
	}
	stop = func() {
		defer p.enter()()
		end()
	}
	return next, stop
}

// enter lends the binding of the caller to the body, until leave.
func (p *pulled) enter() (leave func()) {
	if !p.busy.CompareAndSwap(false, true) {
		panic("suspend: next or stop of Pull called while another call has not returned")
	}
	p.bound = current()
	if ledger.On() {
		p.by = ledger.ID()
		p.lend(p.by)
	}
	return p.leave
}

// lend records that the body runs for the caller on goroutine by, until by is 0.
func (p *pulled) lend(by int64) {
	if p.id != 0 && ledger.On() {
		ledger.Lend(p.id, by)
	}
}

func (p *pulled) leave() {
	p.bound = nil
	p.lend(0)
	p.busy.Store(false)
}
