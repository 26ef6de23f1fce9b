package keyed_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/suspend"
)

// A load that has succeeded is kept. The only waiter leaves between Resolve and the lock of end.
func TestALoadIsKept(t *testing.T) {
	var twice int
	const n = 20000
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range n {
		var loads atomic.Int32
		c := keyed.NewCache(func(context.Context, int) (int, error) { return int(loads.Add(1)), nil }, keyed.CacheOptions{TTL: time.Hour})
		_, _ = c.Get(bg, 1)
		if v, _ := c.Get(bg, 1); v != 1 {
			twice++
		}
	}
	stop.Store(true)
	wg.Wait()
	if twice > 0 {
		t.Errorf("%d of %d values were loaded twice, although they live for an hour", twice, n)
	}
}

// A Get that begins after another one has returned the error of a load does not get that error again.
func TestAnErrorIsNotKept(t *testing.T) {
	type nth struct {
		error
		n int32
	}
	var loads atomic.Int32
	c := keyed.NewCache(func(context.Context, int) (int, error) { return 0, nth{errOops, loads.Add(1)} }, keyed.CacheOptions{TTL: time.Hour})
	var stale atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := int32(0)
			for range 20000 {
				_, err := c.Get(bg, 1)
				var e nth
				if errors.As(err, &e) {
					if e.n == last {
						stale.Add(1)
					}
					last = e.n
				}
			}
		})
	}
	wg.Wait()
	if stale.Load() > 0 {
		t.Errorf("%d Gets got the error that their caller had seen already", stale.Load())
	}
}

// A value whose time is over is not returned, whatever stands before it in the list.
func TestStaleBehindAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		c := keyed.NewCache(func(context.Context, string) (int, error) { loads++; return loads, nil }, keyed.CacheOptions{TTL: time.Minute})
		v := schedtest.NewVirtual()
		v.Advance(time.Since(v.Now()) + 10*time.Second)
		_, _ = c.Get(bg, "good")
		time.Sleep(20 * time.Second)
		_, _ = c.Get(bg, "from after now, for the other clock")
		synctest.Wait()
		v.Bind(func() {
			got, err := c.Get(bg, "from after now, for the other clock")
			require.NoError(t, err)
			require.Equal(t, 3, got)
			got, _ = c.Get(bg, "good")
			require.Equal(t, 1, got)
		})
	})
}

// A loaded entry does not keep the context of its first caller.
func TestContextIsKept(t *testing.T) {
	var objects schedtest.Objects
	type key struct{}
	c := keyed.NewCache(func(context.Context, int) (int, error) { return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
	func() {
		_, _ = c.Get(context.WithValue(bg, key{}, objects.New()), 1)
	}()
	time.Sleep(10 * time.Millisecond)
	objects.Collected(t, 0)
	runtime.KeepAlive(c)
}

// Get in a callback panics, as suspending is forbidden there, and starts no load.
func TestGetInACallback(t *testing.T) {
	var loads atomic.Int32
	c := keyed.NewCache(func(context.Context, int) (int, error) { loads.Add(1); return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
	func() {
		defer func() { t.Log(recover()) }()
		suspend.Bind(nil, func() { _, _ = c.Get(bg, 1) })
	}()
	time.Sleep(20 * time.Millisecond)
	if loads.Load() != 0 {
		t.Error("a load was started")
	}
}

// A closed is a scheduler that runs loads as its tasks, as a simulation does.
type closed struct{}

func (closed) AfterDone(ctx context.Context, f func()) func() bool { return context.AfterFunc(ctx, f) }

// A declining is a task of a scheduler that refuses each load, after others have joined.
type declining struct {
	closed
	wakes chan struct{}
	join  func()
}

func (r *declining) Park()                    { <-r.wakes }
func (r *declining) Unpark()                  { r.wakes <- struct{}{} }
func (r *declining) Spawner() suspend.Spawner { return r }
func (r *declining) Go(func()) error          { r.join(); return suspend.ErrClosed }

// Once a task that waited for a load had the error with which the scheduler of the first refused it.
func TestARefusedLoadIsBegunByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed.NewCache(func(context.Context, int) (int, error) { return 7, nil }, keyed.CacheOptions{})
		second := make(chan int, 1)
		join := func() {
			go func() {
				v, err := c.Get(bg, 1)
				second <- v
				require.NoError(t, err)
			}()
			synctest.Wait()
			require.Empty(t, second) // it waits with the first
		}
		suspend.Bind(&declining{closed{}, make(chan struct{}, 1), join}, func() {
			_, err := c.Get(bg, 1)
			require.ErrorIs(t, err, suspend.ErrClosed)
		})
		require.Equal(t, 7, <-second)
	})
}
