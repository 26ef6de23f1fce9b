package suspend

import (
	"iter"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/ledger"
)

// Pull is like iter.Pull, except that seq runs under the binding of the goroutine that calls next or stop. A Suspend in seq
// therefore suspends the calling task. With iter.Pull, seq runs on a goroutine that is not bound, and a Suspend in seq blocks the
// caller's goroutine, as a channel operation does.
//
// While a call of next or stop is running or suspended, a further call of next or stop panics and changes nothing. A suspended next
// can be cancelled only by the context with which seq waits.
func Pull[V any](seq iter.Seq[V]) (next func() (V, bool), stop func()) {
	p := &pulled{}
	pull, end := iter.Pull(func(yield func(V) bool) {
		p.id = gid.Get()
		p.lend(p.by)
		rebind(&binding{via: p}, func() { seq(yield) })
	})
	next = func() (V, bool) {
		defer p.borrow()()
		return pull()
	}
	stop = func() {
		defer p.borrow()()
		end()
	}
	return next, stop
}

// borrow lends the caller's binding to the body, until the returned function is called.
func (p *pulled) borrow() (leave func()) {
	if !p.busy.CompareAndSwap(false, true) {
		panic("suspend: next or stop of Pull called while another call has not returned")
	}
	p.bound = current()
	if ledger.On() {
		p.by = ledger.ID()
		p.lend(p.by)
	}
	return p.giveBack
}

// lend records in the ledger that the body runs for the caller whose goroutine has the id by, or for no caller if the id is 0.
func (p *pulled) lend(by int64) {
	if p.id != 0 && ledger.On() {
		ledger.Lend(p.id, by)
	}
}

func (p *pulled) giveBack() {
	p.bound = nil
	p.lend(0)
	p.busy.Store(false)
}
