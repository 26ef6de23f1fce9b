package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/suspend"
)

// Chan is the interface of an object checked with Chans.
type Chan interface {
	Send(ctx context.Context, v int) error
	Recv(ctx context.Context) (int, error)
	TrySend(v int) (bool, error)
	TryRecv() (int, bool, error)
	SendOp(v int) suspend.Op[struct{}]
	RecvOp() suspend.Op[int]
	Close() error
	CloseWith(err error) error
	AwaitClose(ctx context.Context) error
	AwaitCloseOp() suspend.Op[struct{}]
	Len() int
}

// Chans returns the Spec of a channel, with or without a buffer. Programs may close the channel.
func Chans(anew func(capacity int) Chan) Spec {
	return Spec{Name: "chanx", New: func(choose Choose) *System {
		n := choose(3)
		sys := &System{
			Title:   fmt.Sprintf("c is a channel of %d", n),
			Parts:   []Part{chanPart("c", n, anew(n), true)},
			Selects: n == 0, // programs have Selects over the two sides
		}
		for range n + 1 {
			sys.Probe = append(sys.Probe, Call{0, chanTryRecv, 0})
		}
		sys.Probe = append(sys.Probe, Call{0, chanTrySend, 998}, Call{0, chanTrySend, 999}, Call{0, chanTryRecv, 0}, Call{0, chanTryRecv, 0})
		return sys
	}}
}

// RealChan returns a channel of package chanx.
func RealChan(capacity int) Chan { return chanx.New[int](capacity) }

const chanTrySend, chanTryRecv = 2, 3 // these are indices of Part.Kinds

func chanPart(name string, capacity int, c Chan, closes bool) Part {
	p := Part{Name: name, Both: capacity == 0, Model: &chanModel{capacity: capacity}, Kinds: []Kind{
		{Name: "Send", Fresh: true, Seen: "ok",
			Run: func(ctx context.Context, v int) string { return result("ok", c.Send(ctx, v)) },
			Op:  func(v int) suspend.Op[string] { return done(c.SendOp(v)) }},
		{Name: "Recv", Seen: "=",
			Run: func(ctx context.Context, _ int) string { return value(c.Recv(ctx)) },
			Op:  func(int) suspend.Op[string] { return valued(c.RecvOp()) }},
		{Name: "TrySend", Fresh: true, Try: true, Seen: "ok,no", Run: func(_ context.Context, v int) string {
			ok, err := c.TrySend(v)
			return result(tried("ok", ok), err)
		}},
		{Name: "TryRecv", Try: true, Seen: "=,no", Run: func(context.Context, int) string {
			v, ok, err := c.TryRecv()
			return result(tried(equals(v), ok), err)
		}},
		{Name: "Len", Try: true, Run: func(context.Context, int) string { return equals(c.Len()) }},
	}}
	if closes {
		closed := chanx.ErrClosed.Error()
		for i := range p.Kinds[:4] {
			p.Kinds[i].Seen += "," + closed + "," + errBroken.Error()
		}
		p.Kinds = append(p.Kinds,
			Kind{Name: "Close", Try: true, Seen: "ok," + closed,
				Run: func(context.Context, int) string { return result("ok", c.Close()) }},
			Kind{Name: "CloseWith", Try: true, Seen: "ok," + closed,
				Run: func(context.Context, int) string { return result("ok", c.CloseWith(errBroken)) }},
			Kind{Name: "AwaitClose", Seen: "ok",
				Run: func(ctx context.Context, _ int) string { return result("ok", c.AwaitClose(ctx)) },
				Op:  func(int) suspend.Op[string] { return done(c.AwaitCloseOp()) }})
	}
	return p
}

var errBroken = errors.New("broken")

type chanModel struct {
	capacity int
	buffer   []int
	end      error // the error of a closed channel, or nil
}

func (c *chanModel) Copy() Object { d := *c; return &d }

func (c *chanModel) Serve(w *World) bool {
	var sends, recvs, awaits []Waiter
	for _, o := range w.Waiting() {
		switch o.Kind {
		case "Send", "TrySend":
			sends = append(sends, o)
		case "Recv", "TryRecv":
			recvs = append(recvs, o)
		case "Len":
			w.End(o, equals(len(c.buffer)))
			return true
		case "AwaitClose":
			awaits = append(awaits, o)
		case "Close", "CloseWith":
			if c.end != nil {
				w.End(o, chanx.ErrClosed.Error())
				return true
			}
			if c.end = errBroken; o.Kind == "Close" {
				c.end = chanx.ErrClosed
			}
			w.End(o, "ok")
			return true
		}
	}
	switch {
	case len(awaits) > 0 && c.end != nil && (len(sends)+len(recvs) == 0 || w.Choose(2) == 1): // a new Select may have other cases
		w.End(awaits[0], "ok")
	case len(recvs) > 0 && len(c.buffer) > 0:
		w.End(recvs[0], equals(c.buffer[0]))
		c.buffer = c.buffer[1:]
	case len(sends)+len(recvs) > 0 && c.end != nil:
		all := append(sends, recvs...) // there are several waiters if a new Select has both sides as cases
		w.End(all[w.Choose(len(all))], c.end.Error())
	case len(sends) > 0 && len(c.buffer) < c.capacity:
		c.buffer = append(slices.Clip(c.buffer), sends[0].Arg)
		w.End(sends[0], "ok")
	default:
		return c.meet(w, sends, recvs)
	}
	return true
}

// meet ends a send and a receive, which exchange a value and must be different operations. One operation of the two is new, because two
// earlier waiters would already have been paired. The new operation may be a Select over both sides.
func (c *chanModel) meet(w *World, sends, recvs []Waiter) bool {
	var pairs [][2]Waiter
	for _, s := range sends {
		for _, r := range recvs {
			if s.ID != r.ID && !slices.ContainsFunc(pairs, func(p [2]Waiter) bool { return p[0].ID == s.ID || p[1].ID == r.ID }) {
				pairs = append(pairs, [2]Waiter{s, r})
			}
		}
	}
	if len(pairs) == 0 {
		return false
	}
	p := pairs[w.Choose(len(pairs))]
	w.End(p[0], "ok")
	w.End(p[1], equals(p[0].Arg))
	return true
}
