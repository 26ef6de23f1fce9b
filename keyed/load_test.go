package keyed_test

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

func slow(ctx context.Context, key int) (int, error) { return key, suspend.Sleep(ctx, time.Hour) }

// A load is not a task of its first caller's scheduler. Otherwise a Get from another scheduler would keep that scheduler's Run
// and Close from returning.
func TestALoadIsNotOfItsFirstCaller(t *testing.T) {
	for name, run := range map[string]func(f func()){
		"fifo": func(f func()) { _ = fifo.Run(bg, func(context.Context) error { f(); return nil }) },
		"pool": func(f func()) {
			p := workstealing.New(workstealing.Options{Workers: 1})
			_ = p.Go(f)
			_ = p.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, begun := keyed.NewCache(slow, keyed.CacheOptions{}), time.Now()
				go func() {
					time.Sleep(time.Second)
					v, err := c.Get(bg, 1)
					require.Equal(t, 1, v)
					require.NoError(t, err)
					require.Equal(t, time.Hour, time.Since(begun))
				}()
				run(func() {
					ctx, stop := context.WithTimeout(bg, time.Minute)
					defer stop()
					_, err := c.Get(ctx, 1)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				})
				require.Equal(t, time.Minute, time.Since(begun))
				time.Sleep(time.Hour)
			})
		})
	}
}

// The first caller's scheduler is busy and could not run the load.
func TestALoadOfABusyScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begun := keyed.NewCache(func(context.Context, int) (int, error) { return 1, nil }, keyed.CacheOptions{}), time.Now()
		go func() {
			_ = fifo.Run(bg, func(context.Context) error {
				_ = suspend.Here().Go(func() { time.Sleep(time.Hour) })
				_, err := c.Get(bg, 1)
				return err
			})
		}()
		time.Sleep(time.Second)
		_, err := c.Get(bg, 1)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begun))
		time.Sleep(2 * time.Hour)
	})
}

// The node of the first caller crashes during the load. Callers of other nodes must not get the ErrAbandoned of its task.
func TestALoadOfANodeThatCrashes(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		loads, ended := 0, 0
		c := keyed.NewCache(func(ctx context.Context, key int) (int, error) { loads++; return slow(ctx, key) }, keyed.CacheOptions{})
		a, b := w.Node("a"), w.Node("b")
		_ = a.Go(func() { _, _ = c.Get(bg, 1) })
		for range 3 {
			_ = b.Go(func() {
				_ = suspend.Sleep(bg, time.Minute)
				v, err := c.Get(bg, 1)
				require.Equal(t, 1, v)
				require.NoError(t, err)
				ended++
			})
		}
		_ = suspend.Sleep(ctx, 2*time.Minute)
		a.Crash()
		_ = suspend.Sleep(ctx, 2*time.Hour)
		require.Equal(t, 3, ended)
		require.Equal(t, 2, loads)
		return nil
	}, simulation.Options{Seed: 1})
	require.NoError(t, r.Err)
}

// A load that exits in a World is not started again and again.
func TestALoadThatExitsInAWorld(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		loads := 0
		c := keyed.NewCache(func(context.Context, int) (int, error) { loads++; suspend.Yield(); runtime.Goexit(); return 0, nil }, keyed.CacheOptions{})
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for range 3 {
				s.Go(w, func(ctx context.Context) error {
					_, err := c.Get(ctx, 1)
					require.ErrorIs(t, err, suspend.ErrAbandoned)
					require.LessOrEqual(t, loads, 3)
					return nil
				})
			}
			return nil
		})
	}, simulation.Options{Seed: 1})
	require.NoError(t, r.Err)
}

// A load that panics fails each Get with an error that has the value and the stack. The process does not end.
func TestALoadThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed.NewCache(func(ctx context.Context, _ int) (int, error) {
			_ = suspend.Sleep(ctx, time.Second)
			return panics()
		}, keyed.CacheOptions{TTL: time.Hour})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := c.Get(bg, 1)
				require.ErrorIs(t, err, suspend.ErrAbandoned)
				require.ErrorIs(t, err, suspend.ErrAbandoned)
				require.ErrorIs(t, err, errOops)
				require.Equal(t, "keyed: the load did not return: panic: oops", err.Error())
				var p *suspend.PanicError
				require.ErrorAs(t, err, &p)
				require.Equal(t, errOops, p.Value)
				require.Contains(t, string(p.Stack), "keyed_test.panics")
			})
		}
		all.Wait()
		require.Zero(t, size(c))
	})
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		_, err := keyed.NewCache(func(context.Context, int) (int, error) { return panics() }, keyed.CacheOptions{}).Get(ctx, 1)
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		return nil
	}, simulation.Options{Seed: 1})
	require.ErrorContains(t, r.Err, "oops", "in a task the panic continues")
}

func panics() (int, error) { panic(errOops) }

// Loads that need each other fail with an error. Two loads that need a third one do not form a cycle, and neither does a load whose
// Get has ended.
func TestLoadsInACycle(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			var a, b *keyed.Cache[int, int]
			next := func(c **keyed.Cache[int, int]) func(ctx context.Context, k int) (int, error) {
				return func(ctx context.Context, k int) (int, error) {
					_ = suspend.Sleep(bg, time.Second) // lets the other loads begin
					return (*c).Get(ctx, (k+1)%n)
				}
			}
			a, b = keyed.NewCache(next(&b), keyed.CacheOptions{TTL: time.Hour}), keyed.NewCache(next(&a), keyed.CacheOptions{TTL: time.Hour})
			var all sync.WaitGroup
			for k := range n {
				all.Go(func() {
					_, err := a.Get(bg, k)
					require.ErrorIs(t, err, keyed.ErrRecursive)
				})
			}
			all.Wait()
			require.Zero(t, size(a)+size(b))
		})
	}
}

func TestLoadsInADiamond(t *testing.T) {
	for _, gap := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			// each key needs the next two, one after the other and both at once
			var c *keyed.Cache[int, int]
			c = keyed.NewCache(func(ctx context.Context, k int) (int, error) {
				if _ = suspend.Sleep(ctx, gap); k >= 30 {
					return 1, nil
				}
				if _, err := c.Get(ctx, k+1); err != nil {
					return 0, err
				}
				both, err := scope.Map(ctx, suspend.Goroutines, []int{k + 1, k + 2, k + 2}, c.Get)
				if err != nil {
					return 0, err
				}
				return both[0] + both[1], nil
			}, keyed.CacheOptions{TTL: time.Hour})
			var all sync.WaitGroup
			for k := range 30 {
				all.Go(func() {
					_, err := c.Get(bg, k)
					require.NoError(t, err)
				})
			}
			all.Wait()
		})
	}
}

// A part of a load is cancelled, and the load continues. Then another load needs the first one, which is no longer a cycle.
func TestAPartThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *keyed.Cache[int, int]
		c = keyed.NewCache(func(ctx context.Context, k int) (int, error) {
			if k == 0 {
				brief, stop := context.WithTimeout(ctx, time.Second)
				defer stop()
				_, err := c.Get(brief, 1)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return 7, suspend.Sleep(ctx, time.Minute)
			}
			_ = suspend.Sleep(ctx, 2*time.Second)
			return c.Get(ctx, 0)
		}, keyed.CacheOptions{})
		go func() { _, _ = c.Get(bg, 0) }()
		v, err := c.Get(bg, 1)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// A load passes its context to a task that outlives it. A Get of that task does not count as a part of the load.
func TestTheContextOfALoadThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of context.Context
		var c *keyed.Cache[int, int]
		loads := 0
		c = keyed.NewCache(func(ctx context.Context, k int) (int, error) {
			if loads++; k == 1 && loads == 1 {
				of = ctx
				return 1, nil
			}
			return 2, suspend.Sleep(bg, time.Hour)
		}, keyed.CacheOptions{})
		_, _ = c.Get(bg, 1)
		synctest.Wait()
		v, err := c.Get(context.WithoutCancel(of), 1)
		require.NoError(t, err)
		require.Equal(t, 2, v)
	})
}

// during is the context of a load. Its Value calls f when a Cache looks up the load.
type during struct {
	context.Context
	f func()
}

func (c *during) Value(key any) any {
	v := c.Context.Value(key)
	if f := c.f; f != nil && fmt.Sprintf("%T", key) == "keyed.loadKey" {
		c.f = nil
		f()
	}
	return v
}

// A part of a load waits for the load, which ends before the Cache finds the cycle.
func TestALoadThatEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *keyed.Cache[int, int]
		var part context.Context
		gate := promise.New[int]()
		c = keyed.NewCache(func(ctx context.Context, _ int) (int, error) {
			part = ctx
			return gate.Await(bg)
		}, keyed.CacheOptions{TTL: time.Hour})
		go func() { _, _ = c.Get(bg, 1) }()
		synctest.Wait()
		v, err := c.Get(&during{context.WithoutCancel(part), func() {
			_ = gate.Fill(7)
			synctest.Wait()
		}}, 1)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// Two loads wait for each other without passing their contexts. The Cache cannot see this deadlock, but the census finds it.
func TestTheCensusFindsACycleOfLoads(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer census.Start(census.Options{StuckAfter: -1})()
	ctx, end := context.WithCancel(bg)
	defer end()
	var c *keyed.Cache[int, int]
	c = keyed.NewCache(func(_ context.Context, k int) (int, error) { return c.Get(ctx, 1-k) }, keyed.CacheOptions{})
	go func() { _, _ = c.Get(ctx, 0) }()
	schedtest.Eventually(t, "a deadlock", func() bool {
		all := census.Take().Deadlocks
		return len(all) == 1 && len(all[0].Cycle) == 2
	})
}

var ofThePackage = keyed.NewCache(func(context.Context, int) (time.Time, error) { return time.Now(), nil }, keyed.CacheOptions{TTL: time.Minute})

// A value that was loaded in real time expires in a bubble, although the clock of the bubble begins in the year 2000.
func TestAValueFromAfterTheBubble(t *testing.T) {
	before, err := ofThePackage.Get(bg, 1)
	require.NoError(t, err)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			v, err := ofThePackage.Get(bg, 1)
			require.NoError(t, err)
			require.True(t, v.Before(before))
			time.Sleep(time.Minute)
			later, err := ofThePackage.Get(bg, 1)
			require.NoError(t, err)
			require.Equal(t, time.Minute, later.Sub(v))
		})
	}
}

// Keys and values are freed: after an Unlock, after a Forget, and after the time to live.
func TestNothingIsRetained(t *testing.T) {
	var objects schedtest.Objects
	var m keyed.Mutex[*schedtest.Object]
	s := keyed.NewSemaphore[*schedtest.Object](2)
	c := keyed.NewCache(func(context.Context, int) (*schedtest.Object, error) { return objects.New(), nil }, keyed.CacheOptions{TTL: time.Hour})
	func() {
		for i := range 3 {
			k := objects.New()
			m.Lock(k)
			require.False(t, m.TryLock(k))
			m.Unlock(k)
			_, _ = s.TryAcquire(k), s.TryAcquire(k)
			s.Release(k)
			s.Release(k)
			_, _ = c.Get(bg, i)
			c.Forget(i)
			c.Forget(i)
		}
	}()
	objects.Collected(t, 1) // the last one may still be on a stack
	runtime.KeepAlive([]any{&m, s, c})
}

// After many keys at once, the map gives its memory back.
func TestManyKeysAtOnce(t *testing.T) {
	const keys = 100_000
	var m keyed.Mutex[int]
	now := schedtest.NewVirtual()
	now.Bind(func() {
		c := keyed.NewCache(func(_ context.Context, k int) (int, error) { return k, nil }, keyed.CacheOptions{TTL: time.Minute})
		_, _ = c.Get(bg, -1)
		before := heap()
		for k := range keys {
			m.Lock(k)
			_, _ = c.Get(bg, k)
		}
		require.Greater(t, heap()-before, int64(8<<20*bits.UintSize/64)) // most of the memory is pointers
		for k := range keys {
			m.Unlock(k)
		}
		now.Advance(time.Hour)
		_, _ = c.Get(bg, -1)
		require.Less(t, heap()-before, int64(1<<20))
		runtime.KeepAlive(c)
	})
	runtime.KeepAlive(&m)
}

func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
