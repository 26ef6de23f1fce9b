//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, heirPrograms...) }

// announced wraps a task and reports its Park. By then the task is queued.
type announced struct {
	suspend.Task
	parks *promise.Promise[int] // nil for no announcement
}

func (a *announced) Park() {
	if a.parks != nil {
		_ = a.parks.Fill(1)
	}
	a.Task.Park()
}

// Unwrap returns the wrapped Task, which schedulers for tests need.
func (a *announced) Unwrap() suspend.Task { return a.Task }

// busy is a task that its scheduler does not run again after its first Park, until release is called.
type busy struct {
	announced
	self     atomicx.Pointer[suspend.Task]
	released atomicx.Bool
}

// run runs f in the calling task, which is busy from then on.
func (b *busy) run(f func()) {
	b.Task = suspend.Self()
	b.self.Store(&b.Task)
	suspend.Bind(b, f)
}

func (b *busy) release() {
	b.released.Store(true)
	if t := b.self.Load(); t != nil {
		(*t).Unpark()
	}
}

func (b *busy) Park() {
	for b.announced.Park(); !b.released.Load(); b.Task.Park() {
	}
}

// A row is an object with two waiters. The second waits only because the first is ahead of it.
type row struct {
	first, second func(ctx context.Context) error
	check         func() error // is called at the end, after both have released what they had
}

func semaphoreRow() row {
	s := semaphore.New(2)
	_ = s.Acquire(bg, 1)
	acquire := func(n int64) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			err := s.Acquire(ctx, n)
			if err == nil {
				s.Release(n)
			}
			return err
		}
	}
	return row{first: acquire(2), second: acquire(1), check: func() error { return free(s.TryAcquire(1) && !s.TryAcquire(1)) }}
}

func rwRow() row {
	m := new(mutex.RWMutex)
	_ = m.TryRLock()
	return row{
		first: m.LockContext,
		second: func(ctx context.Context) error {
			err := m.RLockContext(ctx)
			if err == nil {
				m.RUnlock()
			}
			return err
		},
		check: func() error { m.RUnlock(); return free(m.TryLock()) },
	}
}

func limiterRow() row {
	l := rate.NewLimiter(0, 2)
	_ = l.Allow(1)
	return row{
		first:  func(ctx context.Context) error { return l.WaitN(ctx, 2) },
		second: l.Wait,
		check:  func() error { return free(!l.Allow(1)) },
	}
}

// heirProgram cancels the first task of a row, and does not run it again before the second has been served.
func heirProgram(open func() row, ctxOf func(w *explore.World, own context.Context) context.Context) func(w *explore.World) {
	return func(w *explore.World) {
		r := open()
		var b busy
		w.Go("first", func(own context.Context) {
			ctx := ctxOf(w, own)
			b.run(func() {
				if r.first(ctx) == nil {
					panic("it was not cancelled")
				}
			})
		})
		w.Go("second", func(context.Context) {
			if err := r.second(bg); err != nil {
				panic(err)
			}
			b.release()
		})
		w.Check(r.check)
	}
}

// ended returns a context of package cancel, which another task ends.
func ended(w *explore.World, _ context.Context) context.Context {
	ctx, end := cancel.New(bg)
	_ = suspend.Here().Go(func() { end(nil) })
	return ctx
}

// foreign returns the context that the search cancels.
func foreign(_ *explore.World, own context.Context) context.Context { return own }

var heirPrograms = []program{
	{"heir, semaphore", "3 × 1", heirProgram(semaphoreRow, ended)},
	{"heir, semaphore, a foreign context", "2 × 1", heirProgram(semaphoreRow, foreign)},
	{"heir, rwmutex", "3 × 1", heirProgram(rwRow, ended)},
	{"heir, rate", "3 × 1", heirProgram(limiterRow, ended)},
	{"heir, barrier", "3 × 1", func(w *explore.World) {
		b := latch.NewBarrier(3)
		var first busy
		var queued promise.Promise[int]
		ctx, end := cancel.New(bg)
		other, endOther := cancel.New(bg)
		w.Go("first", func(context.Context) {
			_, _ = queued.Await(bg)
			first.run(func() { _, _ = b.Wait(ctx) })
			endOther(nil) // if the other context had ended before the call, the round is not broken
		})
		w.Go("second", func(context.Context) {
			suspend.Bind(&announced{suspend.Self(), &queued}, func() {
				if _, err := b.Wait(other); err == nil {
					panic("one party is missing")
				}
			})
			first.release()
		})
		w.Go("end", func(context.Context) { end(nil) })
	}},
	{"heir, a Select of two", "4 × 1", func(w *explore.World) {
		x, y := semaphore.New(2), semaphore.New(2)
		_, _ = x.TryAcquire(1), y.TryAcquire(1)
		var b busy
		var left atomicx.Int32
		left.Store(2)
		ctx, end := cancel.New(bg)
		w.Go("first", func(context.Context) {
			b.run(func() {
				if won, _ := suspend.Select(ctx, suspend.CaseOf(x.AcquireOp(2)), suspend.CaseOf(y.AcquireOp(2))); won != nil {
					panic("no task has released")
				}
			})
		})
		for i, s := range []*semaphore.Semaphore{x, y} {
			w.Go(fmt.Sprint("second", i), func(context.Context) {
				_ = s.Acquire(bg, 1)
				if left.Add(-1) == 0 {
					b.release()
				}
			})
		}
		w.Go("end", func(context.Context) { end(nil) })
	}},
	// The first two tasks share a context, which ends. The heir must not give the second task what the first does not need any
	// more.
	{"heir, two with one context", "4 × 1", func(w *explore.World) {
		s := semaphore.New(2)
		_ = s.TryAcquire(1)
		var tasks [2]busy
		var parked [3]promise.Promise[int]
		ctx, end := cancel.New(bg)
		for i, n := range []int64{2, 1} {
			w.Go(fmt.Sprint("cancelled", i), func(context.Context) {
				if i > 0 {
					_, _ = parked[i-1].Await(bg)
				}
				tasks[i].parks = &parked[i]
				tasks[i].run(func() {
					if s.Acquire(ctx, n) == nil {
						s.Release(n)
					}
				})
			})
		}
		w.Go("last", func(context.Context) {
			_, _ = parked[1].Await(bg)
			suspend.Bind(&announced{suspend.Self(), &parked[2]}, func() { _ = s.Acquire(bg, 1) })
			s.Release(1)
			for i := range tasks {
				tasks[i].release()
			}
		})
		w.Go("end", func(context.Context) {
			_, _ = parked[2].Await(bg)
			end(nil)
		})
		w.Check(func() error { return free(s.TryAcquire(1) && !s.TryAcquire(1)) })
	}},
	// The heir of the first task may serve the second while the context of the second is ending.
	{"heir, the next is cancelled too", "4 × 1", func(w *explore.World) {
		s := semaphore.New(2)
		_ = s.TryAcquire(1)
		var b busy
		ctx, end := cancel.New(bg)
		w.Go("first", func(context.Context) {
			b.run(func() { _ = s.Acquire(ctx, 2) })
		})
		w.Go("second", func(ctx context.Context) {
			if s.Acquire(ctx, 1) == nil {
				s.Release(1)
			}
		})
		w.Go("last", func(context.Context) {
			_ = s.Acquire(bg, 1)
			s.Release(1)
			b.release()
		})
		w.Go("end", func(context.Context) { end(nil) })
		w.Check(func() error { return free(s.TryAcquire(1) && !s.TryAcquire(1)) })
	}},
	// The context of a party ends when its round is over, perhaps during the next round, which must not break.
	{"heir, barrier, a later round", "4 × 2", func(w *explore.World) {
		b := latch.NewBarrier(2)
		var paired promise.Promise[int]
		ctx, end := cancel.New(bg)
		pair := func(ctx context.Context) {
			for _, err := b.Wait(ctx); err != nil; _, err = b.Wait(bg) {
			}
		}
		w.Go("first", func(context.Context) { pair(ctx) })
		w.Go("second", func(context.Context) {
			pair(bg)
			_ = paired.Fill(1)
			if _, err := b.Wait(bg); err != nil {
				panic(err)
			}
		})
		w.Go("third", func(context.Context) {
			_, _ = paired.Await(bg)
			if _, err := b.Wait(bg); err != nil {
				panic(err)
			}
		})
		w.Go("end", func(context.Context) { end(nil) })
	}},
	{"heir, lazy", "4 × 1", func(w *explore.World) {
		var b busy
		ctx, end := cancel.New(bg)
		impatient, give := cancel.New(bg)
		var begun promise.Promise[int]
		var running atomicx.Int32
		runs := 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			if running.Add(1) > 1 {
				panic("two run the function")
			}
			defer running.Add(-1)
			if runs++; runs == 1 {
				_ = begun.Fill(1)
				give(nil)
				return 0, errOops
			}
			return 1, nil
		}, lazy.Restart)
		w.Go("runner", func(context.Context) { _, _ = l.Force(impatient) })
		w.Go("first", func(context.Context) {
			_, _ = begun.Await(bg)
			b.run(func() {
				if _, err := l.Force(ctx); err != nil && !errors.Is(err, context.Canceled) {
					panic(err)
				}
			})
		})
		w.Go("second", func(context.Context) {
			_, _ = begun.Await(bg)
			if v, err := l.Force(bg); v != 1 || err != nil {
				panic(err)
			}
			b.release()
		})
		w.Go("end", func(context.Context) { end(nil) })
	}},
}
