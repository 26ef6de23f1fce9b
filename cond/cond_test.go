package cond_test

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

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

// lockers lists each kind of lock.
var lockers = []struct {
	name string
	new  func() sync.Locker
}{
	{"mutex.Mutex", func() sync.Locker { return new(mutex.Mutex) }},
	{"sync.Mutex", func() sync.Locker { return new(sync.Mutex) }},
	{"suspending", func() sync.Locker { return &suspending{l: new(mutex.Mutex)} }},
}

// A suspending lock suspends in Unlock, both before and after it unlocks.
type suspending struct{ l sync.Locker }

func (l *suspending) Lock() { l.l.Lock() }

func (l *suspending) Unlock() {
	_ = suspend.Sleep(bg, time.Nanosecond)
	l.l.Unlock()
	_ = suspend.Sleep(bg, time.Nanosecond)
}

// A hooked lock calls its hooks before and after it unlocks.
type hooked struct {
	sync.Locker
	before, after func()
}

func (l *hooked) Unlock() {
	if l.before != nil {
		l.before()
	}
	l.Locker.Unlock()
	if l.after != nil {
		l.after()
	}
}

func TestWaitSignal(t *testing.T) {
	for _, locker := range lockers {
		t.Run(locker.name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				c := cond.New(locker.new())
				turn, rounds := 0, 200
				if locker.name == "suspending" {
					rounds = 20
				}
				player := func(me int) func() {
					return func() {
						c.L.Lock()
						defer c.L.Unlock()
						for range rounds {
							for turn != me {
								if err := c.Wait(bg); err != nil {
									t.Error(err)
								}
							}
							turn = 1 - me
							c.Signal()
						}
					}
				}
				schedtest.Run(t, s, player(0), player(1))
			})
		})
	}
}

func TestMisuse(t *testing.T) {
	panics := func(want string, f func()) { t.Helper(); schedtest.Panics(t, want, f) }
	panics("cond: nil Locker", func() { cond.New(nil) })
	panics("cond: nil Locker", func() { _ = new(cond.Cond).Wait(bg) })

	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.Mutex
		c := cond.New(&m)
		wait := func() { _ = c.Wait(bg) }
		panics("mutex: Unlock of an unlocked Mutex", wait)
		if !m.TryLock() {
			t.Fatal("locked by a Wait that has panicked")
		}
		// The failed Wait has left no waiter behind: the signal reaches the live one.
		woken := start(s, c)
		m.Unlock()
		schedtest.Settle()
		c.Signal()
		schedtest.Settle()
		if !woken.ended || woken.err != nil {
			t.Errorf("%+v", woken)
		}

		// A Wait that is signalled before it panics passes the signal on to the next waiter.
		var next *waiter
		l := &hooked{Locker: &m}
		c.L = l
		l.before = func() {
			l.before = nil
			c.L = &m
			next = start(s, c)
			schedtest.Settle()
			c.Signal()
		}
		panics("mutex: Unlock of an unlocked Mutex", wait)
		schedtest.Settle()
		if !next.ended || next.err != nil {
			t.Errorf("a signal was lost to a Wait that has panicked: %+v", next)
		}
		if !m.TryLock() {
			t.Error("locked at the end")
		}
		m.Unlock()
	})

	// Where suspending is forbidden, Wait panics with the lock held, and leaves no waiter behind.
	var m mutex.Mutex
	c := cond.New(&m)
	m.TryLock()
	suspend.Bind(nil, func() {
		panics("suspend: suspending is forbidden here (in a callback, or under Bind(nil))", func() { _ = c.Wait(bg) })
	})
	if m.TryLock() {
		t.Error("not locked after Wait has panicked")
	}
	m.Unlock()
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		w := start(s, c)
		schedtest.Settle()
		c.Signal()
		schedtest.Settle()
		if !w.ended || w.err != nil {
			t.Errorf("%+v", w)
		}
	})
}

// An exiting lock ends the goroutine in the first Lock, as a Kill may end the Lock of a mutex.
type exiting struct {
	sync.Mutex
	exited bool
}

func (l *exiting) Lock() {
	if !l.exited {
		l.exited = true
		runtime.Goexit()
	}
	l.Mutex.Lock()
}

// A Wait whose goroutine exits while it locks L again holds L, so that the deferred functions of the caller can unlock it.
func TestLockExits(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	l := new(exiting)
	c := cond.New(&hooked{Locker: l, after: cancel})
	var exits sync.WaitGroup
	exits.Go(func() {
		l.Mutex.Lock()
		defer func() {
			if l.TryLock() {
				t.Error("L is not locked")
			}
		}()
		_ = c.Wait(ctx)
		t.Error("Wait has returned")
	})
	exits.Wait()
}

// A Wait whose L.Unlock ends the goroutine leaves no waiter behind either.
func TestUnlockExits(t *testing.T) {
	c := cond.New(&hooked{Locker: new(sync.Mutex), before: runtime.Goexit})
	var exits sync.WaitGroup
	exits.Go(func() { _ = c.Wait(bg) })
	exits.Wait()
	c.L = new(sync.Mutex)
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		w := start(s, c)
		schedtest.Settle()
		c.Signal()
		schedtest.Settle()
		if !w.ended {
			t.Error("the signal went to a waiter that has left")
			c.Signal()
		}
	})
}

func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cond.New(new(mutex.Mutex))
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		go func() {
			time.Sleep(time.Minute) // on the clock of the bubble
			c.Signal()
		}()
		c.L.Lock()
		defer c.L.Unlock()
		if err := c.Wait(ctx); err != nil {
			t.Errorf("Wait = %v", err)
		}
		if err := c.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v", err)
		}
	})
}

func TestDoneContextDoesNotUnlock(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	c := cond.New(&hooked{Locker: new(sync.Mutex), before: func() { t.Error("unlocked") }})
	c.L.Lock()
	if err := c.Wait(ctx); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
}

// A waiter is a task that has locked, waits, and unlocks.
type waiter struct {
	err    error
	ended  bool
	cancel context.CancelFunc
}

func start(s suspend.Spawner, c *cond.Cond, then ...func()) *waiter {
	ctx, cancel := schedtest.WithCancel()
	w := &waiter{cancel: cancel}
	_ = s.Go(func() {
		c.L.Lock()
		w.err = c.Wait(ctx)
		for _, f := range then {
			f()
		}
		c.L.Unlock()
		w.ended = true
	})
	return w
}

func TestServedInOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		c := cond.New(new(mutex.Mutex))
		var order []int
		for i := range 8 {
			start(s, c, func() { order = append(order, i) })
		}
		schedtest.Settle()
		for range 3 {
			c.Signal()
		}
		schedtest.Settle()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("order %v after three signals", order)
		}
		c.Broadcast()
		c.Signal()
		schedtest.Settle()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("order %v", order)
		}
	})
}

func TestNotRemembered(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		c := cond.New(new(mutex.Mutex))
		c.Signal()
		c.Broadcast()
		w := start(s, c)
		schedtest.Settle()
		if w.ended {
			t.Error("woken by an earlier signal")
		}
		c.Broadcast()
		late := start(s, c) // late has begun after the broadcast, and is not woken
		schedtest.Settle()
		if !w.ended || late.ended {
			t.Errorf("ended: %v, %v", w.ended, late.ended)
		}
		late.cancel()
		schedtest.Settle()
		if !errors.Is(late.err, context.Canceled) {
			t.Errorf("Wait = %v", late.err)
		}
	})
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestCancelAtEachPoint(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.Mutex
		c := cond.New(&m)
		queued, met, after, last := start(s, c), start(s, c), start(s, c), start(s, c)
		schedtest.Settle()
		queued.cancel()
		schedtest.Settle()
		if !queued.ended || !errors.Is(queued.err, context.Canceled) {
			t.Errorf("while queued: %+v", queued)
		}
		met.cancel() // and is still in the queue
		c.Signal()
		after.cancel()
		schedtest.Settle()
		if !met.ended || !errors.Is(met.err, context.Canceled) {
			t.Errorf("before the signal: %+v", met)
		}
		if !after.ended || after.err != nil {
			t.Errorf("after the signal: %+v", after)
		}
		if last.ended {
			t.Error("two woken by one signal")
		}

		// Whether it was signalled or cancelled, a Wait waits for the lock again, and returns with the lock held.
		m.Lock()
		last.cancel()
		schedtest.Settle()
		if last.ended {
			t.Error("ended without the lock")
		}
		m.Unlock()
		schedtest.Settle()
		if !last.ended || !errors.Is(last.err, context.Canceled) {
			t.Errorf("cancelled: %+v", last)
		}
		w := start(s, c)
		schedtest.Settle()
		m.Lock()
		c.Signal()
		schedtest.Settle()
		w.cancel() // while Wait locks L again
		schedtest.Settle()
		if w.ended {
			t.Error("ended without the lock")
		}
		m.Unlock()
		schedtest.Settle()
		if !w.ended || w.err != nil {
			t.Errorf("signalled, then cancelled while it locks: %+v", w)
		}
		if !m.TryLock() {
			t.Error("locked at the end")
		}
	})
}

// A Signal or Broadcast that comes after Unlock and before the suspension is not missed. It is counted in order, and wins over a
// later cancellation.
func TestOnTheWay(t *testing.T) {
	for name, wake := range map[string]func(*cond.Cond){"Signal": (*cond.Cond).Signal, "Broadcast": (*cond.Cond).Broadcast} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				for _, cancelled := range []string{"never", "after", "before"} {
					l := &hooked{Locker: new(mutex.Mutex)}
					c := cond.New(l)
					var w, next *waiter
					l.after = func() {
						l.after = nil
						next = start(s, c) // starts to wait before the first one suspends
						schedtest.Settle()
						if cancelled == "before" {
							w.cancel() // the task has not looked at its context yet: it takes the signal and returns nil
						}
						wake(c)
						if cancelled == "after" {
							w.cancel()
						}
					}
					w = start(s, c)
					schedtest.Settle()
					schedtest.Settle()
					if !w.ended || w.err != nil {
						t.Errorf("cancelled %s: %+v", cancelled, w)
					}
					if next.ended != (name == "Broadcast") {
						t.Errorf("cancelled %s: the next %+v", cancelled, next)
					}
					c.Broadcast()
					schedtest.Settle()
				}
			})
		})
	}
	t.Run("cancelled only", func(t *testing.T) {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			l := &hooked{Locker: new(mutex.Mutex)}
			c := cond.New(l)
			var w *waiter
			l.after = func() { l.after = nil; w.cancel() }
			w = start(s, c)
			next := start(s, c)
			schedtest.Settle()
			if !w.ended || !errors.Is(w.err, context.Canceled) {
				t.Errorf("%+v", w)
			}
			c.Signal()
			schedtest.Settle()
			if !next.ended || next.err != nil {
				t.Errorf("the signal woke no waiter: %+v", next)
			}
		})
	})
}

// A buffer has two conditions on one lock. Each put signals one taker, and each take signals one putter, so a lost signal leaves
// a task waiting.
type buffer struct {
	notFull, notEmpty *cond.Cond
	items             []int64
	size              int
	owned             bool
	bad               atomic.Int32
}

func newBuffer(l sync.Locker, size int) *buffer {
	return &buffer{notFull: cond.New(l), notEmpty: cond.New(l), size: size}
}

func (b *buffer) lock() { b.notFull.L.Lock(); b.own() }

func (b *buffer) own() {
	if b.owned {
		b.bad.Add(1)
	}
	b.owned = true
}

func (b *buffer) disown() {
	if !b.owned {
		b.bad.Add(1)
	}
	b.owned = false
}

func (b *buffer) unlock() { b.disown(); b.notFull.L.Unlock() }

func (b *buffer) wait(ctx context.Context, c *cond.Cond) error {
	b.disown()
	err := c.Wait(ctx)
	b.own()
	return err
}

func (b *buffer) put(ctx context.Context, v int64) error {
	b.lock()
	defer b.unlock()
	for len(b.items) == b.size {
		if err := b.wait(ctx, b.notFull); err != nil {
			return err
		}
	}
	b.items = append(b.items, v)
	b.notEmpty.Signal()
	return nil
}

func (b *buffer) take(ctx context.Context) (int64, error) {
	b.lock()
	defer b.unlock()
	for len(b.items) == 0 {
		if err := b.wait(ctx, b.notEmpty); err != nil {
			return 0, err
		}
	}
	v := b.items[0]
	b.items = b.items[1:]
	b.notFull.Signal()
	return v, nil
}

// Some producers and consumers give up at random, and the others never do. The others end only if no signal is lost, because no
// later signal would make up for it.
func boundedBuffer(t *testing.T, l sync.Locker, size, rounds int, next func() suspend.Spawner) (cancelled int64) {
	const pairs = 4
	seed := uint64(size)
	b := newBuffer(l, size)
	var put, took, putSum, tookSum, failed atomic.Int64
	var all sync.WaitGroup
	spawn := func(f func(rng *rand.Rand)) {
		all.Add(1)
		seed++
		rng := rand.New(rand.NewPCG(seed, 1))
		_ = next().Go(func() { defer all.Done(); f(rng) })
	}
	quick := func(rng *rand.Rand) (context.Context, context.CancelFunc) {
		if rng.IntN(2) == 0 {
			return context.WithTimeout(bg, time.Duration(rng.IntN(100))*time.Microsecond)
		}
		ctx, cancel := context.WithCancel(bg)
		go cancel()
		return ctx, cancel
	}
	add := func(n, sum *atomic.Int64, v int64, err error) {
		if err != nil {
			failed.Add(1)
			return
		}
		n.Add(1)
		sum.Add(v)
	}
	for i := range pairs {
		spawn(func(*rand.Rand) {
			for k := range rounds {
				v := int64(i*rounds + k)
				add(&put, &putSum, v, b.put(bg, v))
			}
		})
		spawn(func(*rand.Rand) {
			for range rounds {
				v, err := b.take(bg)
				add(&took, &tookSum, v, err)
			}
		})
	}
	for range pairs {
		spawn(func(rng *rand.Rand) { // puts as many values as it takes, so that the other tasks can end
			for range rounds {
				ctx, cancel := quick(rng)
				v, err := b.take(ctx)
				add(&took, &tookSum, v, err)
				if err == nil {
					add(&put, &putSum, v, b.put(bg, v))
				}
				cancel()
			}
		})
		spawn(func(rng *rand.Rand) {
			for range rounds {
				ctx, cancel := quick(rng)
				err := b.put(ctx, 1)
				add(&put, &putSum, 1, err)
				if err == nil {
					v, err := b.take(bg)
					add(&took, &tookSum, v, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if put.Load() != took.Load() || putSum.Load() != tookSum.Load() || len(b.items) != 0 {
		t.Errorf("put %d (sum %d), took %d (sum %d), left %d", put.Load(), putSum.Load(), took.Load(), tookSum.Load(), len(b.items))
	}
	if b.bad.Load() != 0 {
		t.Errorf("the lock was not held, or held twice, %d times", b.bad.Load())
	}
	return failed.Load()
}

func TestBoundedBuffer(t *testing.T) {
	cancelled := int64(0)
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			for _, locker := range lockers[:2] {
				t.Run(locker.name, func(t *testing.T) {
					schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
						cancelled += boundedBuffer(t, locker.new(), size, 80, func() suspend.Spawner { return s })
					})
					schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
						cancelled += boundedBuffer(t, locker.new(), size, 80, next)
					})
				})
			}
		})
	}
	if cancelled == 0 {
		t.Error("uncovered: nothing was cancelled")
	}
}

// A semaphore built on a condition runs under the adversary. It signals once for each permit. If a cancelled waiter loses a
// signal, or a later waiter takes it, a task waits for ever although a permit is free.
func TestSemaphoreUnderTheAdversary(t *testing.T) {
	failed := 0
	schedtest.Seeds(t, 3000, func(rng *rand.Rand, s *random.Scheduler) func() error {
		l := &hooked{Locker: new(mutex.Mutex)}
		if rng.IntN(2) == 0 { // lets others run between Unlock and the suspension
			l.after = suspend.Yield
		}
		c := cond.New(l)
		const tasks = 5
		permits := 1 + rng.IntN(2)
		free := permits
		var cancels [tasks]context.CancelFunc
		left := tasks
		for i := range tasks {
			_ = s.Go(func() {
				defer func() { left-- }()
				for range 3 {
					ctx := bg
					if i%2 == 0 {
						ctx, cancels[i] = schedtest.WithCancel()
					}
					var err error
					c.L.Lock()
					for free == 0 && err == nil {
						err = c.Wait(ctx)
					}
					if err == nil {
						free--
					} else {
						failed++
					}
					c.L.Unlock()
					if err != nil {
						continue
					}
					suspend.Yield()
					c.L.Lock()
					free++
					c.L.Unlock()
					c.Signal()
				}
			})
		}
		for left > 0 && rng.IntN(100) > 0 { // no cancellations after that
			if cancel := cancels[rng.IntN(tasks)]; cancel != nil {
				cancel()
			}
			suspend.Yield()
		}
		return func() error {
			if free != permits {
				return fmt.Errorf("%d permits, want %d", free, permits)
			}
			return nil
		}
	})
	if failed == 0 {
		t.Error("uncovered: nothing was cancelled")
	}
}

// Each round wakes all waiters, whatever is cancelled: a broadcast does not miss a waiter that is about to suspend.
func TestBroadcastMissesNobody(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		c := cond.New(new(mutex.Mutex))
		const tasks, rounds = 10, 100
		round, there := 0, 0
		var failed atomic.Int64
		var all sync.WaitGroup
		for i := range tasks {
			all.Add(1)
			_ = next().Go(func() {
				defer all.Done()
				rng := rand.New(rand.NewPCG(uint64(i), 5))
				for range rounds {
					c.L.Lock()
					mine := round
					if there++; there == tasks {
						there, round = 0, round+1
						c.L.Unlock()
						c.Broadcast() // without holding the lock
						continue
					}
					for round == mine {
						ctx, cancel := bg, context.CancelFunc(func() {})
						if rng.IntN(2) == 0 {
							ctx, cancel = context.WithTimeout(bg, time.Duration(rng.IntN(100))*time.Microsecond)
						}
						if c.Wait(ctx) != nil {
							failed.Add(1)
						}
						cancel()
					}
					c.L.Unlock()
				}
			})
		}
		all.Wait()
		if failed.Load() == 0 {
			t.Error("uncovered: nothing was cancelled")
		}
	})
}

// A cancelled waiter is not kept alive.
func TestNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		c := cond.New(new(mutex.Mutex))
		start(s, c) // the cancelled waiter has one waiter before it and one behind it
		schedtest.Settle()
		var values schedtest.Objects
		func() {
			ctx, cancel := context.WithCancel(bg)
			v := values.New()
			ended := false
			_ = s.Go(func() {
				c.L.Lock()
				_ = c.Wait(context.WithValue(ctx, new(int), v))
				c.L.Unlock()
				_ = suspend.Sleep(context.WithValue(ctx, new(int), 0), time.Second)
				ended = true
			})
			schedtest.Settle()
			start(s, c)
			schedtest.Settle()
			cancel()
			for !ended {
				suspend.Yield()
			}
		}()
		values.Collected(t, 0)
		c.Broadcast()
	})
}

func TestAllocs(t *testing.T) {
	c := cond.New(new(mutex.Mutex))
	if got := testing.AllocsPerRun(100, func() { c.Signal(); c.Broadcast() }); got > 0 {
		t.Errorf("Signal: %v allocations", got)
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	for _, ctx := range []context.Context{bg, ctx} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			c := cond.New(new(mutex.Mutex))
			turn, over := 0, false
			_ = s.Go(func() {
				c.L.Lock()
				defer c.L.Unlock()
				for !over {
					for turn == 0 && !over {
						_ = c.Wait(ctx)
					}
					turn = 0
					c.Signal()
				}
			})
			c.L.Lock()
			got := testing.AllocsPerRun(100, func() {
				turn = 1
				c.Signal()
				for turn == 1 {
					_ = c.Wait(ctx)
				}
			})
			over = true
			c.Signal()
			c.L.Unlock()
			if got > 0 && !schedtest.Race {
				t.Errorf("Wait: %v allocations", got)
			}
		})
	}
}

// A rude task calls signal while it parks, and then panics.
type rude struct{ signal func() }

func (r *rude) Park()   { r.signal(); panic("rude") }
func (r *rude) Unpark() {}

// A waiter whose Park panics after it was signalled passes the signal on. A later waiter in its place in the queue is not
// mistaken for it.
func TestAParkThatPanicsPassesTheSignalOn(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var mu sync.Mutex
	c := cond.New(&mu)
	var woken sync.WaitGroup
	wait := func() {
		mu.Lock()
		var listed sync.WaitGroup
		listed.Add(1)
		woken.Go(func() {
			mu.Lock() // blocks until wait unlocks it
			listed.Done()
			_ = c.Wait(bg)
			mu.Unlock()
		})
		mu.Unlock()
		listed.Wait()
		mu.Lock() // now it waits
		defer mu.Unlock()
	}
	r := &rude{signal: func() {
		wait()     // behind the rude task
		c.Signal() // resumes the rude task
		wait()     // in the place of the rude task
	}}
	suspend.Bind(r, func() {
		mu.Lock()
		defer mu.Unlock()
		schedtest.Panics(t, "rude", func() { _ = c.Wait(bg) })
	})
	wait()
	wait()
	for range 3 { // the fourth waiter is woken by the signal that was passed on
		c.Signal()
	}
	woken.Wait()
}

// A signalled waiter whose L.Lock panics passes the signal on to one other waiter. One that was not signalled passes nothing on.
func TestARelockThatPanicsPassesTheSignalOn(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for name, on := range map[string]struct{ signalled bool }{"signalled": {true}, "not signalled": {false}} {
		t.Run(name, func(t *testing.T) {
			var m mutex.Mutex
			c := cond.New(&m)
			var others sync.WaitGroup
			woken := make(chan bool, 2)
			other := func() {
				listed := make(chan struct{})
				others.Go(func() {
					m.Lock()
					close(listed)
					_ = c.Wait(bg)
					m.Unlock()
					woken <- true
				})
				<-listed
				for !m.TryLock() { // acquires m only when the other task waits
					runtime.Gosched()
				}
				m.Unlock()
			}
			l := &hooked{Locker: &m}
			l.after = func() {
				l.after = nil
				other()
				other()
				if on.signalled {
					c.Signal() // signals the waiter that is about to suspend
				}
				m.TryLock() // so that Wait finds L locked
			}
			c.L = l
			m.TryLock()
			suspend.Bind(nil, func() {
				schedtest.Panics(t, "suspend: suspending is forbidden here (in a callback, or under Bind(nil))", func() { _ = c.Wait(bg) })
			})
			m.Unlock()
			if !on.signalled {
				c.Signal()
			}
			<-woken
			if len(woken) > 0 {
				t.Error("both are woken")
			}
			c.Signal()
			others.Wait()
		})
	}
}

// Wait treats a context of Lazily like the context inside it: a cancellation wakes the waiter, because there may be no later
// signal.
func TestLazily(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.Mutex
		c := cond.New(&m)
		ctx, cancel := context.WithCancel(bg)
		m.Lock()
		_ = s.Go(cancel)
		if err := c.Wait(suspend.Lazily(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v", err)
		}
		m.Unlock()
	})
}
