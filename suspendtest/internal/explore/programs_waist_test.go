//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, waistPrograms...) }

// These programs test package suspend, apart from single primitives.
var waistPrograms = []program{
	// Blocking waits for a function that has begun, and never runs one that was cancelled before. A panic of the function reaches
	// the caller.
	{"Blocking", "1 × 2", func(w *explore.World) {
		begun, ended, again := 0, 0, 0
		w.Go("blocking", func(ctx context.Context) {
			err := suspend.Blocking(ctx, func() { begun++; ended++ })
			if ended != begun || (err == nil) != (ended == 1) {
				panic(fmt.Sprint("Blocking returned ", err, " while f had begun ", begun, " times and ended ", ended))
			}
			defer func() {
				if v := recover(); v != nil && v != errFails {
					panic(v)
				}
			}()
			if suspend.Blocking(bg, func() { again++; panic(errFails) }) == nil {
				panic("Blocking returned although f had panicked")
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(atMost(1, begun), same(again, 1)) })
	}},
	// The scheduler draws the order of looks, and one of the channels outlives the run. Each run must depend only on its choices.
	{"select, in any order", "2 × 1", func(w *explore.World) {
		c := chanx.New[int](0)
		sent, received := 0, 0
		w.Go("select", func(ctx context.Context) {
			x, y, z := suspend.CaseOf(c.RecvOp()), suspend.CaseOf(outlives.RecvOp()), suspend.CaseOf(outlives.RecvOp())
			if won, _ := suspend.Select(ctx, z, x, y); won == x {
				received++
			}
		})
		w.Go("send", func(ctx context.Context) {
			if c.Send(ctx, 1) == nil {
				sent++
			}
		})
		w.OnIdle(func(waiting []string) error { return onlyIf(len(waiting) < 2) })
		w.Check(func() error { return same(sent, received) })
	}},
	// After cancel has returned, no Resume returns true for a wait with that context, however late the waiter learns of it. The
	// value goes to the live waiter.
	{"done before Resume", "3 × 1", doneBeforeResume(func(ctx context.Context, g *gift) (int, error) {
		return suspend.Wait[int](ctx, g)
	})},
	{"done before Resume, Select", "3 × 1", doneBeforeResume(func(ctx context.Context, g *gift) (v int, err error) {
		return suspend.Do(ctx, suspend.OpOf[int](g))
	})},
	{"done before Resume, Lazily", "3 × 1", doneBeforeResume(func(ctx context.Context, g *gift) (v int, err error) {
		return suspend.WaitLazily[int](suspend.Lazily(ctx), g)
	})},
	{"done before Resume, Suspend", "2 × 1", func(w *explore.World) {
		ctx, cancel := w.Context()
		var r suspend.Resumer[int]
		var ready promise.Promise[struct{}]
		w.Go("wait", func(context.Context) {
			v, err := suspend.Suspend(ctx, func(x suspend.Resumer[int]) (int, bool) {
				r = x
				_ = ready.Fill(struct{}{})
				return 0, false
			})
			if err == nil {
				panic(v)
			}
		})
		w.Go("resume", func(context.Context) {
			_, _ = ready.Await(bg)
			cancel()
			if r.Resume(1, nil) {
				panic("resumed after the cancellation")
			}
		})
	}},
}

// A gift is a Source. The first waiter in its queue gets 2, and a task that comes later finds 1.
type gift struct {
	guard   suspend.Guard
	left    int
	waiters suspend.Queue[int, struct{}]
}

func (g *gift) Guard() *suspend.Guard { return &g.guard }
func (g *gift) Try() (v int, ok bool, err error) {
	if g.left == 0 {
		return 0, false, nil
	}
	g.left--
	return 1, true, nil
}
func (g *gift) Enqueue(r suspend.Resumer[int]) { g.waiters.Push(r, struct{}{}) }
func (g *gift) Remove(r suspend.Resumer[int])  { g.waiters.Remove(r) }
func (g *gift) give() {
	g.guard.Lock()
	defer g.guard.Unlock()
	if _, ok := g.waiters.Resume(2, nil); !ok {
		g.left++
	}
}

func doneBeforeResume(wait func(ctx context.Context, g *gift) (int, error)) func(w *explore.World) {
	return func(w *explore.World) {
		var g gift
		ctx, cancel := w.Context()
		w.Go("dead", func(context.Context) {
			if v, _ := wait(ctx, &g); v == 2 { // may find 1 before it looks at its context
				panic("resumed after the cancellation")
			}
		})
		w.Go("live", func(context.Context) { _, _ = suspend.Wait[int](bg, &g) })
		w.Go("give", func(context.Context) {
			cancel()
			g.give()
			g.give()
		})
		w.OnIdle(lost)
	}
}

var errFails = errors.New("fails")

var outlives = chanx.New[int](0)
