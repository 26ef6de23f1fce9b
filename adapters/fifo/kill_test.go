package fifo_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A killer is a driven scheduler that kills its tasks. With helps, its tasks stand in for the scheduler, like those of a fifo.
type killer struct{ *runner.Driven }

func newKiller(helps bool) *killer {
	k := new(killer)
	var next func() *runner.Item
	if !helps {
		next = func() *runner.Item { return k.Next() }
	}
	k.Driven = runner.NewDriven(k, next, nil, nil, suspend.ErrClosed)
	return k
}

func (k *killer) run(main func(ctx context.Context) error) error {
	return k.Drive(bg, runner.Drive{Name: "killer"}, main)
}

// start starts f as a task, and returns the task when it waits.
func (k *killer) start(f func()) (t *runner.Task) {
	_ = k.Go(func() {
		t = suspend.Current().(*runner.Task)
		f()
	})
	suspend.Yield()
	suspend.Yield()
	return t
}

func onKillers(t *testing.T, f func(t *testing.T, k *killer)) {
	for name, helps := range map[string]bool{"helping": true, "not helping": false} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			k := newKiller(helps)
			require.NoError(t, k.run(func(context.Context) error { f(t, k); return nil }))
		})
	}
}

// killed is a wait that never ends, and a check for the state after its task was killed.
type killed struct {
	name  string
	wait  func(ctx context.Context)
	clean func() bool
}

// A decorated Task is bound inside another Task.
type decorated struct{ suspend.Task }

func waits() []killed {
	var m, n mvar.MVar[int]
	empty := func() bool { // no task takes the value
		put := m.TryPut(1) && n.TryPut(1)
		_, ok1 := m.TryTake()
		_, ok2 := n.TryTake()
		return put && ok1 && ok2
	}
	c := chanx.New[int](0)
	nobody := func() bool { ok, _ := c.TrySend(1); return !ok }
	var mu mutex.Mutex
	mu.Lock()
	unlocked := func() bool { mu.Unlock(); return mu.TryLock() }
	sem := semaphore.New(2)
	_ = sem.Acquire(bg, 1)
	gate := func() bool { // a smaller request behind it is granted
		ok := sem.TryAcquire(1)
		if ok {
			sem.Release(1)
		}
		return ok
	}
	var l mutex.Mutex
	notEmpty := cond.Cond{L: &l}
	var p promise.Promise[int]
	b := latch.NewBarrier(2)
	return []killed{
		{"Wait", func(ctx context.Context) { _, _ = m.Take(ctx) }, empty},
		{"Select", func(ctx context.Context) {
			_, _ = suspend.Select(ctx, suspend.CaseOf(m.TakeOp()), suspend.CaseOf(n.TakeOp()))
		}, empty},
		{"Select with a level", func(ctx context.Context) {
			_, _ = suspend.Select(ctx, suspend.CaseOf(m.TakeOp()), suspend.CaseOf(suspend.After(time.Hour)))
		}, empty},
		{"Do", func(ctx context.Context) { _, _ = suspend.Do(ctx, n.TakeOp()) }, empty},
		{"Recv", func(ctx context.Context) { _, _ = c.Recv(ctx) }, nobody},
		{"Lock", func(ctx context.Context) { _ = mu.LockContext(ctx) }, unlocked},
		{"Acquire", func(ctx context.Context) { _ = sem.Acquire(ctx, 2) }, gate},
		{"Cond", func(ctx context.Context) {
			l.Lock()
			defer l.Unlock() // panics if the task does not hold l
			_ = notEmpty.Wait(ctx)
		}, func() bool { return l.TryLock() }},
		{"Await", func(ctx context.Context) { _, _ = p.Await(ctx) }, func() bool { return true }},
		{"Barrier", func(ctx context.Context) { _, _ = b.Wait(ctx) }, func() bool { _, err := b.Wait(short()); return err != nil }},
		{"Sleep", func(ctx context.Context) { _ = suspend.Sleep(ctx, time.Hour) }, func() bool { return true }},
		{"Yield", func(context.Context) {
			for {
				suspend.Yield()
			}
		}, func() bool { return true }},
		{"Pull", func(ctx context.Context) {
			next, stop := suspend.Pull(func(yield func(int) bool) {
				v, _ := m.Take(ctx)
				yield(v)
			})
			defer stop()
			next()
		}, empty},
		{"decorated", func(ctx context.Context) {
			suspend.Bind(decorated{suspend.Current()}, func() { _, _ = m.Take(ctx) })
		}, empty},
		{"nested", func(ctx context.Context) {
			_ = fifo.Run(bg, func(context.Context) error {
				_ = suspend.Here().Go(func() { _, _ = n.Take(ctx) })
				_, _ = m.Take(ctx)
				return nil
			})
		}, empty},
	}
}

// short returns a context that ends soon.
func short() context.Context {
	ctx, cancel := context.WithTimeout(bg, time.Millisecond)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// If a waiting task is killed, its call does not return, its deferred functions run, and it is in no queue any more.
func TestKillWaiting(t *testing.T) {
	cancellable, cancel := context.WithCancel(bg)
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": bg, "cancellable": cancellable} {
		for i, w := range waits() {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				onKillers(t, func(t *testing.T, k *killer) {
					w := waits()[i]
					returned, deferred := false, false
					task := k.start(func() {
						defer func() { deferred = true }()
						_ = suspend.Yield
						w.wait(ctx)
						returned = true
					})
					require.False(t, returned || deferred)
					require.True(t, k.Kill(task))
					require.False(t, k.Kill(task), "killed twice")
					for range 4 {
						suspend.Yield()
					}
					require.False(t, returned)
					require.True(t, deferred)
					require.True(t, w.clean())
				})
			})
		}
	}
}

// The same for a task that has waited with this context before, which takes another path.
func TestKillWaitingAgain(t *testing.T) {
	for i, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			onKillers(t, func(t *testing.T, k *killer) {
				w := waits()[i]
				var before mvar.MVar[int]
				returned, deferred := false, false
				task := k.start(func() {
					defer func() { deferred = true }()
					_, _ = before.Take(bg)
					w.wait(bg)
					returned = true
				})
				_ = before.Put(bg, 1)
				suspend.Yield()
				suspend.Yield()
				k.Kill(task)
				for range 4 {
					suspend.Yield()
				}
				require.False(t, returned)
				require.True(t, deferred && w.clean())
			})
		})
	}
}

// A task that does not wait is killed at its next wait, even if that wait calls no foreign code.
func TestKillRunnable(t *testing.T) {
	for i, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			onKillers(t, func(t *testing.T, k *killer) {
				w := waits()[i]
				var before mvar.MVar[int]
				went, returned, deferred := false, false, false
				task := k.start(func() {
					defer func() { deferred = true }()
					_, _ = before.Take(bg)
					went = true
					w.wait(bg)
					returned = true
				})
				_ = before.Put(bg, 1) // the task has been resumed, and does not run yet
				k.Kill(task)
				for range 4 {
					suspend.Yield()
				}
				require.True(t, went)
				require.False(t, returned)
				require.True(t, deferred && w.clean())
			})
		})
	}
}

// A task is marked to be killed, and ends before it waits again. The next task on its coroutine must not be killed.
func TestKillTooLate(t *testing.T) {
	onKillers(t, func(t *testing.T, k *killer) {
		var m mvar.MVar[int]
		task := k.start(func() { _, _ = m.Take(bg) })
		_ = m.Put(bg, 1)
		k.Kill(task)
		suspend.Yield()
		ended := 0
		for range 3 {
			_ = k.Go(func() {
				suspend.Yield()
				_, _ = m.Take(bg)
				ended++
			})
			suspend.Yield()
			suspend.Yield()
			_ = m.Put(bg, 1)
			suspend.Yield()
		}
		require.Equal(t, 3, ended)
	})
}

// A task kills itself at its next wait.
func TestKillSelf(t *testing.T) {
	onKillers(t, func(t *testing.T, k *killer) {
		var m mvar.MVar[int]
		said := ""
		k.start(func() {
			defer func() { said += "deferred" }()
			k.Kill(suspend.Current().(*runner.Task))
			said += "killed, "
			_, _ = m.Take(bg)
			said += "returned"
		})
		require.Equal(t, "killed, deferred", said)
	})
}

// A deferred function of a killed task may wait, and may be killed, too.
func TestKillDeferred(t *testing.T) {
	onKillers(t, func(t *testing.T, k *killer) {
		var m, n mvar.MVar[int]
		said := ""
		var got int
		task := k.start(func() {
			defer func() {
				got, _ = n.Take(bg)
				said += "second"
			}()
			defer func() {
				_, _ = m.Take(bg)
				said += "first"
			}()
			_, _ = m.Take(bg)
			said += "zeroth"
		})
		k.Kill(task)
		suspend.Yield()
		k.Kill(task)
		suspend.Yield()
		require.Empty(t, said)
		_ = n.Put(bg, 7)
		suspend.Yield()
		require.Equal(t, "second", said)
		require.Equal(t, 7, got)
	})
}

var errEnded = errors.New("ended")

// End leaves no task, whatever the tasks wait for and whatever their deferred functions do. Drive returns the error of End.
func TestEnd(t *testing.T) {
	for name, helps := range map[string]bool{"helping": true, "not helping": false} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			before := runtime.NumGoroutine()
			k := newKiller(helps)
			ended, begun := 0, 0
			k.OnIdle(func() { k.End(errEnded) })
			err := k.run(func(context.Context) error {
				for _, w := range waits() {
					if w.name == "Yield" {
						continue // this scheduler is never idle then
					}
					begun++
					_ = k.Go(func() {
						defer func() { ended++ }()
						defer suspend.Shield(func() { _, _ = new(mvar.MVar[int]).Take(bg) })
						defer func() { _, _ = new(mvar.MVar[int]).Take(bg) }()
						w.wait(bg)
					})
				}
				_, _ = k.Hold()
				suspend.Then(bg, new(mvar.MVar[int]).TakeOp(), k, func(int, error) { t.Error("continued") })
				_, _ = new(mvar.MVar[int]).Take(bg)
				t.Error("main has returned")
				return nil
			})
			require.Equal(t, errEnded, err)
			require.Equal(t, begun, ended)
			require.ErrorIs(t, k.Go(func() {}), suspend.ErrClosed)
			for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
				if time.Now().After(deadline) {
					buf := make([]byte, 1<<16)
					t.Fatalf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
				}
			}
		})
	}
}

// A task that yields without waiting ends as well. A task that has not begun begins first.
func TestEndFromATask(t *testing.T) {
	onKillers(t, func(t *testing.T, k *killer) {
		_ = k.Go(func() {
			for {
				suspend.Yield()
			}
		})
		suspend.Yield()
		k.End(errEnded)
	})
}

// OnForeign gets the stack of a foreign goroutine before its wake-up takes effect. The Runner's own wake-ups do not call it.
func TestOnForeign(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	k := newKiller(true)
	var stacks []string
	k.OnForeign(func() {
		buf := make([]byte, 1<<12)
		stacks = append(stacks, string(buf[:runtime.Stack(buf, false)]))
	})
	require.NoError(t, k.run(func(context.Context) error {
		var m mvar.MVar[int]
		_ = k.Go(func() { _ = m.Put(bg, 1) })
		_, _ = m.Take(bg)
		require.Empty(t, stacks)
		_, _ = suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) { go intruder(r); return 0, false })
		return nil
	}))
	require.Len(t, stacks, 1)
	require.True(t, strings.Contains(stacks[0], "intruder"), stacks[0])
}

func intruder(r suspend.Resumer[int]) { r.Resume(1, nil) }
