//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, killPrograms...) }

// A doomed task is killed when it parks, because a scheduler kills tasks there. It parks like a coroutine.
type doomed struct {
	suspend.Task
	bound   suspend.Bound
	on      suspend.Spawner
	kills   int  // the number of Kills that are left
	pending bool // a Kill has not taken effect yet
}

func (d *doomed) Leave() (next func() (struct{}, bool), yield func(struct{}) bool) {
	if d.kills > 0 && d.bound.Kill() {
		d.kills--
		d.pending = true
	}
	d.Task.Park()
	return nil, nil
}

func (d *doomed) LeaveReady() (next func() (struct{}, bool), yield func(struct{}) bool) {
	return d.Leave()
}

// Spawner implements suspend.Task.
func (d *doomed) Spawner() suspend.Spawner { return d.on }

func (d *doomed) Back() (next func() (struct{}, bool), yield func(struct{}) bool) { return nil, nil }

// goDoomed starts a task that is killed the given number of times.
func goDoomed(w *explore.World, kills int, f func(ctx context.Context, d *doomed)) {
	w.GoExiting("doomed", func(ctx context.Context) {
		d := &doomed{Task: suspend.Self(), on: suspend.Here(), kills: kills}
		bound, entered := suspend.Enter(d)
		defer entered.Exit()
		d.bound = bound
		f(ctx, d)
	})
}

// receivedGift counts under the guard. The count is read when no task runs.
func receivedGift(g *gift, got *int) {
	g.guard.Lock()
	defer g.guard.Unlock()
	*got++
}

// killProgram kills a task that waits for a gift, while a live task waits, too. Each of two gifts goes to one of them, or remains.
func killProgram(kills int, wait func(ctx context.Context, g *gift) (int, error)) func(w *explore.World) {
	return func(w *explore.World) {
		var g gift
		got := 0
		var waits *doomed
		goDoomed(w, kills, func(ctx context.Context, d *doomed) {
			waits = d
			receive := func() {
				late := d.pending
				v, err := wait(ctx, &g)
				switch {
				case late && v == 2:
					panic("it was killed, and has waited since")
				case err == nil:
					receivedGift(&g, &got)
				case ctx.Err() == nil:
					panic("killed, and returned")
				}
			}
			returned, again := false, false
			defer func() {
				if !returned && kills == 1 && !again {
					panic("killed once, and exited twice")
				}
			}()
			defer func() {
				d.pending = d.pending && returned
				receive()
				again = true
			}()
			receive()
			receive()
			returned = true
		})
		w.Go("live", func(ctx context.Context) {
			if _, err := suspend.Wait[int](ctx, &g); err == nil {
				receivedGift(&g, &got)
			}
		})
		w.Go("give", func(context.Context) {
			g.give()
			g.give()
		})
		w.Check(func() error {
			if n := g.waiters.Len(); n != 0 || got+g.left != 2 {
				return fmt.Errorf("%d wait, %d were received, and %d are left", n, got, g.left)
			}
			return nil
		})
		w.OnIdle(func(waiting []string) error { return onlyIf(got == 2 && (waiting[0] != "doomed" || !waits.pending)) })
	}
}

// killCondProgram kills a task while it waits for a signal, or while it locks again, the given number of times. The task must
// hold the lock when its deferred functions run.
func killCondProgram(kills int) func(w *explore.World) {
	return func(w *explore.World) { killCond(w, kills) }
}

func killCond(w *explore.World, kills int) {
	var m mutex.Mutex
	var in inside
	c := cond.New(&m)
	hold := func(f func()) {
		m.Lock()
		defer func() { in.write(); m.Unlock() }()
		f()
	}
	goDoomed(w, kills, func(ctx context.Context, _ *doomed) { hold(func() { _ = c.Wait(ctx) }) })
	w.Go("wait", func(ctx context.Context) { hold(func() { _ = c.Wait(ctx) }) })
	w.Go("signal", func(context.Context) { hold(c.Signal) })
	w.Check(func() error { return free(m.TryLock()) })
}

var killPrograms = []program{
	{"kill, Cond", "3 × 1", killCondProgram(1)},
	{"kill, Cond, twice", "3 × 1", killCondProgram(2)},
	{"kill, Cond, four times", "3 × 1", killCondProgram(4)},
	{"kill, Shield", "2 × 2", func(w *explore.World) {
		var g gift
		got, after := 0, false
		goDoomed(w, 2, func(_ context.Context, d *doomed) {
			defer func() {
				if got != 2 {
					panic("it was ended under the Shield")
				}
			}()
			other, _ := cancel.New(bg) // another context, so that the second wait registers again
			suspend.Shield(func() {
				for _, ctx := range []context.Context{bg, other} {
					if _, err := suspend.Wait[int](ctx, &g); err != nil {
						panic(err)
					}
					got++
				}
			})
			after = true
			if d.pending {
				panic("a killed task has continued")
			}
		})
		w.Go("give", func(context.Context) {
			g.give()
			g.give()
		})
		w.OnIdle(lost)
		w.Check(func() error {
			return errors.Join(same(got, 2), same(g.waiters.Len()+g.left, 0), onlyIf(got == 2 || !after))
		})
	}},
	{"kill, Wait", "3 × 3", killProgram(1, func(ctx context.Context, g *gift) (int, error) {
		return suspend.Wait[int](ctx, g)
	})},
	{"kill, Wait, twice", "3 × 3", killProgram(2, func(ctx context.Context, g *gift) (int, error) {
		return suspend.Wait[int](ctx, g)
	})},
	{"kill, Select", "3 × 3", killProgram(2, func(ctx context.Context, g *gift) (int, error) {
		var never gift
		v, err := suspend.Do(ctx, suspend.Choose(suspend.OpOf[int](g), suspend.OpOf[int](&never)))
		if n := never.waiters.Len(); n != 0 {
			panic(n)
		}
		return v, err
	})},
	{"kill, Suspend", "3 × 3", killProgram(2, func(ctx context.Context, g *gift) (int, error) {
		var me suspend.Resumer[int]
		defer func() {
			g.guard.Lock()
			defer g.guard.Unlock()
			g.Remove(me)
		}()
		return suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
			g.guard.Lock()
			defer g.guard.Unlock()
			if v, ok, _ := g.Try(); ok {
				return v, true
			}
			g.Enqueue(r)
			me = r
			return 0, false
		})
	})},
	{"kill, mutex", "3 × 1", func(w *explore.World) {
		var m mutex.Mutex
		var in inside
		visit := func(ctx context.Context) {
			if m.LockContext(ctx) == nil {
				in.write()
				m.Unlock()
			}
		}
		goDoomed(w, 1, func(ctx context.Context, _ *doomed) { visit(ctx) })
		w.Go("x", visit)
		w.Go("y", visit)
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}},
}
