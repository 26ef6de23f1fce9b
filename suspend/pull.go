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
		at, before, away := here()
		p.body = at
		defer func() { p.body = nil }()
		at.bind(&binding{via: p}, before, away, func() { seq(yield) })
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
	if b := p.bound; b != nil && b.task != nil {
		p.outer, b.via = b.via, p
		if in := p.inner(); in != nil {
			b.passKill(in)
			in.shielded = in.shielded || b.shielded
		}
	}
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
	if b := p.bound; b != nil && b.task != nil {
		if in := p.inner(); in != nil {
			in.passKill(b)
			in.shielded = in.shielded && !b.shielded
		}
		b.via, p.outer = p.outer, nil
	}
	p.bound = nil
	p.lend(0)
	p.busy.Store(false)
}

// inner returns the binding that a Bind in the body has made, or nil if the body uses the binding of its caller.
func (p *pulled) inner() *binding {
	if p.body == nil || p.body.b.task == nil {
		return nil
	}
	return p.body.b
}

// lender returns the binding that a body of a Pull uses, if b is that of such a body, and b otherwise.
func (b *binding) lender() *binding {
	if b != nil && b.task == nil && b.via != nil {
		return b.via.bound
	}
	return b
}
