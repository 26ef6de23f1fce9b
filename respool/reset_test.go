package respool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/suspend"
)

// A Reset closes idle resources at once, and leased ones when they are released, without a call of Reuse.
func TestReset(t *testing.T) {
	var s server
	o := s.options(3)
	o.Reuse = func(n int) bool { require.Greater(t, n, 3); return true }
	p := respool.New(o)
	a, b, c := acquire(t, p), acquire(t, p), acquire(t, p)
	p.Reset()
	require.Empty(t, s.closed)
	require.Equal(t, respool.Stats{Leased: 3, Opened: 3}, present(p))
	b.Release()
	require.Equal(t, []int{2}, s.closed)
	d := acquire(t, p)
	require.Equal(t, 4, d.Value)
	d.Release()
	require.Equal(t, 4, acquire(t, p).Value)
	a.Release()
	c.ReleaseUnused()
	require.Equal(t, []int{2, 1, 3}, s.closed)
	e, f := acquire(t, p), acquire(t, p)
	e.Release()
	f.Release()
	require.Equal(t, respool.Stats{Idle: 2, Leased: 1, Opened: 6}, present(p))
	p.Reset()
	require.Equal(t, []int{2, 1, 3, 5, 6}, s.closed)
	require.Equal(t, respool.Stats{Leased: 1, Opened: 6}, present(p))
	p.Reset()
	require.NoError(t, p.Close())
	p.Reset()
	require.Len(t, s.closed, 5)
}

// A Reset comes during a call of Open. Its resource is given to no Acquire. The Acquire that waits for it opens another one, and
// keeps its place in the queue.
func TestResetDuringAnOpen(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var opened, closed atomic.Int32
		gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
		p := respool.New(respool.Options[int32]{
			Max: 1,
			Open: func(ctx context.Context) (int32, error) {
				n := opened.Add(1)
				<-gates[n-1]
				return n, nil
			},
			Close: func(n int32) { closed.Add(n) },
		})
		var got atomic.Int32
		ended := make(chan error, 1)
		_ = s.Go(func() {
			l, err := p.Acquire(bg)
			if err == nil {
				got.Store(l.Value)
				l.Release()
			}
			ended <- err
		})
		schedtest.Eventually(t, "the first Open", func() bool { return opened.Load() == 1 })
		p.Reset()
		close(gates[0])
		schedtest.Eventually(t, "the second Open", func() bool { return opened.Load() == 2 })
		require.EqualValues(t, 1, closed.Load(), "the first resource is closed before the second is opened")
		close(gates[1])
		require.NoError(t, <-ended)
		require.EqualValues(t, 2, got.Load())
		require.NoError(t, p.Shutdown(bg))
		require.EqualValues(t, 3, closed.Load())
	})
}

// A Reset comes during a call of Open for which no Acquire waits any more. The resource does not become idle.
func TestResetDuringAnOpenThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		p := respool.New(respool.Options[int]{
			Max:   1,
			Open:  func(ctx context.Context) (int, error) { return 1, suspend.Sleep(ctx, time.Minute) },
			Close: func(int) { closed++ },
		})
		ctx, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		_, err := p.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		p.Reset()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 1, closed)
		require.Equal(t, respool.Stats{Opened: 1}, present(p))
		require.NoError(t, p.Shutdown(bg))
	})
}

// An Acquire whose first call of Open is outdated when it ends keeps its turn. In the first case this Acquire still waits, so it
// calls Open again. In the second case it was cancelled, and the other Acquires have calls of their own.
func TestAResetKeepsTheTurns(t *testing.T) {
	for _, c := range []struct {
		givesUp bool
		got     []string
		opened  int
	}{
		{false, []string{"a 2 4s", "b 3 1m6s"}, 3},
		{true, []string{"a context deadline exceeded 1.5s", "b 2 4s", "c 3 5s"}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var mu sync.Mutex
			var opened int
			var got []string
			p := respool.New(respool.Options[int]{
				Max: 3,
				Open: func(ctx context.Context) (int, error) {
					mu.Lock()
					opened++
					n := opened
					mu.Unlock()
					return n, suspend.Sleep(ctx, 3*time.Second)
				},
				Close: func(n int) {
					require.Equal(t, 1, n)
					_ = suspend.Sleep(bg, time.Minute)
				},
			})
			get := func(who string, d time.Duration) {
				ctx, stop := context.WithTimeout(bg, d)
				defer stop()
				l, err := p.Acquire(ctx)
				what := fmt.Sprint(err)
				if err == nil {
					what = fmt.Sprint(l.Value)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(who, " ", what, " ", time.Since(begun)))
			}
			d := time.Hour
			if c.givesUp {
				d = 1500 * time.Millisecond
			}
			go get("a", d)
			time.Sleep(500 * time.Millisecond)
			p.Reset()
			time.Sleep(500 * time.Millisecond)
			go get("b", time.Hour)
			if time.Sleep(time.Second); c.givesUp {
				go get("c", time.Hour)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, c.got, got)
			require.Equal(t, respool.Stats{Leased: 2, Opened: c.opened}, present(p))
		})
	}
}

// A Close of a resource that panics on the goroutine of an Open fails the Acquire that waits there, and frees its permit.
func TestACloseThatPanicsAfterAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		p := respool.New(respool.Options[int]{
			Max:   1,
			Open:  func(ctx context.Context) (int, error) { opened++; return opened, suspend.Sleep(ctx, time.Second) },
			Close: func(int) { panic(errNo) },
		})
		time.AfterFunc(time.Millisecond, p.Reset)
		schedtest.Panics(t, errNo, func() { _, _ = p.Acquire(bg) })
		require.Equal(t, respool.Stats{Opened: 1}, present(p))
		require.Equal(t, 2, acquire(t, p).Value)
	})
}

// A Reset during a Check outdates the resource that is checked.
func TestResetDuringACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(1)
		o.Check = func(ctx context.Context, _ int) error { return suspend.Sleep(ctx, time.Minute) }
		p := respool.New(o)
		acquire(t, p).Release()
		time.AfterFunc(time.Second, p.Reset)
		require.Equal(t, 2, acquire(t, p).Value)
		require.Equal(t, []int{1}, s.closed)
	})
}

// If the Close of a resource panics during a Reset, the other resources are closed anyway. Shutdown waits for a Reset.
func TestResetAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(3)
		closes := o.Close
		o.Close = func(n int) {
			closes(n)
			if n == 1 {
				panic(errNo)
			}
			_ = suspend.Sleep(bg, time.Minute)
		}
		p := respool.New(o)
		for _, l := range []*respool.Lease[int]{acquire(t, p), acquire(t, p), acquire(t, p)} {
			l.Release()
		}
		go func() { schedtest.Panics(t, errNo, p.Reset) }()
		synctest.Wait()
		require.Equal(t, respool.Stats{Leased: 2, Opened: 3}, present(p), "the first was closed, and the others are no longer idle")
		begun := time.Now()
		require.NoError(t, p.Shutdown(bg))
		require.Equal(t, 2*time.Minute, time.Since(begun))
		require.Equal(t, []int{1, 2, 3}, s.closed)
	})
}

// TryAcquire takes the resource that was used last, unless it must be checked or is too old, and does not overtake waiters.
func TestTryAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(2)
		o.Check, o.Fresh = func(context.Context, int) error { t.Error("checked"); return nil }, time.Minute
		o.MaxLifetime = time.Hour
		p := respool.New(o)
		tries := func(want int) *respool.Lease[int] {
			t.Helper()
			l, ok := p.TryAcquire()
			require.Equal(t, want > 0, ok)
			if ok {
				require.Equal(t, want, l.Value)
			}
			return l
		}
		tries(0)
		a, b := acquire(t, p), acquire(t, p)
		tries(0)
		a.Release()
		b.Release()
		b = tries(2)
		a = tries(1)
		go func() {
			l := acquire(t, p)
			time.Sleep(time.Second)
			l.Release()
		}()
		synctest.Wait()
		b.Release()
		tries(0) // the resource is for the waiter
		synctest.Wait()
		time.Sleep(2 * time.Second)
		tries(2).Release()
		a.Release()
		time.Sleep(time.Minute)
		tries(0) // the resource must be checked
		o.Check = nil
		p = respool.New(o)
		acquire(t, p).Release()
		time.Sleep(2 * time.Hour)
		tries(0) // the resource is too old
		require.Equal(t, 1, p.Stats().Idle)
		require.NoError(t, p.Close())
		tries(0)
	})
}

// While the Close of a pool is about to close the idle resources, TryAcquire and AcquireAllIdle take none of them.
func TestTryAcquireDuringAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := respool.New(respool.Options[int]{Max: 2, Open: func(context.Context) (int, error) { return 1, nil },
			Close: func(int) { _ = suspend.Sleep(bg, time.Minute) }})
		a, b := acquire(t, p), acquire(t, p)
		a.Release()
		b.Release()
		go p.Close()
		synctest.Wait()
		_, ok := p.TryAcquire()
		require.False(t, ok)
		require.Empty(t, p.AcquireAllIdle())
		require.NoError(t, p.Shutdown(bg))
		require.Equal(t, respool.Stats{Opened: 2}, present(p))
	})
}

// A task uses AcquireAllIdle to keep idle resources alive. The pool then uses and closes them as before.
func TestAcquireAllIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(4)
		o.MaxIdleTime = time.Hour
		p := respool.New(o)
		require.Empty(t, p.AcquireAllIdle())
		all := []*respool.Lease[int]{acquire(t, p), acquire(t, p), acquire(t, p), acquire(t, p)}
		for _, i := range []int{1, 0, 2} {
			all[i].Release()
			time.Sleep(time.Minute)
		}
		before := p.Stats()
		for range 3 {
			idle := p.AcquireAllIdle()
			var values []int
			for _, l := range idle {
				values = append(values, l.Value)
			}
			require.Equal(t, []int{2, 1, 3}, values)
			require.Equal(t, respool.Stats{Leased: 4, Opened: 4}, present(p))
			time.Sleep(10 * time.Minute)
			rand.Shuffle(len(idle), func(i, j int) { idle[i], idle[j] = idle[j], idle[i] })
			for _, l := range idle {
				l.ReleaseUnused()
			}
			require.Equal(t, before, p.Stats(), "it does not count")
		}
		l := acquire(t, p)
		require.Equal(t, 3, l.Value, "the order is as before")
		l.Release()
		time.Sleep(27*time.Minute + 30*time.Second)
		p.Expire()
		require.Equal(t, []int{2}, s.closed, "the other resource has not been idle for an hour")
		time.Sleep(time.Hour)
		for _, l := range p.AcquireAllIdle() {
			l.ReleaseUnused()
		}
		require.Equal(t, []int{2, 1, 3}, s.closed)
		all[3].Release()
	})
}

// The figures are the same as those of puddle for the same steps.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks, fails := 0, errNo
		p := respool.New(respool.Options[int]{
			Max:  1,
			Open: func(ctx context.Context) (int, error) { return 1, errors.Join(fails, suspend.Sleep(ctx, time.Second)) },
			Check: func(ctx context.Context, _ int) error {
				checks++
				return suspend.Sleep(ctx, time.Minute)
			},
			Fresh: time.Hour,
		})
		counts := func(acquired, empty, cancelled int, d time.Duration) {
			t.Helper()
			s := p.Stats()
			require.Equal(t, respool.Stats{Idle: s.Idle, Leased: s.Leased, Opened: s.Opened,
				AcquireCount: acquired, EmptyAcquireCount: empty, CanceledAcquireCount: cancelled, AcquireDuration: d}, s)
		}
		_, err := p.Acquire(bg)
		require.ErrorIs(t, err, errNo)
		counts(0, 0, 0, 0)
		fails = nil
		acquire(t, p).Release()
		counts(1, 1, 0, time.Second)
		l := acquire(t, p)
		counts(2, 1, 0, time.Second)
		time.AfterFunc(time.Minute, l.Release)
		l = acquire(t, p)
		counts(3, 2, 0, time.Minute+time.Second)
		ctx, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		for i := range 2 { // waits at first; in the second pass, ctx has ended before the call
			_, err = p.Acquire(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			counts(3, 2, i+1, time.Minute+time.Second)
		}
		l.Release()
		_, ok := p.TryAcquire()
		require.True(t, ok)
		counts(4, 2, 2, time.Minute+time.Second)
		_, ok = p.TryAcquire()
		require.False(t, ok)
		counts(4, 2, 2, time.Minute+time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		p := respool.New(respool.Options[int]{
			Max:   1,
			Open:  func(ctx context.Context) (int, error) { return 1, suspend.Sleep(ctx, time.Second) },
			Check: func(ctx context.Context, _ int) error { return suspend.Sleep(ctx, time.Minute) },
		})
		acquire(t, p).Release()
		acquire(t, p).Release()
		require.Equal(t, []any{2, 1, time.Minute + time.Second}, []any{p.Stats().AcquireCount, p.Stats().EmptyAcquireCount, p.Stats().AcquireDuration})
		for i, d := range []time.Duration{time.Second, 500 * time.Millisecond} { // the time of Check, and the time of Open
			ctx, stop := context.WithTimeout(bg, d)
			_, err := p.Acquire(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, i+1, p.Stats().CanceledAcquireCount)
			stop()
		}
		go p.Close()
		synctest.Wait()
		_, err := p.Acquire(bg)
		require.Equal(t, respool.ErrClosed, err)
		require.Equal(t, 2, p.Stats().CanceledAcquireCount)
	})
}

// On every scheduler, with Resets at any time, a resource has one task at a time, and each is closed once. If its Open began
// before a Reset, it is not leased after the Reset.
func TestConservationWithResets(t *testing.T) {
	const limit = 3
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var done, tried, all, cancelled atomic.Int64
		covered := func() bool { return done.Load() > 0 && tried.Load() > 0 && all.Load() > 0 && cancelled.Load() > 0 }
		for round := 0; schedtest.More(round, 10, covered); round++ {
			type resource struct {
				epoch        int64 // the number of the last Reset that began before the Open
				used, closed atomic.Bool
			}
			var resets, opened, closed atomic.Int64
			var over sync.Map // the numbers of the Resets that have returned
			last := func() (n int64) {
				over.Range(func(k, _ any) bool { n = max(n, k.(int64)); return true })
				return n
			}
			p := respool.New(respool.Options[*resource]{
				Max: limit,
				Open: func(ctx context.Context) (*resource, error) {
					r := &resource{epoch: resets.Load()}
					suspend.Yield()
					opened.Add(1)
					return r, nil
				},
				Close: func(r *resource) {
					if suspend.Yield(); r.closed.Swap(true) || r.used.Load() {
						t.Error("closed twice, or while it is used")
					}
					closed.Add(1)
				},
			})
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for range 20 {
					ctx, stop := schedtest.MayCancel(rng)
					before := last()
					var leases []*respool.Lease[*resource]
					switch rng.IntN(4) {
					case 0:
						if l, ok := p.TryAcquire(); ok {
							leases = append(leases, l)
							tried.Add(1)
						}
					case 1:
						leases = p.AcquireAllIdle()
						all.Add(int64(len(leases)))
					default:
						if l, err := p.Acquire(ctx); err == nil {
							leases = append(leases, l)
							done.Add(1)
						} else {
							cancelled.Add(1)
						}
					}
					for _, l := range leases {
						if l.Value.used.Swap(true) {
							t.Error("two tasks have one resource")
						}
						if l.Value.epoch < before {
							t.Errorf("a resource of epoch %d was leased after Reset %d", l.Value.epoch, before)
						}
					}
					schedtest.Yield(rng.IntN(3))
					for _, l := range leases {
						l.Value.used.Store(false)
						if rng.IntN(2) == 0 {
							l.Release()
						} else {
							l.ReleaseUnused()
						}
					}
					if stop(); rng.IntN(8) == 0 {
						n := resets.Add(1)
						p.Reset()
						over.Store(n, true)
					}
				}
			})
			require.LessOrEqual(t, p.Stats().Idle, limit)
			require.NoError(t, p.Shutdown(bg))
			require.Equal(t, opened.Load(), closed.Load())
			require.Equal(t, respool.Stats{Opened: int(opened.Load())}, present(p))
		}
		if !covered() {
			t.Errorf("uncovered: %d done, %d tried, %d of all, %d cancelled", done.Load(), tried.Load(), all.Load(), cancelled.Load())
		}
	})
}

// After the failover of a server, connections to the old one are not used any more.
func ExamplePool_Reset() {
	server := "old"
	conns := respool.New(respool.Options[string]{
		Max:   2,
		Open:  func(context.Context) (string, error) { return "connection to the " + server, nil },
		Close: func(c string) { fmt.Println("close", c) },
	})
	_ = fifo.Run(bg, func(ctx context.Context) error {
		l, err := conns.Acquire(ctx)
		if err != nil {
			return err
		}
		server = "new"
		conns.Reset()
		l.Release()
		if l, err = conns.Acquire(ctx); err == nil {
			fmt.Println(l.Value)
			l.Release()
		}
		return err
	})
	// Output:
	// close connection to the old
	// connection to the new
}

// A cache is refreshed only if a connection is idle anyway.
func ExamplePool_TryAcquire() {
	conns := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 7, nil }})
	_, ok := conns.TryAcquire()
	fmt.Println(ok)
	l, _ := conns.Acquire(bg)
	l.Release()
	if l, ok := conns.TryAcquire(); ok {
		fmt.Println(l.Value)
		l.Release()
	}
	// Output:
	// false
	// 7
}

// A task keeps idle connections alive. Those that do not answer are closed.
func ExamplePool_AcquireAllIdle() {
	conns := respool.New(respool.Options[string]{
		Max:   2,
		Open:  func(context.Context) (string, error) { return "connection", nil },
		Close: func(c string) { fmt.Println("close", c) },
	})
	ping := func(string) error { return errors.New("no answer") }
	l, _ := conns.Acquire(bg)
	l.Release()
	for _, l := range conns.AcquireAllIdle() {
		if ping(l.Value) != nil {
			l.Discard()
		}
		l.ReleaseUnused()
	}
	fmt.Println(conns.Stats().Idle)
	// Output:
	// close connection
	// 0
}

// Stats reports how many calls had to wait, and how long on average.
func ExamplePool_Stats() {
	conns := respool.New(respool.Options[string]{Max: 1, Open: func(context.Context) (string, error) { return "connection", nil }})
	for range 4 {
		if l, err := conns.Acquire(bg); err == nil {
			l.Release()
		}
	}
	s := conns.Stats()
	fmt.Printf("%d of %d have waited, each for less than a minute: %v\n", s.EmptyAcquireCount, s.AcquireCount, s.AcquireDuration/time.Duration(s.EmptyAcquireCount) < time.Minute)
	// Output: 1 of 4 have waited, each for less than a minute: true
}
