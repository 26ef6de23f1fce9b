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

// A load that has succeeded is kept, even if its only waiter leaves before the load records its result.
func TestALoadIsKept(t *testing.T) {
	var twice int
	const n = 20000
	for range n {
		var loads atomic.Int32
		c := keyed.NewCache(func(context.Context, int) (int, error) { return int(loads.Add(1)), nil }, keyed.CacheOptions{TTL: time.Hour})
		_, _ = c.Get(bg, 1)
		if v, _ := c.Get(bg, 1); v != 1 {
			twice++
		}
	}
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

// An expired value is not returned, even if values before it in the list have another clock and have not expired.
func TestStaleBehindAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		c := keyed.NewCache(func(context.Context, string) (int, error) { loads++; return loads, nil }, keyed.CacheOptions{TTL: time.Minute})
		v := schedtest.NewVirtual()
		v.Advance(time.Since(v.Now()) + 10*time.Second)
		_, _ = c.Get(bg, "good")
		time.Sleep(20 * time.Second)
		_, _ = c.Get(bg, "from the future, for the other clock")
		synctest.Wait()
		v.Bind(func() {
			got, err := c.Get(bg, "from the future, for the other clock")
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

// In a callback, where suspending is forbidden, Get panics and starts no load.
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

// A closed scheduler runs loads as its tasks, as a simulation does.
type closed struct{}

func (closed) AfterDone(ctx context.Context, f func()) func() bool { return context.AfterFunc(ctx, f) }

// A declining scheduler, which is also its own task, refuses each load after another Get has joined it.
type declining struct {
	closed
	wakes chan struct{}
	join  func()
}

func (r *declining) Park()                    { <-r.wakes }
func (r *declining) Unpark()                  { r.wakes <- struct{}{} }
func (r *declining) Spawner() suspend.Spawner { return r }
func (r *declining) Go(func()) error          { r.join(); return suspend.ErrClosed }

// A scheduler refuses a load that another task has joined. The other task starts the load again on its own scheduler, and does
// not get the refusal.
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
			require.Empty(t, second) // joins the first load
		}
		suspend.Bind(&declining{closed{}, make(chan struct{}, 1), join}, func() {
			_, err := c.Get(bg, 1)
			require.ErrorIs(t, err, suspend.ErrClosed)
		})
		require.Equal(t, 7, <-second)
	})
}
