package census_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// Each program has a few tasks of fifo, which run in this order until all of them wait. The table has the deadlocks to be found.
func TestCycles(t *testing.T) {
	type tasks = []func(ctx context.Context)
	var (
		yield = suspend.Yield
		same  = func(_ context.Context, n int) (int, error) { return n, nil }
		read  = func(values iter.Seq2[int, error]) {
			for range values {
			}
		}
		locked = func(ctx context.Context, m *mutex.Mutex, f func()) {
			if m.LockContext(ctx) == nil {
				defer m.Unlock()
				f()
			}
		}
	)
	for name, p := range map[string]struct {
		cycles, behind int // -1: no deadlock
		tasks          func() tasks
	}{
		"a mutex, locked again": {1, 0, func() tasks {
			var m mutex.Mutex
			return tasks{func(ctx context.Context) { locked(ctx, &m, func() { _ = m.LockContext(ctx) }) }}
		}},
		"three mutexes in a cycle, and one more task": {3, 1, func() tasks {
			var m [3]mutex.Mutex
			var all tasks
			for i := range m {
				all = append(all, func(ctx context.Context) {
					locked(ctx, &m[i], func() {
						yield()
						locked(ctx, &m[(i+1)%3], func() {})
					})
				})
			}
			return append(all, func(ctx context.Context) {
				yield()
				locked(ctx, &m[0], func() {})
			})
		}},
		"a lock with another one to wait for": {-1, 0, func() tasks {
			var a, b mutex.Mutex
			p := promise.New[int]()
			return tasks{
				func(ctx context.Context) {
					locked(ctx, &a, func() {
						yield()
						won, _ := suspend.Select(ctx, suspend.CaseOf(b.LockOp()), suspend.CaseOf(p.AwaitOp()))
						if won != nil {
							b.Unlock()
						}
					})
				},
				func(ctx context.Context) { locked(ctx, &b, func() { locked(ctx, &a, func() {}) }) },
			}
		}},
		"a Stream whose input waits for a lock of the Stream's reader": {2, 0, func() tasks {
			var m mutex.Mutex
			in := func(yield func(int, error) bool) { yield(0, m.LockContext(context.Background())) }
			return tasks{func(ctx context.Context) {
				locked(ctx, &m, func() { read(scope.Stream(ctx, suspend.Here(), 1, in, same)) })
			}}
		}},
		"a Stream over a Stream whose input forces what the reader computes": {3, 0, func() tasks {
			var l *lazy.Lazy[int]
			l = lazy.New(func(ctx context.Context) (int, error) {
				in := func(yield func(int, error) bool) { yield(l.Force(context.Background())) }
				read(scope.Stream(ctx, suspend.Here(), 1, scope.Stream(ctx, suspend.Here(), 1, in, same), same))
				return 0, nil
			}, lazy.Restart)
			return tasks{func(ctx context.Context) { _, _ = l.Force(ctx) }}
		}},
		"a Stream whose input waits for a lock, beside a result that is to come": {-1, 0, func() tasks {
			var m mutex.Mutex
			p := promise.New[int]()
			in := func(yield func(int, error) bool) {
				if yield(0, nil) {
					yield(0, m.LockContext(context.Background()))
				}
			}
			return tasks{func(ctx context.Context) {
				locked(ctx, &m, func() {
					read(scope.Stream(ctx, suspend.Here(), 2, in, func(ctx context.Context, _ int) (int, error) { return p.Await(ctx) }))
				})
			}}
		}},
		"a lock with a timeout": {-1, 0, func() tasks {
			var m mutex.Mutex
			return tasks{func(ctx context.Context) {
				locked(ctx, &m, func() {
					_, _ = suspend.Select(ctx, suspend.CaseOf(m.LockOp()), suspend.CaseOf(suspend.After(time.Hour)))
				})
			}}
		}},
		"two locks in a Select, both held by a waiter": {2, 0, func() tasks {
			var a, b, c mutex.Mutex
			return tasks{
				func(ctx context.Context) {
					locked(ctx, &a, func() {
						yield()
						_, _ = suspend.Select(ctx, suspend.CaseOf(b.LockOp()), suspend.CaseOf(c.LockOp()))
					})
				},
				func(ctx context.Context) {
					locked(ctx, &b, func() { locked(ctx, &c, func() { locked(ctx, &a, func() {}) }) })
				},
			}
		}},
		"a reader that reads again behind a writer": {2, 0, func() tasks {
			var m mutex.RWMutex
			return tasks{
				func(ctx context.Context) {
					_ = m.RLockContext(ctx)
					defer m.RUnlock()
					yield()
					if m.RLockContext(ctx) == nil {
						m.RUnlock()
					}
				},
				func(ctx context.Context) {
					if m.LockContext(ctx) == nil {
						m.Unlock()
					}
				},
			}
		}},
		"two readers, one of which waits for a writer's lock": {2, 0, func() tasks {
			var m mutex.RWMutex
			var a mutex.Mutex
			return tasks{
				func(ctx context.Context) {
					_ = m.RLockContext(ctx)
					defer m.RUnlock()
					yield()
					locked(ctx, &a, func() {})
				},
				func(ctx context.Context) {
					_ = m.RLockContext(ctx)
					defer m.RUnlock()
					_ = suspend.Sleep(ctx, time.Hour)
				},
				func(ctx context.Context) {
					locked(ctx, &a, func() {
						if m.LockContext(ctx) == nil {
							m.Unlock()
						}
					})
				},
			}
		}},
		"permits, of which another task has enough": {-1, 0, func() tasks {
			s := semaphore.New(3)
			hold := func(n int64, f func(ctx context.Context)) func(ctx context.Context) {
				return func(ctx context.Context) {
					if s.Acquire(ctx, n) == nil {
						defer s.Release(n)
						f(ctx)
					}
				}
			}
			return tasks{
				hold(1, func(ctx context.Context) { yield(); hold(2, func(context.Context) {})(ctx) }),
				hold(2, func(ctx context.Context) { _ = suspend.Sleep(ctx, time.Hour) }),
			}
		}},
		"permits, of which all hold some": {1, 1, func() tasks {
			s := semaphore.New(2)
			both := func(ctx context.Context) {
				if s.Acquire(ctx, 1) == nil {
					defer s.Release(1)
					yield()
					if s.Acquire(ctx, 1) == nil {
						s.Release(1)
					}
				}
			}
			return tasks{both, both}
		}},
		"a semaphore that was made larger": {-1, 0, func() tasks {
			s := semaphore.New(1)
			return tasks{func(ctx context.Context) {
				_ = s.Acquire(ctx, 1)
				defer s.Release(1)
				s.Resize(4)
				go func() {
					if s.Acquire(ctx, 3) == nil {
						_, _ = promise.New[int]().Await(ctx)
						s.Release(3)
					}
				}()
				yield()
				if s.Acquire(ctx, 2) == nil {
					s.Release(2)
				}
			}}
		}},
		"an MVar that is being modified": {2, 0, func() tasks {
			m := mvar.NewFull(1)
			var a mutex.Mutex
			return tasks{
				func(ctx context.Context) {
					_ = m.Modify(ctx, func(n int) (int, error) {
						yield()
						locked(ctx, &a, func() {})
						return n, nil
					})
				},
				func(ctx context.Context) { locked(ctx, &a, func() { _, _ = m.Take(ctx) }) },
			}
		}},
		"a lazy value and a mutex": {2, 0, func() tasks {
			var a mutex.Mutex
			l := lazy.New(func(ctx context.Context) (int, error) {
				yield()
				locked(ctx, &a, func() {})
				return 1, nil
			}, lazy.Protect)
			return tasks{
				func(ctx context.Context) { _, _ = l.Force(ctx) },
				func(ctx context.Context) { locked(ctx, &a, func() { _, _ = l.Force(ctx) }) },
			}
		}},
		"a lock that was given away": {-1, 0, func() tasks {
			var m mutex.Mutex
			c := chanx.New[int](0)
			return tasks{
				func(ctx context.Context) {
					_ = m.LockContext(ctx)
					_, _ = c.Recv(ctx) // the other task unlocks the mutex
					if m.LockContext(ctx) == nil {
						m.Unlock()
					}
				},
				func(ctx context.Context) {
					_ = c.Send(ctx, 1)
					m.Unlock()
					_ = m.LockContext(ctx)
					_ = suspend.Sleep(ctx, time.Hour)
					m.Unlock()
				},
			}
		}},
		"a sequence whose body has the lock": {2, 0, func() tasks {
			var a, b mutex.Mutex
			return tasks{
				func(ctx context.Context) {
					next, stop := suspend.Pull(func(yield func(int) bool) {
						locked(ctx, &a, func() {
							suspend.Yield()
							locked(ctx, &b, func() {})
						})
					})
					defer stop()
					_, _ = next()
				},
				func(ctx context.Context) { locked(ctx, &b, func() { locked(ctx, &a, func() {}) }) },
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			on(t)
			ctx, cancel := context.WithCancel(bg)
			var s census.Snapshot
			_ = fifo.Run(bg, func(context.Context) error {
				tasks := p.tasks()
				left := len(tasks)
				for _, f := range tasks {
					_ = suspend.Here().Go(func() {
						defer func() { left-- }()
						f(ctx)
					})
				}
				for range 20 {
					yield()
				}
				s = census.Take()
				for i := 0; p.cycles < 0 && i < 100; i++ { // checks that no deadlock appears
					yield()
					require.Empty(t, census.Take().Deadlocks, "%s", s)
				}
				cancel()
				for left > 0 {
					yield()
				}
				return nil
			})
			if p.cycles < 0 {
				require.Empty(t, s.Deadlocks, "%s", s)
				require.NotEmpty(t, s.Tasks)
				return
			}
			require.Len(t, s.Deadlocks, 1, "%s", s)
			require.Len(t, s.Deadlocks[0].Cycle, p.cycles, "%s", s)
			require.Equal(t, p.behind, s.Deadlocks[0].Behind, "%s", s)
			require.Contains(t, s.String(), "deadlock: ")
		})
	}
}
