// Package integration_test shares primitives among all schedulers at once.
package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

var bg = context.Background()

// TestMain ignores the goroutines of tasks that end with their threads locked, which never end; see
// TestATaskThatEndsWithItsThreadLocked.
func TestMain(m *testing.M) {
	strand := "github.com/braidgo/braid/internal/coro.(*Coroutine).strand"
	schedtest.Main(m, goleak.IgnoreAnyFunction(strand), goleak.IgnoreAnyFunction(strand+".func1"))
}

// done returns a function that counts one of n tasks that have ended, and a function that waits for all of them.
func done(n int) (one func(), all func()) {
	c := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(n))
	return func() {
		if left.Add(-1) == 0 {
			close(c)
		}
	}, func() { <-c }
}

func TestOnePromiseIsAwaitedByAll(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const waiters = 100
		p := promise.New[int]()
		one, all := done(waiters)
		for range waiters {
			_ = next().Go(func() {
				defer one()
				if v, err := p.Await(bg); v != 7 || err != nil {
					t.Errorf("Await = %d, %v", v, err)
				}
			})
		}
		schedtest.Quiet(t) // waits until all tasks wait
		_ = next().Go(func() { _ = p.Fill(7) })
		all()
	})
}

// Tasks of every scheduler share one mutex and two MVars, and are cancelled at random. No value is lost or doubled, and in the
// end no waiter is left in a queue.
func TestEverythingSharedUnderRandomCancellation(t *testing.T) {
	operations := int64(200_000)
	if schedtest.Race || testing.Short() {
		operations /= 4
	}
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const tasks = 40
		var lock mutex.Mutex
		var fruit mvar.MVar[int]
		purse := mvar.NewFull(0) // a counter; a task takes it to change it
		var (
			inside, ops, locked, notLocked         atomic.Int64
			put, putSum, notPut, took, tookSum     atomic.Int64
			notTaken, deposits, notDeposited, over atomic.Int64
		)
		one, all := done(tasks)
		for i := range tasks {
			err := next().Go(func() {
				defer one()
				rng := rand.New(rand.NewPCG(uint64(i), 7))
				ctx, cancel := context.WithCancel(bg)
				left := 0 // the number of operations until the next context
				for ops.Add(1) <= operations {
					if left--; left <= 0 {
						cancel()
						ctx, cancel = context.WithCancel(bg)
						left = rng.IntN(100)
						// Each context ends, because all tasks may be waiting for the same side.
						time.AfterFunc(time.Duration(rng.IntN(300))*time.Microsecond, cancel)
					}
					if ctx.Err() != nil {
						left = 0
					}
					switch rng.IntN(4) {
					case 0:
						if lock.LockContext(ctx) == nil {
							if inside.Add(1) != 1 {
								t.Error("two hold the mutex")
							}
							if rng.IntN(16) == 0 {
								suspend.Yield()
							}
							inside.Add(-1)
							lock.Unlock()
							locked.Add(1)
						} else {
							notLocked.Add(1)
						}
					case 1:
						if v := rng.IntN(1 << 30); fruit.Put(ctx, v) == nil {
							put.Add(1)
							putSum.Add(int64(v))
						} else {
							notPut.Add(1)
						}
					case 2:
						if v, err := fruit.Take(ctx); err == nil {
							took.Add(1)
							tookSum.Add(int64(v))
						} else {
							notTaken.Add(1)
						}
					case 3:
						if n, err := purse.Take(ctx); err == nil {
							_ = purse.Put(bg, n+1)
							deposits.Add(1)
						} else {
							notDeposited.Add(1)
						}
					}
				}
				cancel()
				over.Add(1)
				for over.Load() < tasks { // another task may still wait for a value or for room
					if v, ok := fruit.TryTake(); ok {
						took.Add(1)
						tookSum.Add(int64(v))
					} else if fruit.TryPut(1) {
						put.Add(1)
						putSum.Add(1)
					}
					_ = suspend.Sleep(bg, 100*time.Microsecond)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		all()
		if v, ok := fruit.TryTake(); ok {
			took.Add(1)
			tookSum.Add(int64(v))
		}
		if !lock.TryLock() {
			t.Error("the mutex is held in the end")
		}
		if !fruit.TryPut(0) {
			t.Error("a waiter is left in the MVar")
		}
		if n, ok := purse.TryTake(); !ok || int64(n) != deposits.Load() {
			t.Errorf("%d in the purse, %v, after %d deposits", n, ok, deposits.Load())
		}
		if put.Load() != took.Load() || putSum.Load() != tookSum.Load() {
			t.Errorf("put %d (sum %d), took %d (sum %d)", put.Load(), putSum.Load(), took.Load(), tookSum.Load())
		}
		t.Logf("locked %d, not %d; put %d, not %d; not taken %d; deposits %d, not %d", locked.Load(), notLocked.Load(),
			put.Load(), notPut.Load(), notTaken.Load(), deposits.Load(), notDeposited.Load())
		for name, n := range map[string]*atomic.Int64{"locked": &locked, "not locked": &notLocked, "put": &put, "not put": &notPut,
			"taken": &took, "not taken": &notTaken, "deposited": &deposits, "not deposited": &notDeposited} {
			if n.Load() == 0 {
				t.Errorf("an outcome was not covered: %s", name)
			}
		}
	})
}

func TestSchedulersNest(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pool := workstealing.New(workstealing.Options{Workers: 1})
	p, q := promise.New[int](), promise.New[int]()
	schedtest.Run(t, loop, func() { // a task of the loop
		v, _, err := workstealing.Join(bg, pool, func(context.Context) (v int, err error) { // waits for a task of the pool
			err = fifo.Run(bg, func(ctx context.Context) error { // which runs another scheduler
				_ = suspend.Here().Go(func() { _ = q.Fill(1) })
				v, err = p.Await(ctx) // a task of which waits for the loop
				return err
			})
			return v, err
		}, func(ctx context.Context) (int, error) {
			return q.Await(ctx) // on a pool with one worker, which is not blocked
		})
		if v != 7 || err != nil {
			t.Errorf("Join = %d, %v", v, err)
		}
	}, func() { _ = p.Fill(7) })
	if err := errors.Join(loop.Close(), pool.Close()); err != nil {
		t.Error(err)
	}
}

// A context carries only the cancellation: a wait with Background suspends a task without blocking its scheduler, and goroutines
// may use a task's context.
func TestAnyContextAnywhere(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		p := promise.New[int]()
		schedtest.Run(t, s, func() {
			group, ctx := errgroup.WithContext(ctx)
			for range 4 {
				group.Go(func() error { // a goroutine without a scheduler
					_, err := p.Await(ctx)
					return err
				})
			}
			_ = s.Go(func() { _ = p.Fill(1) })
			if _, err := p.Await(bg); err != nil {
				t.Error(err)
			}
			if err := suspend.Blocking(bg, func() { // a goroutine, which blocks natively
				if err := group.Wait(); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Error(err)
			}
		})
	})
}

// The scheduler creates coroutines, not the goroutine that calls Go. If that goroutine had locked its thread, the runtime would
// end the process when another thread resumed the coroutine.
func TestSpawnedFromALockedThread(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const tasks = 50
		one, all := done(tasks)
		for range tasks {
			p := promise.New[int]()
			_ = s.Go(func() {
				defer one()
				_ = s.Go(func() { _ = p.Fill(1) })
				_, _ = p.Await(bg)
				suspend.Yield()
			})
		}
		all()
	})
}

// A Run locks its thread. Its tasks stand in for each other, pull, exit and wait for others.
func TestLockedThreadStandsIn(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	pool := workstealing.New(workstealing.Options{Workers: 1})
	err := fifo.New(fifo.Options{LockOSThread: true}).Run(bg, func(ctx context.Context) error {
		var a, b mvar.MVar[int]
		_ = suspend.Here().Go(func() {
			next, stop := suspend.Pull(func(yield func(int) bool) {
				for {
					v, _ := a.Take(ctx)
					if v < 0 || !yield(v) {
						return
					}
				}
			})
			defer stop()
			for v, ok := next(); ok; v, ok = next() {
				_ = b.Put(ctx, v)
			}
		})
		for i := range 200 {
			_ = suspend.Here().Go(runtime.Goexit)
			_ = a.Put(ctx, i)
			if v, _ := b.Take(ctx); v != i {
				t.Errorf("Take = %d, want %d", v, i)
			}
			if i%50 == 0 {
				if v, err := promise.Go(ctx, pool, func(context.Context) (int, error) { return i, nil }).Await(ctx); v != i || err != nil {
					t.Errorf("Await = %d, %v", v, err)
				}
			}
		}
		return a.Put(ctx, -1)
	})
	if err := errors.Join(err, pool.Close()); err != nil {
		t.Error(err)
	}
}

// Selects that receive run against sends on several threads. A Select looks at both channels and queues in both under both
// guards, so any send meets it, whatever the interleaving. If a case were queued later, it could miss a send, and both sides
// would wait.
func TestSelectMissesNothing(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	rounds := 5000
	if schedtest.Race || testing.Short() {
		rounds /= 5
	}
	pool := workstealing.New(workstealing.Options{Workers: 2})
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []suspend.Spawner{suspend.Goroutines, pool, loop} {
		a, b, ack := chanx.New[int](0), chanx.New[int](0), mvar.New[int]()
		one, all := done(2)
		_ = s.Go(func() {
			defer one()
			ca, cb := suspend.CaseOf(a.RecvOp()), suspend.CaseOf(b.RecvOp())
			for i := range rounds {
				won, err := suspend.Select(bg, ca, cb)
				if err != nil || won.(*suspend.Case[int]).Value() != i {
					t.Errorf("Select = %v, want %d", err, i)
				}
				_ = ack.Put(bg, i)
			}
		})
		_ = pool.Go(func() {
			defer one()
			sa, sb := suspend.CaseOf(suspend.Op[struct{}]{}), suspend.CaseOf(suspend.Op[struct{}]{})
			for i := range rounds {
				switch i % 3 {
				case 0:
					_ = a.Send(bg, i)
				case 1:
					_ = b.Send(bg, i)
				case 2: // both sides use a Select
					sa.Set(a.SendOp(i))
					sb.Set(b.SendOp(i))
					_, _ = suspend.Select(bg, sb, sa)
				}
				_, _ = ack.Take(bg)
			}
		})
		all()
	}
	if err := errors.Join(pool.Close(), loop.Close()); err != nil {
		t.Error(err)
	}
}
