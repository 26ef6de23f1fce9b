package suspendtest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest"
	"github.com/braidgo/braid/suspendtest/internal/model"
)

// Each of these primitives has one mistake.
type (
	losesPermits     struct{ model.Semaphore }
	doublesPut       struct{ model.MVar }
	ignoresDone      struct{ model.MVar }
	failedPutStays   struct{ model.MVar }
	keepsPermit      struct{ model.Semaphore }
	letsTooManyIn    struct{ model.Semaphore }
	gatingHead       struct{ model.Semaphore }
	unlocksIfFails   struct{ model.Mutex }
	locksThoughDone  struct{ model.Mutex }
	losesWakeUp      struct{ slowMutex }
	signalsTwo       struct{ model.Cond }
	waitHidesError   struct{ model.Cond }
	sendsIfClosed    struct{ model.Chan }
	overtakes        struct{ model.Chan }
	changesValue     struct{ model.Promise }
	neverBreaks      struct{ model.Barrier }
	opensEarly       struct{ model.Latch }
	readsWhileWrites struct{ model.RWMutex }
	remembersRestart struct {
		model.Lazy
		failed atomic.Pointer[error]
	}
)

func (s losesPermits) Acquire(ctx context.Context, n int64) error {
	err := s.Semaphore.Acquire(ctx, n)
	if err != nil {
		return err
	}
	suspend.Yield()
	return ctx.Err() // the mistake: the permits are lost
}

func (m doublesPut) Put(ctx context.Context, v int) error {
	err := m.MVar.Put(ctx, v)
	if err == nil {
		m.TryPut(v)
	}
	return err
}

func (m ignoresDone) Read(ctx context.Context) (int, error) {
	if v, ok := m.TryRead(); ok {
		return v, nil
	}
	return m.MVar.Read(ctx)
}

func (m failedPutStays) Put(ctx context.Context, v int) error {
	err := m.MVar.Put(ctx, v)
	if err != nil {
		m.TryPut(v)
	}
	return err
}

func (s keepsPermit) Acquire(ctx context.Context, n int64) error {
	err := s.Semaphore.Acquire(ctx, n)
	if errors.Is(err, context.Canceled) {
		s.TryAcquire(1)
	}
	return err
}

func (s letsTooManyIn) Acquire(ctx context.Context, n int64) error {
	return s.Semaphore.Acquire(ctx, max(n-1, 1))
}

// When a waiter is cancelled, those behind it are not served.
func (s gatingHead) Acquire(ctx context.Context, n int64) error {
	if ctx.Err() == nil && n == 3 {
		ahead := make(chan error, 1)
		go func() { ahead <- s.Semaphore.Acquire(context.Background(), n) }()
		select {
		case err := <-ahead:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Semaphore.Acquire(ctx, n)
}

func (m unlocksIfFails) LockContext(ctx context.Context) error {
	err := m.Mutex.LockContext(ctx)
	if err != nil && !m.TryLock() {
		m.Unlock()
	}
	return err
}

func (m locksThoughDone) LockContext(ctx context.Context) error {
	if m.TryLock() {
		return nil
	}
	return m.Mutex.LockContext(ctx)
}

// A slowMutex is a lock with hand-over, made of a guard and a queue.
type slowMutex struct {
	model.Mutex
	guard   suspend.Guard
	held    bool
	waiters suspend.Queue[struct{}, struct{}]
}

func (m *slowMutex) TryLock() bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	was := m.held
	m.held = true
	return !was
}

func (m *slowMutex) LockContext(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, m)
	return err
}

func (m *slowMutex) LockOp() suspend.Op[struct{}] { return suspend.OpOf(suspend.Source[struct{}](m)) }

func (m *slowMutex) Guard() *suspend.Guard               { return &m.guard }
func (m *slowMutex) Enqueue(r suspend.Resumer[struct{}]) { m.waiters.Push(r, struct{}{}) }
func (m *slowMutex) Remove(r suspend.Resumer[struct{}])  { m.waiters.Remove(r) }
func (m *slowMutex) Try() (none struct{}, ok bool, err error) {
	was := m.held
	m.held = true
	return none, !was, nil
}

// Unlock looks only at the first waiter, and gives up if this one was cancelled.
func (m *losesWakeUp) Unlock() {
	m.guard.Lock()
	defer m.guard.Unlock()
	if !m.held {
		panic("mutex: Unlock of an unlocked Mutex")
	}
	if m.waiters.Len() > 0 {
		m.waiters.ResumeHead(struct{}{}, nil) // if ResumeHead returns false, no task holds the lock
		return
	}
	m.held = false
}

func (c signalsTwo) Signal() { c.Cond.Signal(); c.Cond.Signal() }

func (c waitHidesError) Wait(ctx context.Context) error {
	if err := c.Cond.Wait(ctx); err != nil && ctx.Err() == context.DeadlineExceeded {
		return nil
	}
	return ctx.Err()
}

func (c sendsIfClosed) Send(ctx context.Context, v int) error {
	if err := c.Chan.Send(ctx, v); err != chanx.ErrClosed {
		return err
	}
	return nil
}

func (c overtakes) Recv(ctx context.Context) (int, error) {
	v, err := c.Chan.Recv(ctx)
	if w, ok, _ := c.TryRecv(); ok && err == nil { // the second comes before the first
		if ok, _ := c.TrySend(v); ok {
			return w, nil
		}
	}
	return v, err
}

func (p changesValue) Fill(v int) bool { p.Promise.Fill(v); return true }

func (b neverBreaks) Wait(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	return b.Barrier.Wait(context.WithoutCancel(ctx))
}

func (l opensEarly) CountDown() {
	l.Latch.CountDown()
	defer func() { _ = recover() }()
	l.Latch.CountDown()
}

func (m readsWhileWrites) TryRLock() bool {
	if m.RWMutex.TryLock() {
		m.Downgrade()
		return true
	}
	return false
}

func (l *remembersRestart) Force(ctx context.Context) (int, error) {
	if err := l.failed.Load(); err != nil && ctx.Err() == nil {
		return 0, *err
	}
	v, err := l.Lazy.Force(ctx)
	if err != nil {
		l.failed.Store(&err)
	}
	return v, err
}

var primitiveMutants = []struct {
	name string
	spec model.Spec
}{
	{"permits are lost if Acquire is cancelled too late", model.Semaphores(func(n int64) model.Semaphore { return losesPermits{model.RealSemaphore(n)} })},
	{"a value is doubled", model.MVars(func() model.MVar { return doublesPut{model.RealMVar()} })},
	{"a done context is ignored", model.MVars(func() model.MVar { return ignoresDone{model.RealMVar()} })},
	{"the value of a cancelled Put arrives", model.MVars(func() model.MVar { return failedPutStays{model.RealMVar()} })},
	{"a cancelled Acquire keeps a permit", model.Semaphores(func(n int64) model.Semaphore { return keepsPermit{model.RealSemaphore(n)} })},
	{"Acquire takes too few permits", model.Semaphores(func(n int64) model.Semaphore { return letsTooManyIn{model.RealSemaphore(n)} })},
	{"a cancelled Acquire keeps its place", model.Semaphores(func(n int64) model.Semaphore { return gatingHead{model.RealSemaphore(n)} })},
	{"a cancelled Lock unlocks", model.Mutexes(func() model.Mutex { return unlocksIfFails{model.RealMutex()} })},
	{"a Lock with a done context succeeds", model.Mutexes(func() model.Mutex { return locksThoughDone{model.RealMutex()} })},
	{"an Unlock is lost on a cancelled waiter", model.Mutexes(func() model.Mutex { return &losesWakeUp{} })},
	{"a Signal wakes two", model.Conds(func() (model.Cond, func(), func()) {
		c, lock, unlock := model.RealCond()
		return signalsTwo{c}, lock, unlock
	})},
	{"a Wait that is late succeeds", model.Conds(func() (model.Cond, func(), func()) {
		c, lock, unlock := model.RealCond()
		return waitHidesError{c}, lock, unlock
	})},
	{"a send on a closed channel succeeds", model.Chans(func(n int) model.Chan { return sendsIfClosed{model.RealChan(n)} })},
	{"values overtake", model.Chans(func(n int) model.Chan { return overtakes{model.RealChan(n)} })},
	{"a second Fill succeeds", model.Promises(func() model.Promise { return changesValue{model.RealPromise()} })},
	{"a party cannot be cancelled", model.Barriers(func(n int) model.Barrier { return neverBreaks{model.RealBarrier(n)} })},
	{"a latch opens too early", model.Latches(func(n int) model.Latch { return opensEarly{model.RealLatch(n)} })},
	{"a reader is not let in beside others", model.RWMutexes(func() model.RWMutex { return readsWhileWrites{model.RealRWMutex()} })},
	{"the error of a cancelled Force is remembered", model.Lazies(func(f func(context.Context) (int, error), mode lazy.Mode) model.Lazy {
		return &remembersRestart{Lazy: model.RealLazy(f, mode)}
	})},
}

// An adversary is the scheduler random with a broken part.
type adversary struct {
	*random.Scheduler
	run, execute func(s *adversary, f func()) error
	n            atomic.Int32
}

func (s *adversary) Go(f func()) error {
	if s.run == nil {
		return s.Scheduler.Go(f)
	}
	return s.run(s, f)
}

func (s *adversary) Execute(f func()) error {
	if s.execute == nil {
		return s.Scheduler.Execute(f)
	}
	return s.execute(s, f)
}

// nth returns true every n'th time.
func (s *adversary) nth(n int32) bool { return s.n.Add(1)%n == 0 }

func breaks(run, execute func(s *adversary, f func()) error) suspendtest.Open {
	return func(testing.TB) (suspend.Spawner, func()) {
		s := &adversary{Scheduler: random.New(random.Options{}), run: run, execute: execute}
		return s, suspendtest.Drive(s.Run)
	}
}

// nowAndThen returns a function that returns true every n'th time, for all tasks together.
func nowAndThen(n int32) func() bool {
	var calls atomic.Int32
	return func() bool { return calls.Add(1)%n == 0 }
}

// threads breaks the tasks of a scheduler that runs all tasks in parallel.
func threads(f func(t *patch)) suspendtest.Open {
	return func(testing.TB) (suspend.Spawner, func()) {
		s := &goroutines{}
		on := &patched{Baton: &Baton{}, run: func(_ *patched, run func()) error {
			return s.Go(func() {
				p := &patch{Task: sched.NewThread(), yield: runtime.Gosched}
				f(p)
				suspend.Bind(p, run)
			})
		}}
		return on, s.close
	}
}

var brokenSchedulers = []struct {
	name string
	open suspendtest.Open
}{
	{"one Unpark in five is lost", func() suspendtest.Open {
		lost := nowAndThen(5)
		return tasks(func(t *patch) {
			t.unpark = func() {
				if !lost() {
					t.Task.Unpark()
				}
			}
		})
	}()},
	{"an Unpark wakes the one that parked last", func() suspendtest.Open {
		var mu sync.Mutex
		var parked []*patch
		return tasks(func(t *patch) {
			t.park = func() {
				mu.Lock()
				parked = append(parked, t)
				mu.Unlock()
				t.Task.Park()
			}
			t.unpark = func() {
				mu.Lock()
				to := t
				if i := slices.Index(parked, t); i >= 0 {
					to = parked[len(parked)-1]
					parked = parked[:len(parked)-1]
				}
				mu.Unlock()
				to.Task.Unpark()
			}
		})
	}()},
	{"an Unpark is lost unless the task is parked", threads(func(t *patch) {
		var parking atomic.Bool
		t.park = func() {
			for range 20 {
				runtime.Gosched()
			}
			parking.Store(true)
			t.Task.Park()
			parking.Store(false)
		}
		t.unpark = func() {
			if parking.Load() {
				t.Task.Unpark()
			}
		}
	})},
	{"one task in ten does not run", breaks(func(s *adversary, f func()) error {
		if s.nth(10) {
			return nil
		}
		return s.Scheduler.Go(f)
	}, nil)},
	{"one task in ten runs twice", breaks(func(s *adversary, f func()) error {
		if s.nth(10) {
			_ = s.Scheduler.Go(func() { func() { defer func() { _ = recover() }(); f() }() })
		}
		return s.Scheduler.Go(func() { defer func() { _ = recover() }(); f() })
	}, nil)},
	{"one task in ten is refused", breaks(func(s *adversary, f func()) error {
		if s.nth(10) {
			return suspend.ErrClosed
		}
		return s.Scheduler.Go(f)
	}, nil)},
	{"tasks run inline", breaks(func(_ *adversary, f func()) error { f(); return nil }, nil)},
	{"one callback in five does not run", breaks(nil, func(s *adversary, f func()) error {
		if s.nth(5) {
			return nil
		}
		return s.Scheduler.Execute(f)
	})},
}

// Every mutant is found within the default number of programs. Races do not show each time, so each such test is made a few times.
func TestPropertiesKillMutants(t *testing.T) {
	t.Cleanup(schedtest.Within(t, 2*schedtest.Deadline))
	const patience = 500 * time.Millisecond
	var wg sync.WaitGroup // most of them only wait
	defer wg.Wait()
	kill := func(name string, spec model.Spec, open suspendtest.Open) {
		wg.Go(func() {
			r := &recorder{TB: t, name: name}
			for start := time.Now(); !r.failed && time.Since(start) < schedtest.Deadline; {
				suspendtest.PropertiesOf(r, spec, open, patience)
			}
			if !r.failed {
				t.Errorf("%s survived", name)
			}
		})
	}
	for _, m := range primitiveMutants {
		kill(m.name, m.spec, func(testing.TB) (suspend.Spawner, func()) {
			s := random.New(random.Options{})
			return s, suspendtest.Drive(s.Run)
		})
	}
	for _, m := range brokenSchedulers {
		kill(m.name, model.MVars(model.RealMVar), m.open)
	}
}
