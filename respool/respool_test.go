package respool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

func TestMain(m *testing.M) { schedtest.Main(m) }

var (
	bg    = context.Background()
	errNo = errors.New("no")
)

// A server hands out numbered connections.
type server struct {
	mu     sync.Mutex
	opened int
	closed []int
}

func (s *server) options(limit int) respool.Options[int] {
	return respool.Options[int]{
		Max: limit,
		Open: func(context.Context) (int, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened++
			return s.opened, nil
		},
		Close: func(n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.closed = append(s.closed, n)
		},
	}
}

func acquire(t *testing.T, p *respool.Pool[int]) *respool.Lease[int] {
	t.Helper()
	l, err := p.Acquire(bg)
	require.NoError(t, err)
	return l
}

// present returns the numbers of resources, without the counts of calls.
func present[R any](p *respool.Pool[R]) respool.Stats {
	s := p.Stats()
	return respool.Stats{Idle: s.Idle, Leased: s.Leased, Opened: s.Opened}
}

func TestTheLastReleasedIsNext(t *testing.T) {
	var s server
	p := respool.New(s.options(3))
	a, b := acquire(t, p), acquire(t, p)
	a.Release()
	b.Release()
	require.Equal(t, respool.Stats{Idle: 2, Opened: 2}, present(p))
	c, d := acquire(t, p), acquire(t, p)
	require.Equal(t, []int{2, 1}, []int{c.Value, d.Value})
	require.Equal(t, 3, acquire(t, p).Value)
	require.Equal(t, respool.Stats{Leased: 3, Opened: 3}, present(p))
	require.Empty(t, s.closed)
}

func TestMax(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		var s server
		p := respool.New(s.options(2))
		a, b := acquire(t, p), acquire(t, p)
		var got []string
		wait := func(name string, ctx context.Context) {
			_ = on.Go(func() {
				l, err := p.Acquire(ctx)
				if err != nil {
					got = append(got, fmt.Sprint(name, " ", err))
					return
				}
				got = append(got, fmt.Sprint(name, " has ", l.Value))
				l.Release()
			})
		}
		ctx, cancel := schedtest.WithCancel()
		wait("first", bg)
		wait("second", ctx)
		wait("third", bg)
		schedtest.Settle()
		require.Empty(t, got)
		cancel()
		schedtest.Settle()
		b.Release()
		schedtest.Settle()
		require.Equal(t, []string{"second context canceled", "first has 2", "third has 2"}, got)
		a.Release()
		require.Equal(t, respool.Stats{Idle: 2, Opened: 2}, present(p))
	})
}

// An Open that returns no resource passes its turn to the next task.
func TestOpenFails(t *testing.T) {
	for name, fails := range map[string]func(ctx context.Context) (int, error){
		"an error": func(context.Context) (int, error) { return 0, errNo },
		"a panic":  func(context.Context) (int, error) { panic(errNo) },
		"an exit":  func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
		"too late": func(ctx context.Context) (int, error) { return 0, errors.Join(errNo, suspend.Sleep(ctx, time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s server
				o := s.options(1)
				first, open := true, o.Open
				o.Open = func(ctx context.Context) (int, error) {
					if first {
						first = false
						suspend.Yield()
						return fails(ctx)
					}
					return open(ctx)
				}
				p := respool.New(o)
				ctx, cancel := context.WithTimeout(bg, time.Minute)
				defer cancel()
				var err error
				go func() {
					defer func() {
						if r := recover(); r != nil {
							err = r.(error)
						}
					}()
					_, err = p.Acquire(ctx)
				}()
				synctest.Wait()
				l := acquire(t, p)
				require.Equal(t, 1, l.Value)
				l.Release()
				synctest.Wait()
				require.Equal(t, respool.Stats{Idle: 1, Opened: 1}, present(p))
				require.ErrorIs(t, err, map[string]error{"an error": errNo, "a panic": errNo, "too late": context.DeadlineExceeded}[name], err)
			})
		})
	}
}

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		var checked []int
		o := s.options(3)
		o.Fresh = time.Second
		o.Check = func(ctx context.Context, n int) error {
			checked = append(checked, n)
			if n == 1 {
				return nil
			}
			return errNo
		}
		p := respool.New(o)
		leases := []*respool.Lease[int]{acquire(t, p), acquire(t, p), acquire(t, p)}
		for _, l := range leases {
			l.Release()
		}
		time.Sleep(time.Second - 1)
		l := acquire(t, p)
		require.Equal(t, 3, l.Value)
		l.Release()
		require.Empty(t, checked)
		time.Sleep(time.Second)
		require.Equal(t, 1, acquire(t, p).Value)
		require.Equal(t, []int{3, 2, 1}, checked)
		require.Equal(t, []int{3, 2}, s.closed)
	})
}

// If the caller's context ends during a Check, the pool does not check all other resources.
func TestACheckThatIsCutOff(t *testing.T) {
	var s server
	o := s.options(2)
	ctx, cancel := context.WithCancel(bg)
	o.Check = func(ctx context.Context, n int) error { cancel(); return ctx.Err() }
	p := respool.New(o)
	a, b := acquire(t, p), acquire(t, p)
	a.Release()
	b.Release()
	_, err := p.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []int{2}, s.closed)
	require.Equal(t, respool.Stats{Idle: 1, Opened: 2}, present(p))
}

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(3)
		o.MaxIdleTime, o.MaxLifetime = time.Minute, time.Hour
		p := respool.New(o)
		a, b, c := acquire(t, p), acquire(t, p), acquire(t, p)
		a.Release()
		time.Sleep(time.Minute)
		b.Release()
		c.Release()
		p.Expire()
		require.Empty(t, s.closed) // idle for a minute, which is not too long
		time.Sleep(time.Nanosecond)
		p.Expire()
		require.Equal(t, []int{1}, s.closed)
		require.Equal(t, respool.Stats{Idle: 2, Opened: 3}, present(p))

		time.Sleep(time.Minute)
		require.Equal(t, 4, acquire(t, p).Value, "an old resource is not used")
		require.Equal(t, []int{1, 3, 2}, s.closed)

		d := acquire(t, p)
		time.Sleep(time.Hour + 1)
		d.Release()
		require.Equal(t, []int{1, 3, 2, 5}, s.closed)
		p.Expire()
		require.Equal(t, respool.Stats{Leased: 1, Opened: 5}, present(p))
	})
}

// Expire leaves leased resources alone, and takes one permit at a time.
func TestExpireBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(2)
		o.MaxIdleTime = time.Minute
		closes := o.Close
		o.Close = func(n int) { time.Sleep(time.Second); closes(n) }
		p := respool.New(o)
		a, b := acquire(t, p), acquire(t, p)
		a.Release()
		b.Release()
		time.Sleep(time.Hour)
		go p.Expire()
		synctest.Wait()
		require.Equal(t, respool.Stats{Idle: 1, Leased: 1, Opened: 2}, present(p))
		began := time.Now()
		c, d := acquire(t, p), acquire(t, p) // one of them waits until a resource is closed
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		synctest.Wait()
		require.Len(t, s.closed, 2)
		p.Expire()
		c.Release()
		d.Release()
		require.Equal(t, respool.Stats{Idle: 2, Opened: 4}, present(p))
	})
}

func TestResourcesThatAreNotKept(t *testing.T) {
	var s server
	o := s.options(1)
	o.Reuse = func(n int) bool {
		if n == 3 {
			panic(errNo)
		}
		return n != 2
	}
	p := respool.New(o)
	l := acquire(t, p)
	l.Discard()
	l.Release()
	require.Equal(t, []int{1}, s.closed)
	acquire(t, p).Release()
	require.Equal(t, []int{1, 2}, s.closed)
	l = acquire(t, p)
	require.Panics(t, l.Release)
	require.Equal(t, []int{1, 2, 3}, s.closed)
	schedtest.Panics(t, "respool: Lease released twice", l.Release)
	l.Discard()
	acquire(t, p).Release()
	require.Equal(t, 4, acquire(t, p).Value)
	require.Equal(t, []int{1, 2, 3}, s.closed)
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		p := respool.New(s.options(2))
		a, b := acquire(t, p), acquire(t, p)
		var first *respool.Lease[int]
		var waited, shut error
		go func() { first, waited = p.Acquire(bg) }()
		synctest.Wait()
		a.Release()
		synctest.Wait()
		require.NoError(t, waited)
		go func() { _, waited = p.Acquire(bg) }()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		require.ErrorIs(t, p.Shutdown(ctx), context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, respool.ErrClosed, waited)
		require.Equal(t, respool.ErrClosed, p.Close())
		require.ErrorIs(t, p.Close(), suspend.ErrClosed)
		_, err := p.Acquire(bg)
		require.Equal(t, respool.ErrClosed, err)
		require.Empty(t, s.closed)
		shut = errNo
		go func() { shut = p.Shutdown(bg) }()
		b.Release()
		synctest.Wait()
		require.Equal(t, errNo, shut, "a lease is left")
		require.Equal(t, []int{2}, s.closed)
		first.Release()
		synctest.Wait()
		require.NoError(t, shut)
		require.Equal(t, []int{2, 1}, s.closed)
	})
}

// The Close of an idle pool closes all resources, even if the Close of one panics, and opens none.
func TestCloseOfAnIdlePool(t *testing.T) {
	var s server
	o := s.options(3)
	closes := o.Close
	o.Close = func(n int) {
		closes(n)
		if n == 3 {
			panic(errNo)
		}
	}
	p := respool.New(o)
	for _, l := range []*respool.Lease[int]{acquire(t, p), acquire(t, p), acquire(t, p)} {
		l.Release()
	}
	require.PanicsWithValue(t, errNo, func() { _ = p.Close() })
	require.Equal(t, []int{3, 2, 1}, s.closed)
	require.NoError(t, p.Shutdown(bg))
	require.Equal(t, respool.Stats{Opened: 3}, present(p))
}

// The pool is closed while an Acquire has its turn. The Acquire returns the resource that it has, or opens none.
func TestCloseDuringAnAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o := s.options(2)
		open := o.Open
		o.Open = func(ctx context.Context) (int, error) { time.Sleep(time.Second); return open(ctx) }
		o.Check = func(context.Context, int) error { time.Sleep(time.Second); return errNo }
		p := respool.New(o)
		acquire(t, p).Release()
		var checked, opened error
		var l *respool.Lease[int]
		go func() { _, checked = p.Acquire(bg) }()
		synctest.Wait()
		go func() { l, opened = p.Acquire(bg) }()
		synctest.Wait()
		require.NoError(t, p.Close())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, respool.ErrClosed, checked)
		require.NoError(t, opened)
		require.Equal(t, []int{1}, s.closed)
		l.Release()
		require.Equal(t, []int{1, 2}, s.closed)
		require.NoError(t, p.Shutdown(bg))
	})
}

func TestMisuse(t *testing.T) {
	schedtest.Panics(t, "respool: Max is not positive", func() { respool.New(respool.Options[int]{Open: new(server).options(1).Open}) })
	schedtest.Panics(t, "respool: nil Open", func() { respool.New(respool.Options[int]{Max: 1}) })
}

// On all schedulers at once, a resource has one task at a time, there are never more than Max, each is closed once, and each
// permit comes back.
func TestConservation(t *testing.T) {
	const limit = 3
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var done, failed, cancelled atomic.Int64
		for round := 0; schedtest.More(round, 10, func() bool { return done.Load() > 0 && failed.Load() > 0 && cancelled.Load() > 0 }); round++ {
			type resource struct{ used, closed atomic.Bool }
			var live, opened, closed atomic.Int64 // live counts the resources that are leased or being opened
			comes := func() {
				if n := live.Add(1); n > limit {
					t.Errorf("%d resources, of %d", n, limit)
				}
			}
			p := respool.New(respool.Options[*resource]{
				Max: limit,
				Open: func(ctx context.Context) (*resource, error) {
					comes()
					defer live.Add(-1)
					if suspend.Yield(); rand.IntN(8) == 0 {
						return nil, errNo
					}
					opened.Add(1)
					return new(resource), nil
				},
				Close: func(r *resource) {
					if suspend.Yield(); r.closed.Swap(true) || r.used.Load() {
						t.Error("closed twice, or while it is used")
					}
					closed.Add(1)
				},
				Check:       func(context.Context, *resource) error { return []error{nil, nil, errNo}[rand.IntN(3)] },
				Reuse:       func(*resource) bool { return rand.IntN(4) > 0 },
				MaxIdleTime: time.Duration(round%2) * time.Microsecond,
			})
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for k := range 20 {
					ctx, cancel := schedtest.MayCancel(rng)
					l, err := p.Acquire(ctx)
					switch {
					case err == nil:
						comes()
						if l.Value.used.Swap(true) {
							t.Error("two tasks have one resource")
						}
						schedtest.Yield(rng.IntN(3))
						if rng.IntN(8) == 0 {
							l.Discard()
						}
						l.Value.used.Store(false)
						live.Add(-1)
						if l.Release(); p.Stats().Idle > limit {
							t.Error("too many are idle")
						}
						done.Add(1)
					case errors.Is(err, errNo):
						failed.Add(1)
					case errors.Is(err, context.Canceled) && ctx.Err() != nil:
						cancelled.Add(1)
					case round%3 == 0 && errors.Is(err, respool.ErrClosed):
					default:
						t.Error(err)
					}
					cancel()
					switch {
					case rng.IntN(8) == 0:
						p.Expire()
					case round%3 == 0 && i == 0 && k == 10:
						_ = p.Close()
					}
				}
			})
			if err := p.Shutdown(bg); err != nil {
				t.Error(err)
			}
			require.Equal(t, opened.Load(), closed.Load())
			require.Zero(t, live.Load())
			require.Equal(t, respool.Stats{Opened: int(opened.Load())}, present(p))
		}
		if done.Load() == 0 || failed.Load() == 0 || cancelled.Load() == 0 {
			t.Errorf("uncovered: %d done, %d failed, %d cancelled", done.Load(), failed.Load(), cancelled.Load())
		}
	})
}

func TestAllocs(t *testing.T) {
	p := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
	if got := testing.AllocsPerRun(100, func() { l, _ := p.Acquire(bg); l.Release() }); got > 1 { // the Lease
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkAcquire(b *testing.B) {
	p := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
	for b.Loop() {
		l, _ := p.Acquire(bg)
		l.Release()
	}
}

// Three tasks share two connections, on one goroutine. The last one has to wait.
func Example() {
	conns := respool.New(respool.Options[string]{
		Max:   2,
		Open:  func(context.Context) (string, error) { return "a connection", nil },
		Close: func(c string) { fmt.Println("close", c) },
	})
	_ = fifo.Run(bg, func(ctx context.Context) error {
		for i := range 3 {
			_ = suspend.Here().Go(func() {
				l, err := conns.Acquire(ctx)
				if err != nil {
					return
				}
				defer l.Release()
				fmt.Printf("task %d has %s\n", i, l.Value)
				suspend.Yield() // stands for a request
			})
		}
		return nil
	})
	_ = conns.Shutdown(bg)
	// Unordered output:
	// task 0 has a connection
	// task 1 has a connection
	// task 2 has a connection
	// close a connection
	// close a connection
}

// A connection that has failed is not used again, and Expire closes one that was idle for too long.
func ExamplePool_Expire() {
	opened := 0
	conns := respool.New(respool.Options[string]{
		Max:         2,
		Open:        func(context.Context) (string, error) { opened++; return fmt.Sprint("connection ", opened), nil },
		Close:       func(c string) { fmt.Println("close", c) },
		MaxIdleTime: time.Millisecond,
	})
	request := func(fails bool) {
		l, err := conns.Acquire(bg)
		if err != nil {
			return
		}
		defer l.Release()
		if fails {
			l.Discard()
		}
	}
	request(true)
	request(false)
	time.Sleep(5 * time.Millisecond)
	conns.Expire() // a service does this regularly, with a rate.Ticker
	fmt.Println(conns.Stats().Idle)
	// Output:
	// close connection 1
	// close connection 2
	// 0
}

// Callers give up before Open returns. Their calls of Open continue, so that a later caller gets a resource. If each caller
// began a new call, none would ever be served.
func TestImpatientCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := 0
		type key struct{}
		p := respool.New(respool.Options[int]{Max: 2, Open: func(ctx context.Context) (int, error) {
			opens++
			require.Equal(t, "a value", ctx.Value(key{}))
			return opens, suspend.Sleep(ctx, 5500*time.Millisecond)
		}})
		served := 0
		for range 12 {
			ctx, stop := context.WithTimeout(context.WithValue(bg, key{}, "a value"), time.Second)
			if l, err := p.Acquire(ctx); err == nil {
				l.Release()
				served++
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			stop()
		}
		require.Equal(t, 7, served)
		require.Equal(t, 2, opens)
		time.Sleep(time.Minute)
		require.Equal(t, respool.Stats{Idle: 2, Opened: 2}, present(p))
		require.NoError(t, p.Shutdown(bg))
	})
}

// Two Acquires wait for calls of Open, and another resource is released meanwhile. The first Acquire takes it, and the second
// takes the result of the first Open.
func TestAReleaseBesideAnOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := 0
		p := respool.New(respool.Options[int]{Max: 3, Open: func(ctx context.Context) (int, error) {
			opens++
			switch n := opens; n {
			case 1:
				return n, nil
			case 2:
				return n, suspend.Sleep(ctx, time.Minute)
			default:
				return n, errors.Join(errNo, suspend.Sleep(ctx, time.Hour))
			}
		}})
		first, begun := acquire(t, p), time.Now()
		var mu sync.Mutex
		var got []string
		for i := range 2 {
			go func() {
				l, err := p.Acquire(bg)
				require.NoError(t, err)
				mu.Lock()
				got = append(got, fmt.Sprint(i, " has ", l.Value, " after ", time.Since(begun)))
				mu.Unlock()
				if i == 1 {
					l.Release()
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		first.Release()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"0 has 1 after 1s", "1 has 2 after 1m0s"}, got)
		require.Equal(t, respool.Stats{Idle: 1, Leased: 1, Opened: 2}, present(p), "no Acquire gets the failure of an Open for which none waits")
	})
}

// The resource of the first Open goes to the second Acquire, whose own Open fails. Then the first Acquire, whose Open has ended,
// gets this failure.
func TestAFailureOfTheLastOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, exits := range []bool{false, true} {
			opens := 0
			p := respool.New(respool.Options[int]{Max: 3, Open: func(ctx context.Context) (int, error) {
				opens++
				switch n := opens; n {
				case 1:
					return n, nil
				case 2:
					_ = suspend.Sleep(ctx, time.Hour)
					if exits {
						runtime.Goexit()
					}
					return 0, errNo
				default:
					return n, suspend.Sleep(ctx, time.Minute)
				}
			}})
			first, errs := acquire(t, p), make([]error, 2)
			for i := range errs {
				go func() {
					_, errs[i] = p.Acquire(bg)
				}()
				synctest.Wait()
			}
			first.Discard()
			first.Release()
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if exits { // the first has the resource, and the second waits for the Open that does not return
				require.Equal(t, []error{nil, suspend.ErrAbandoned}, errs)
			} else {
				require.Equal(t, []error{nil, errNo}, errs)
			}
			require.Equal(t, 1, p.Stats().Leased)
		}
	})
}

// A Close cancels the calls of Open for which no Acquire waits any more.
func TestCloseCancelsAnOpen(t *testing.T) {
	for _, leavesFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			p := respool.New(respool.Options[int]{Max: 2, Open: func(ctx context.Context) (int, error) { return 0, suspend.Sleep(ctx, time.Hour) }})
			ctx, leave := context.WithCancel(bg)
			go func() {
				_, err := p.Acquire(ctx)
				require.ErrorIs(t, err, context.Canceled)
			}()
			synctest.Wait()
			steps := []func(){leave, func() { require.NoError(t, p.Close()) }}
			if !leavesFirst {
				slices.Reverse(steps)
			}
			for _, step := range steps {
				time.Sleep(time.Second)
				step()
			}
			require.NoError(t, p.Shutdown(bg))
			require.Equal(t, 2*time.Second, time.Since(begun))
		})
	}
}

// A resource that takes a long time to close does not delay the next Acquire.
func TestASlowClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil },
			Close: func(int) { _ = suspend.Sleep(bg, time.Minute) }})
		l, begun := acquire(t, p), time.Now()
		l.Discard()
		go l.Release()
		synctest.Wait()
		acquire(t, p).Release()
		require.Zero(t, time.Since(begun))
		require.NoError(t, p.Shutdown(bg))
		require.Equal(t, time.Minute, time.Since(begun))
	})
}

// Expire closes all resources that are too old. A resource whose Check panics is closed, and its permit is free again.
func TestAllOldOnesAndACheckThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		o, checks := s.options(3), errNo
		o.MaxIdleTime = time.Minute
		o.Check = func(context.Context, int) error { panic(checks) }
		p := respool.New(o)
		for _, l := range []*respool.Lease[int]{acquire(t, p), acquire(t, p), acquire(t, p)} {
			l.Release()
		}
		time.Sleep(time.Hour)
		p.Expire()
		p.Expire()
		require.Len(t, s.closed, 3)
		require.Equal(t, respool.Stats{Opened: 3}, present(p))
		acquire(t, p).Release()
		schedtest.Panics(t, errNo, func() { _, _ = p.Acquire(bg) })
		require.Len(t, s.closed, 4)
		for range 3 {
			acquire(t, p)
		}
	})
}

// A resource that was closed or leased is not kept alive by the pool.
func TestNothingIsRetained(t *testing.T) {
	var objects schedtest.Objects
	p := respool.New(respool.Options[*schedtest.Object]{Max: 5, Open: func(context.Context) (*schedtest.Object, error) { return objects.New(), nil }})
	func() {
		var all []*respool.Lease[*schedtest.Object]
		for range 5 {
			l, err := p.Acquire(bg)
			require.NoError(t, err)
			all = append(all, l)
		}
		for i, l := range all {
			if i%2 == 0 {
				l.Discard()
			}
			l.Release()
			schedtest.Panics(t, "respool: Lease released twice", l.Release)
		}
	}()
	objects.Collected(t, 2)
	require.NoError(t, p.Close())
	require.Equal(t, respool.ErrClosed, p.Close())
	objects.Collected(t, 0)
	runtime.KeepAlive(p)
}

// The first Acquire gives up its Open, which hangs. Then the pool is closed, and the last waiting Acquire is served. No Acquire
// needs the Open any more, so its context ends.
func TestTheLastServedAfterACloseCancelsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens, open := 0, make(chan struct{})
		p := respool.New(respool.Options[int]{Max: 2, Open: func(ctx context.Context) (int, error) {
			if opens++; opens == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			<-open
			return opens, nil
		}})
		first, stop := context.WithCancel(context.Background())
		go func() { _, _ = p.Acquire(first) }()
		synctest.Wait()
		go func() {
			if l, err := p.Acquire(context.Background()); err == nil {
				l.Release()
			}
		}()
		synctest.Wait()
		stop()
		synctest.Wait()
		go p.Close()
		synctest.Wait()
		close(open)
		began := time.Now()
		_ = p.Shutdown(context.Background())
		require.Zero(t, time.Since(began), "an Open without waiters continues")
	})
}
