package census_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// Tasks of all schedulers lock, send, cancel and select, while other tasks switch the census on and off, and take snapshots. No
// value is lost. No deadlock is reported, because all tasks lock in one order. In the end, no task is recorded.
func TestOnAndOffUnderLoad(t *testing.T) {
	var locks [4]mutex.Mutex
	var rw mutex.RWMutex
	permits, mail := semaphore.New(3), chanx.New[int](2)
	var sent, received atomic.Int64
	var inside [4]atomic.Int64
	var over atomic.Bool
	work := func(i int, on suspend.Executor) {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		for n := 0; !over.Load(); n++ {
			ctx, cancel := context.WithCancel(bg)
			if random.IntN(3) == 0 {
				suspend.AfterFunc(suspend.Here(), time.Duration(random.IntN(200))*time.Microsecond, cancel)
			}
			switch random.IntN(6) {
			case 0:
				k := random.IntN(3)
				if locks[k].LockContext(ctx) == nil {
					require.EqualValues(t, 1, inside[k].Add(1))
					if locks[k+1].LockContext(ctx) == nil {
						require.EqualValues(t, 1, inside[k+1].Add(1))
						suspend.Yield()
						inside[k+1].Add(-1)
						locks[k+1].Unlock()
					}
					inside[k].Add(-1)
					locks[k].Unlock()
				}
			case 1:
				if rw.RLockContext(ctx) == nil {
					suspend.Yield()
					rw.RUnlock()
				}
			case 2:
				if rw.LockContext(ctx) == nil {
					rw.Downgrade()
					rw.RUnlock()
				}
			case 3:
				if permits.Acquire(ctx, 2) == nil {
					suspend.Yield()
					permits.Release(2)
				}
			case 4:
				send, recv, lock := suspend.CaseOf(mail.SendOp(n)), suspend.CaseOf(mail.RecvOp()), suspend.CaseOf(locks[3].LockOp())
				switch won, _ := suspend.Select(ctx, send, recv, lock, suspend.CaseOf(suspend.After(50*time.Microsecond))); won {
				case send:
					sent.Add(1)
				case recv:
					received.Add(1)
				case lock:
					require.EqualValues(t, 1, inside[3].Add(1))
					inside[3].Add(-1)
					locks[3].Unlock()
				}
			case 5:
				suspend.Then(ctx, permits.AcquireOp(1), on, func(_ struct{}, err error) {
					if err == nil {
						permits.Release(1)
					}
				})
			}
			cancel()
		}
	}
	var all sync.WaitGroup
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for i := range 4 * len(schedtest.All) {
			all.Add(1)
			s := next()
			require.NoError(t, s.Go(func() {
				defer all.Done()
				work(i, s.(suspend.Executor))
			}))
		}
		looks := 0
		for begun := time.Now(); time.Since(begun) < stress.For(t) || looks < 20; {
			stop := census.Start(census.Options{StuckAfter: -1})
			for range 3 {
				time.Sleep(time.Millisecond) // lets the tasks change something
				s := census.Take()
				require.Empty(t, s.Deadlocks, "%s", s)
				if len(s.Tasks) > 0 {
					looks++
				}
			}
			stop()
		}
		over.Store(true)
		all.Wait()
	})
	require.Greater(t, received.Load(), int64(0))
	for left := true; left; {
		_, left, _ = mail.TryRecv()
		if left {
			received.Add(1)
		}
	}
	require.Equal(t, sent.Load(), received.Load())
	require.NoError(t, rw.LockContext(bg))
	require.NoError(t, permits.Acquire(bg, 3))
	for i := range locks {
		require.True(t, locks[i].TryLock())
	}
	defer census.Start(census.Options{StuckAfter: -1})()
	require.Empty(t, census.Take().Tasks, "the census begins without records")
}

// The census keeps nothing alive: not a mutex that was locked when the program lost it, not a promise for which a Then waits, not
// a name.
func TestKeepsNothing(t *testing.T) {
	on(t)
	var objects schedtest.Objects
	type locked struct {
		mutex.Mutex
		object schedtest.Object
	}
	type promised struct {
		promise.Promise[int]
		object schedtest.Object
	}
	for range 100 {
		l := census.Name(new(locked), "locked")
		objects.Track(&l.object)
		l.Lock()
		p := census.Name(new(promised), "promised")
		objects.Track(&p.object)
		suspend.Then(bg, p.AwaitOp(), executor{}, func(int, error) {})
	}
	require.NotEmpty(t, census.Take().Tasks)
	objects.Collected(t, 0)
	schedtest.Eventually(t, "all records are gone", func() bool { return len(census.Take().Tasks) == 0 })
}

// A check forgets schedulers that have ended, even if it reports nothing. Without this, a thousand Runs would be kept.
func TestKeepsNoSchedulerThatHasEnded(t *testing.T) {
	for _, after := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			defer census.Start(census.Options{StuckAfter: after})()
			const runs = 10
			var gone atomic.Int64
			for range runs {
				option := new(schedtest.Object)
				runtime.AddCleanup(option, func(int) { gone.Add(1) }, 0)
				s := fifo.New(fifo.Options{OnIdle: func() { runtime.KeepAlive(option) }})
				require.NoError(t, s.Run(bg, func(ctx context.Context) error { return suspend.Sleep(ctx, time.Millisecond) }))
			}
			time.Sleep(3 * time.Second)
			for range 1000 {
				if runtime.GC(); gone.Load() >= runs-1 { // the last Run may be in a register
					break
				}
			}
			require.GreaterOrEqual(t, gone.Load(), int64(runs-1), "Runs that have ended are kept, with StuckAfter %v", after)
		})
	}
}

type executor struct{}

func (executor) Execute(f func()) error { go f(); return nil }
