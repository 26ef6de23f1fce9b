package integration_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/watch"
)

// A goroutine in a bubble waits for an object of the package, and a goroutine outside wakes it. This works because the Thread
// that parks the waiter was created outside, so that its channel belongs to no bubble.
func TestAWaitInABubbleThatAGoroutineOutsideEnds(t *testing.T) {
	for name, open := range awaited() {
		t.Run(name, func(t *testing.T) {
			outside, o := sched.NewThread(), open()
			go func() {
				time.Sleep(time.Millisecond) // usually the wait has begun by then
				o.wake()
			}()
			synctest.Test(t, func(t *testing.T) {
				var err error
				suspend.Bind(outside, func() { err = o.wait(bg) })
				require.NoError(t, err)
			})
		})
	}
}

// Without such a Thread, the call that ends the wait panics with an explanation. The test runs in another process, because the
// panic leaves the object locked.
func TestAWaitInABubbleThatAGoroutineOutsideCannotEnd(t *testing.T) {
	const variable = "BRAID_BUBBLED"
	all := awaited()
	if name := os.Getenv(variable); name != "" {
		o := all[name]()
		begun := make(chan struct{})
		var held sync.Mutex
		held.Lock()
		go func() {
			<-begun
			o.wake() // the panic may also come in a later call, on a goroutine of the object
			time.Sleep(10 * time.Second)
			held.Unlock()
		}()
		synctest.Test(t, func(*testing.T) {
			go func() { _ = o.wait(bg) }()
			synctest.Wait()
			close(begun)
			held.Lock() // the runtime does not report a bubble as stuck while a goroutine waits for a sync.Mutex
		})
	}
	for name := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^"+strings.SplitN(t.Name(), "/", 2)[0]+"$")
			cmd.Env = append(os.Environ(), variable+"="+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), "panic: suspend: a goroutine outside a synctest bubble ends a wait inside it")
		})
	}
}

// An object has a wait, which wake ends.
type object struct {
	wait func(ctx context.Context) error
	wake func()
}

// awaited returns functions that each create an object, by the name of the primitive.
func awaited() map[string]func() object {
	loaded := func(begin func(f func(context.Context) (int, error)) (wait func(context.Context) error)) object {
		var p promise.Promise[int]
		begun := make(chan struct{})
		wait := begin(func(context.Context) (int, error) { close(begun); return p.Await(bg) })
		go func() { _ = wait(bg) }()
		<-begun
		return object{wait, func() { _ = p.Fill(1) }}
	}
	return map[string]func() object{
		"Mutex":   func() object { m := new(mutex.Mutex); m.TryLock(); return object{m.LockContext, m.Unlock} },
		"RWMutex": func() object { m := new(mutex.RWMutex); m.TryLock(); return object{m.RLockContext, m.Unlock} },
		"Semaphore": func() object {
			s := semaphore.New(1)
			s.TryAcquire(1)
			return object{func(ctx context.Context) error { return s.Acquire(ctx, 1) }, func() { s.Release(1) }}
		},
		"Chan": func() object {
			c := chanx.New[int](1)
			return object{func(ctx context.Context) error { _, err := c.Recv(ctx); return err }, func() { _, _ = c.TrySend(1) }}
		},
		"MVar": func() object {
			m := mvar.New[int]()
			return object{func(ctx context.Context) error { _, err := m.Take(ctx); return err }, func() { m.TryPut(1) }}
		},
		"Promise": func() object {
			p := promise.New[int]()
			return object{func(ctx context.Context) error { _, err := p.Await(ctx); return err }, func() { _ = p.Fill(1) }}
		},
		"Latch": func() object { l := latch.New(1); return object{l.Wait, l.CountDown} },
		"watch": func() object {
			v := watch.New(1)
			return object{func(ctx context.Context) error { _, err := v.Changed(ctx, 0); return err }, func() { _ = v.Store(2) }}
		},
		"watch, UntilOp": func() object {
			v := watch.New(1)
			op := v.UntilOp(func(n int) bool { return n == 2 })
			return object{func(ctx context.Context) error { _, err := suspend.Do(ctx, op); return err }, func() { _ = v.Store(2) }}
		},
		"Chan, AwaitClose": func() object {
			c := chanx.New[int](1)
			return object{c.AwaitClose, func() { _ = c.Close() }}
		},
		"broadcast": func() object {
			b := broadcast.New[int]()
			s := b.Subscribe(1, broadcast.DropOldest)
			return object{func(ctx context.Context) error { _, err := s.Recv(ctx); return err }, func() { _ = b.Publish(bg, 1) }}
		},
		"Cond": func() object {
			var m mutex.Mutex
			woken := false
			c := cond.New(&m)
			return object{func(ctx context.Context) (err error) {
				m.Lock()
				defer m.Unlock()
				for !woken && err == nil {
					err = c.Wait(ctx)
				}
				return err
			}, func() { m.Lock(); woken = true; m.Unlock(); c.Broadcast() }}
		},
		"keyed.Cache": func() object {
			return loaded(func(f func(context.Context) (int, error)) func(context.Context) error {
				c := keyed.NewCache(func(ctx context.Context, _ int) (int, error) { return f(ctx) }, keyed.CacheOptions{})
				return func(ctx context.Context) error { _, err := c.Get(ctx, 1); return err }
			})
		},
		"Lazy": func() object {
			return loaded(func(f func(context.Context) (int, error)) func(context.Context) error {
				l := lazy.New(f, lazy.Restart)
				return func(ctx context.Context) error { _, err := l.Force(ctx); return err }
			})
		},
		"respool": func() object {
			p := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
			l, _ := p.Acquire(bg)
			return object{func(ctx context.Context) error { _, err := p.Acquire(ctx); return err }, l.Release}
		},
	}
}
