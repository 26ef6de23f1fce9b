package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

// A lock is a Mutex, or a Semaphore with n permits for each key.
type lock interface {
	TryAcquire(key int) bool
	Acquire(ctx context.Context, key int) error
	Release(key int)
	Len() int
}

type mutex struct{ keyed.Mutex[int] }

func (m *mutex) TryAcquire(key int) bool                    { return m.TryLock(key) }
func (m *mutex) Acquire(ctx context.Context, key int) error { return m.LockContext(ctx, key) }
func (m *mutex) Release(key int)                            { m.Unlock(key) }

// size returns the number of keys of a Cache that are loaded or being loaded.
func size(c interface{ Stats() keyed.CacheStats }) int { s := c.Stats(); return s.Kept + s.Loading }

var locks = map[string]func() (l lock, n int64){
	"Mutex":     func() (lock, int64) { return new(mutex), 1 },
	"Semaphore": func() (lock, int64) { return keyed.NewSemaphore[int](2), 2 },
}

// Tasks hold at most n permits of a key, each that is not cancelled gets one, and in the end no key is left.
func TestConservation(t *testing.T) {
	for name, anew := range locks {
		t.Run(name, func(t *testing.T) {
			schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
				var got, failed, tried atomic.Int64
				covered := func() bool { return got.Load() > 0 && failed.Load() > 0 && tried.Load() > 0 }
				for round := 0; schedtest.More(round, 60, covered); round++ {
					l, n := anew()
					var held [2]atomic.Int64
					schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
						for range 8 {
							key := rng.IntN(2)
							ctx, cancel := schedtest.MayCancel(rng)
							if rng.IntN(4) == 0 && l.TryAcquire(key) {
								tried.Add(1)
							} else if err := l.Acquire(ctx, key); err != nil {
								failed.Add(1)
								cancel()
								continue
							}
							if held[key].Add(1) > n {
								t.Errorf("%d hold %d", held[key].Load(), key)
							}
							suspend.Yield()
							got.Add(1)
							held[key].Add(-1)
							l.Release(key)
							cancel()
						}
					})
					if l.Len() != 0 {
						t.Fatalf("%d keys are left", l.Len())
					}
				}
			})
		})
	}
}

// A waiting task keeps its key in the map. Another key is free meanwhile, and a failed call leaves no key behind.
func TestKeys(t *testing.T) {
	for name, anew := range locks {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				l, n := anew()
				for range n {
					require.NoError(t, l.Acquire(bg, 1))
				}
				require.False(t, l.TryAcquire(1))
				require.True(t, l.TryAcquire(2))
				ctx, cancel := schedtest.WithCancel()
				var first, second error
				_ = s.Go(func() { first = l.Acquire(ctx, 1) })
				_ = s.Go(func() { second = l.Acquire(bg, 1) })
				suspend.Yield()
				cancel()
				schedtest.Settle()
				require.ErrorIs(t, first, context.Canceled)
				l.Release(1)
				schedtest.Settle()
				require.NoError(t, second)
				for range n {
					require.Equal(t, 2, l.Len())
					l.Release(1)
				}
				l.Release(2)
				require.Zero(t, l.Len())
				require.ErrorIs(t, l.Acquire(ctx, 3), context.Canceled)
				require.Zero(t, l.Len())
			})
		})
	}
	schedtest.Panics(t, "keyed: Unlock of a key that is not locked", func() { new(keyed.Mutex[int]).Unlock(1) })
	schedtest.Panics(t, "keyed: Release of a key for which no permit is held", func() { keyed.NewSemaphore[int](1).Release(1) })
	schedtest.Panics(t, "keyed: NewSemaphore with less than one permit", func() { keyed.NewSemaphore[int](0) })
	schedtest.Panics(t, "keyed: NewCache with a nil function", func() { keyed.NewCache[int, int](nil, keyed.CacheOptions{}) })
}

// All Gets that wait at the same time share one load, on every scheduler. After a failure there is another load.
func TestOneLoadForAll(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const n = 20
		var loads, waiting atomic.Int32
		c := keyed.NewCache(func(ctx context.Context, key int) (int, error) {
			for waiting.Load() < n {
				suspend.Yield()
			}
			if loads.Add(1) == 1 {
				return 0, errOops
			}
			return key + int(loads.Load()), nil
		}, keyed.CacheOptions{TTL: time.Hour})
		for _, want := range []struct {
			v   int
			err error
		}{{0, errOops}, {9, nil}, {9, nil}} {
			waiting.Store(0)
			var fs []func()
			for range n {
				fs = append(fs, func() {
					waiting.Add(1)
					v, err := c.Get(bg, 7)
					for err == nil && want.err != nil { // this Get came after the failed load
						v, err = want.v, want.err
					}
					if v != want.v || err != want.err {
						t.Errorf("%d, %v", v, err)
					}
				})
			}
			schedtest.Run(t, s, fs...)
		}
	})
}

// A load is cancelled when no Get waits for it any more. The next Get loads again, even while the first load is still ending.
func TestALoadWithoutWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := suspend.Goroutines
		type key struct{}
		gate, loads := promise.New[int](), 0
		var cause error
		c := keyed.NewCache(func(ctx context.Context, k string) (int, error) {
			if loads++; loads > 1 {
				return loads, nil
			}
			require.Equal(t, "a value", ctx.Value(key{}))
			_, cause = promise.New[int]().Await(ctx)
			return gate.Await(bg)
		}, keyed.CacheOptions{TTL: time.Hour})
		ctx, cancel := schedtest.WithCancel()
		errs := make([]error, 2)
		for i := range errs {
			_ = s.Go(func() { _, errs[i] = c.Get(context.WithValue(ctx, key{}, "a value"), "k") })
			synctest.Wait()
		}
		stays, leave := schedtest.WithCancel()
		_ = s.Go(func() { _, _ = c.Get(stays, "k") })
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.ErrorIs(t, errs[0], context.Canceled)
		require.ErrorIs(t, errs[1], context.Canceled)
		require.NoError(t, cause, "one still waits")
		leave()
		synctest.Wait()
		require.ErrorIs(t, cause, context.Canceled)
		require.Zero(t, size(c))
		for range 2 {
			v, err := c.Get(bg, "k")
			require.Equal(t, 2, v)
			require.NoError(t, err)
		}
		_ = gate.Fail(errOops)
		synctest.Wait()
		v, _ := c.Get(bg, "k")
		require.Equal(t, 2, v, "the load without waiters has left nothing behind")
		_, err := c.Get(ctx, "k")
		require.ErrorIs(t, err, context.Canceled, "also if it is loaded")
	})
}

func TestTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := map[string]int{}
		load := func(_ context.Context, key string) (int, error) { loads[key]++; return loads[key], nil }
		c, none := keyed.NewCache(load, keyed.CacheOptions{TTL: time.Minute}), keyed.NewCache(load, keyed.CacheOptions{})
		get := func(c *keyed.Cache[string, int], key string, want int) {
			t.Helper()
			v, err := c.Get(bg, key)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		get(c, "a", 1)
		time.Sleep(40 * time.Second)
		get(c, "b", 1)
		get(c, "a", 1)
		time.Sleep(20 * time.Second)
		get(c, "b", 1)
		require.Equal(t, 1, size(c), "a is over")
		get(c, "a", 2)
		c.Forget("b")
		c.Forget("c")
		get(c, "b", 2)
		time.Sleep(time.Hour)
		get(c, "c", 1)
		require.Equal(t, 1, size(c))
		get(none, "d", 1)
		synctest.Wait()
		require.Zero(t, size(none))
		get(none, "d", 2)
	})
}

// A forgotten load still serves the Gets that wait for it. A load that does not return is an error, and so is a scheduler that
// refuses.
func TestOtherEndsOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := suspend.Goroutines
		gate, loads := promise.New[int](), 0
		c := keyed.NewCache(func(ctx context.Context, key int) (int, error) {
			switch loads++; loads {
			case 1:
				return gate.Await(ctx)
			case 2:
				return 2, nil
			}
			runtime.Goexit()
			return 0, nil
		}, keyed.CacheOptions{TTL: time.Hour})
		old := 0
		_ = s.Go(func() { old, _ = c.Get(bg, 1) })
		synctest.Wait()
		c.Forget(1)
		v, _ := c.Get(bg, 1)
		_ = gate.Fill(1)
		synctest.Wait()
		require.Equal(t, []int{1, 2}, []int{old, v})
		v, _ = c.Get(bg, 1)
		require.Equal(t, 2, v)
		_, err := c.Get(bg, 3)
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		require.Equal(t, 1, size(c))
	})
	suspend.Bind(refusing{closed{}, sched.NewThread()}, func() {
		c := keyed.NewCache(func(context.Context, int) (int, error) { return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
		_, err := c.Get(bg, 1)
		require.Equal(t, errOops, err)
		require.Zero(t, size(c))
	})
}

// The first Get panics in Go. Another one that waits by then starts the load again.
func TestAStartThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed.NewCache(func(context.Context, int) (int, error) { return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
		other := errors.New("none")
		suspend.Bind(panicking{closed{}, sched.NewThread(), func() {
			go func() { _, other = c.Get(bg, 1) }()
			synctest.Wait()
			panic(errOops)
		}}, func() {
			schedtest.Panics(t, errOops, func() { _, _ = c.Get(bg, 1) })
		})
		synctest.Wait()
		require.NoError(t, other)
		require.Equal(t, 1, size(c))
	})
}

type panicking struct {
	closed
	suspend.Task
	f func()
}

func (p panicking) Spawner() suspend.Spawner { return p }
func (p panicking) Go(func()) error          { p.f(); return nil }

// A refusing task belongs to a scheduler that starts no tasks.
type refusing struct {
	closed
	suspend.Task
}

func (r refusing) Spawner() suspend.Spawner { return r }
func (r refusing) Go(func()) error          { return errOops }

// Under cancellations, each Get returns the value of its key, or its own cancellation. In the end the Cache has no load without a
// waiter.
func TestCacheUnderStress(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var got, failed, stopped atomic.Int64
		covered := func() bool { return got.Load() > 0 && failed.Load() > 0 && stopped.Load() > 0 }
		for round := 0; schedtest.More(round, 60, covered); round++ {
			var live atomic.Int64
			c := keyed.NewCache(func(ctx context.Context, key int) (int, error) {
				live.Add(1)
				defer live.Add(-1)
				for range 3 {
					suspend.Yield()
				}
				if err := suspend.Err(ctx); err != nil {
					stopped.Add(1)
					return 0, err
				}
				return -key, nil
			}, keyed.CacheOptions{TTL: time.Duration(round%2) * time.Hour})
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for range 6 {
					ctx, cancel := schedtest.MayCancel(rng)
					key := 1 + rng.IntN(2)
					switch v, err := c.Get(ctx, key); {
					case err == nil && v == -key:
						got.Add(1)
					case errors.Is(err, context.Canceled) && ctx.Err() != nil:
						failed.Add(1)
					default:
						t.Errorf("%d, %v", v, err)
					}
					if rng.IntN(3) == 0 {
						c.Forget(key)
					}
					cancel()
				}
			})
			schedtest.Eventually(t, "the loads end", func() bool { return live.Load() == 0 })
			if round%2 == 0 {
				schedtest.Eventually(t, "nothing is kept", func() bool { return size(c) == 0 })
			}
		}
	})
}

// NaN cannot be a key: a map never finds it again, so its lock could not be unlocked.
func TestNaN(t *testing.T) {
	nan := math.NaN()
	var m keyed.Mutex[any]
	s := keyed.NewSemaphore[[1]float64](1)
	c := keyed.NewCache(func(context.Context, float64) (int, error) { return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
	for name, f := range map[string]func(){
		"Lock":       func() { m.Lock(nan) },
		"TryLock":    func() { m.TryLock(nan) },
		"Acquire":    func() { _ = s.Acquire(bg, [1]float64{nan}) },
		"TryAcquire": func() { s.TryAcquire([1]float64{nan}) },
		"Get":        func() { _, _ = c.Get(bg, nan) },
		"Forget":     func() { c.Forget(nan) },
	} {
		t.Run(name, func(t *testing.T) { schedtest.Panics(t, "keyed: a key that is not equal to itself, such as NaN", f) })
	}
	if n := m.Len() + s.Len() + size(c); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestAllocs(t *testing.T) {
	c := keyed.NewCache(func(context.Context, int) (int, error) { return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
	_, _ = c.Get(bg, 1)
	var m keyed.Mutex[int]
	for name, f := range map[string]struct {
		most float64
		f    func()
	}{
		"a hit":  {0, func() { _, _ = c.Get(bg, 1) }},
		"a lock": {4, func() { m.Lock(1); m.Unlock(1) }}, // the entry, the Mutex and two closures
	} {
		if got := testing.AllocsPerRun(100, f.f); got > f.most {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func ExampleMutex() {
	var files keyed.Mutex[string]
	files.Lock("a")
	fmt.Println(files.TryLock("a"), files.TryLock("b"), files.Len())
	files.Unlock("a")
	files.Unlock("b")
	fmt.Println(files.Len())
	// Output:
	// false true 2
	// 0
}

func ExampleSemaphore() {
	uploads := keyed.NewSemaphore[string](2) // two uploads for each user
	fmt.Println(uploads.Acquire(bg, "ann"), uploads.TryAcquire("ann"), uploads.TryAcquire("ann"), uploads.TryAcquire("bob"))
	uploads.Release("ann")
	fmt.Println(uploads.TryAcquire("ann"))
	// Output:
	// <nil> true false true
	// true
}

func ExampleCache() {
	squares := keyed.NewCache(func(_ context.Context, n int) (int, error) {
		fmt.Println("computed")
		return n * n, nil
	}, keyed.CacheOptions{TTL: time.Minute})
	fmt.Println(squares.Get(bg, 7))
	fmt.Println(squares.Get(bg, 7))
	squares.Forget(7)
	fmt.Println(squares.Stats().Kept)
	// Output:
	// computed
	// 49 <nil>
	// 49 <nil>
	// 0
}
