package nosuspend

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

type box struct {
	guard suspend.Guard
	line  suspend.Queue[int, struct{}]
	inner *mvar.MVar[int]
}

func (b *box) Guard() *suspend.Guard { return &b.guard }
func (b *box) Try() (int, bool, error) {
	v, err := b.inner.Read(context.Background()) // want `Try of a suspend.Source must not suspend, but mvar.MVar.Read may`
	return v, true, err
}
func (b *box) Enqueue(r suspend.Resumer[int]) { b.line.Push(r, struct{}{}) }
func (b *box) Remove(r suspend.Resumer[int])  { b.line.Remove(r) }

func (b *box) Take(ctx context.Context) (int, error) { return suspend.Wait(ctx, b) }

func wrong(ctx context.Context, c *chanx.Chan[int], v *stm.Var[int], l *eventloop.Loop, b *box) {
	_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
		v.Set(tx, 1)
		return stm.OrElse(tx, func(tx *stm.Tx) error {
			return c.Send(ctx, 1) // want `a transaction must not suspend, but chanx.Chan.Send may`
		})
	})
	_ = stm.Atomically(ctx, again(ctx)) // cannot be seen
	_ = l.Execute(func() {
		_, _ = b.Take(ctx) // want `a callback must not suspend, but suspend.Wait may`
	})
	suspend.Then(ctx, c.RecvOp(), l, func(int, error) { pause(ctx) }) // want `a callback must not suspend, but suspend.Sleep may`
	_ = l.Execute(later)
	_ = l.Execute(func() {
		for range c.All(ctx) { // want `a callback must not suspend, but chanx.Chan.All may`
		}
	})
}

func again(ctx context.Context) func(*stm.Tx) error { return func(*stm.Tx) error { return nil } }

func pause(ctx context.Context) { _ = suspend.Sleep(ctx, time.Second) }

func later() {
	pause(context.Background()) // want `a callback must not suspend, but suspend.Sleep may`
}

func right(ctx context.Context, c *chanx.Chan[int], v *stm.Var[int], l *eventloop.Loop) {
	_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
		n := v.Get(tx)
		tx.AfterCommit(func() { _, _ = c.TrySend(n) })
		return nil
	})
	_ = l.Execute(func() {
		_ = l.Go(func() { pause(ctx) })
		go pause(ctx)
		_, _ = suspend.TrySelect(ctx, suspend.CaseOf(c.RecvOp()))
	})
}
