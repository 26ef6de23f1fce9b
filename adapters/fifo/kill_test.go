package fifo_test

import (
	"context"
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

// A killer is a driven scheduler, whose tasks a test kills. With helps, its tasks stand in for the scheduler, like those of a fifo.
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

// If a waiting task is killed, its call does not return, its deferred functions run, and it is no longer in any queue.
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
					require.True(t, task.Kill())
					require.False(t, task.Kill(), "killed twice")
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

// The same holds for a task that has waited with this context before, which takes another path.
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
				task.Kill()
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
				task.Kill()
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
		task.Kill()
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
			suspend.Current().(*runner.Task).Kill()
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
		task.Kill()
		suspend.Yield()
		task.Kill()
		suspend.Yield()
		require.Empty(t, said)
		_ = n.Put(bg, 7)
		suspend.Yield()
		require.Equal(t, "second", said)
		require.Equal(t, 7, got)
	})
}

// If the caller of a Run is killed, so are the tasks of the Run, and its main. A Hold does not keep the Run from ending.
func TestKilledRun(t *testing.T) {
	onKillers(t, func(t *testing.T, k *killer) {
		var ended []string
		waits := func(name string) {
			defer func() { ended = append(ended, name) }()
			_, _ = new(mvar.MVar[int]).Take(bg)
			ended = append(ended, name+" has returned")
		}
		inner := fifo.New(fifo.Options{})
		task := k.start(func() {
			defer func() { ended = append(ended, "caller") }()
			_ = inner.Run(bg, func(context.Context) error {
				_, err := inner.Hold()
				require.NoError(t, err)
				_ = inner.Go(func() { waits("task") })
				waits("main")
				return nil
			})
			ended = append(ended, "Run has returned")
		})
		require.True(t, task.Kill())
		for range 4 {
			suspend.Yield()
		}
		require.Equal(t, []string{"main", "task", "caller"}, ended)
		require.ErrorIs(t, inner.Go(func() {}), suspend.ErrClosed)
	})
}
