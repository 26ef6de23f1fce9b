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

// Pull2 is to Pull as iter.Pull2 is to iter.Pull.
func Pull2[K, V any](seq iter.Seq2[K, V]) (next func() (K, V, bool), stop func()) {
	type pair struct {
		k K
		v V
	}
	pull, stop := Pull(func(yield func(pair) bool) {
		for k, v := range seq {
			if !yield(pair{k, v}) {
				return
			}
		}
	})
	next = func() (K, V, bool) {
		p, ok := pull()
		return p.k, p.v, ok
	}
	return next, stop
}

// borrow lends the caller's binding to the body, until the returned function is called.
//
// The body may call next of another Pull, whose body calls the yield of p. Then p returns first, and the next caller of p continues in
// the body of the other Pull, which has remained linked to p: only the link between p and its caller changes.
func (p *pulled) borrow() (leave func()) {
	if !p.busy.CompareAndSwap(false, true) {
		panic("suspend: next or stop of Pull called while another call has not returned")
	}
	p.bound = placed()
	b := p.bound.lender()
	if b != nil && b.task != nil {
		if in := p.top(); in != nil {
			b.passKill(in)
		}
	}
	p.lendShield(b != nil && b.shielded())
	p.bound.callBody(p)
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
	p.bound.callBody(nil)
	if b := p.bound.lender(); b != nil && b.task != nil {
		if in := p.top(); in != nil {
			in.passKill(b)
		}
	}
	p.bound = nil
	p.lend(0)
	p.busy.Store(false)
}

// callBody links b, the binding at the caller's place, to the Pull that the caller runs now, or to none. The bindings of Bind(nil, f) and of a
// Ban are shared by many goroutines, and have no link.
func (b *binding) callBody(p *pulled) {
	switch {
	case b == nil:
	case b.task != nil:
		b.via = p
	case b.via != nil:
		b.via.calls = p
	}
}

// top returns the binding that the code at the end of the links from p has, if a Bind in the body of p or of a further Pull has made
// it. Otherwise this code uses the binding of the caller of p, and top returns nil.
func (p *pulled) top() (top *binding) {
	for p != nil && p.body != nil {
		b := p.body.b
		if p = b.via; b.task != nil {
			top = b
		} else if p != nil {
			p = p.calls
		}
	}
	return top
}

// lender returns the binding that a body of a Pull uses, if b belongs to such a body, and b otherwise.
func (b *binding) lender() *binding {
	for b != nil && b.task == nil && b.via != nil {
		b = b.via.bound
	}
	return b
}
