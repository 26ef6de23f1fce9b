package suspend

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
)

// A Spawner starts tasks. Go returns nil if f will run, as a task of its own, even if what asked for it is
// cancelled by then; it returns ErrClosed if f will never run. Go obeys the contract of Unpark: any goroutine may call
// it, under locks, and it neither blocks nor runs f before it returns.
type Spawner interface {
	Go(f func()) error
}

// An Executor runs callbacks. Execute enqueues f, which must not suspend, or returns the error with which it
// refuses; it obeys Unpark's contract: any goroutine, under locks, never blocking, never running f inline.
type Executor interface {
	Execute(f func()) error
}

// Stats are the statistics of a scheduler. The numbers are taken one after another while work goes on, and
// some schedulers publish them only now and then: they are for dashboards, not for decisions.
type Stats struct {
	Live      int64  // tasks and callbacks accepted that have not ended
	Running   int64  // of these, the ones running
	Suspended int64  // of these, the ones suspended, or woken but not yet running
	Wakes     uint64 // times that a suspended task was resumed, since the beginning
	Steals    uint64 // times that a worker took work from another

	Blocking       int64 // functions of Blocking that run
	BlockingQueued int64 // functions of Blocking that wait until others have ended
}

// Goroutines is the Spawner that starts goroutines. It refuses nothing.
var Goroutines Spawner = goroutines{}

type goroutines struct{}

func (goroutines) Go(f func()) error { go f(); return nil }

// Here returns the scheduler of the calling task, and Goroutines where there is none or none that says so.
func Here() Spawner {
	if b := current(); b != nil {
		if s := spawnerOf(b.task); s != nil {
			return s
		}
	}
	return Goroutines
}

// Yield lets other tasks of the calling task's scheduler run before it returns. A goroutine that has no task
// yields to other goroutines, and so does a task whose scheduler has no such notion. Yield is not cancellable.
func Yield() { leave(nil, true) } // inlined

// Blocking runs f, which may block in any way, on a goroutine of no scheduler while the calling task is suspended. The scheduler bounds the
// number of such goroutines, so f may have to wait its turn. If ctx is done before f has started, Blocking returns the cancellation error
// and f never runs. Once started, f is waited for. A task that still runs after its scheduler was closed may call Blocking as well; then
// nothing bounds the number of goroutines.
//
// A panic of f is raised in the calling task with the same value, and a runtime.Goexit of f ends it. Where
// no task is bound, f runs right here.
func Blocking(ctx context.Context, f func()) error {
	if err := Err(ctx); err != nil {
		return err
	}
	b := current()
	if b == nil {
		f()
		return nil
	}
	b.check()
	start := func(f func()) error { go f(); return nil }
	if s, ok := As[Blocker](Here()); ok {
		start = s.Block
	}
	j := &blocking{f: f}
	if err := start(j.run); errors.Is(err, ErrClosed) {
		go j.run() // a task that cleans up after Close may need to
	} else if err != nil {
		return err
	}
	settled := false
	defer func() {
		if !settled { // ctx has panicked
			j.settle()
		}
	}()
	err := j.wait(ctx)
	settled = true
	if err != nil && j.settle() {
		return err
	}
	j.ended.Rethrow()
	return nil
}

// Call is Blocking for a function with a result. It returns what f returns, or the cancellation error if ctx is done before f has
// started.
func Call[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var v T
	var failed error
	if err := Blocking(ctx, func() { v, failed = f() }); err != nil {
		return v, err
	}
	return v, failed
}

// settle is the end of a wait that was cancelled: f never runs, or else it is waited for.
func (j *blocking) settle() (abandoned bool) {
	if j.state.CompareAndSwap(jobQueued, jobAbandoned) {
		j.f = nil // j may have to wait its turn
		return true
	}
	_ = j.wait(context.Background())
	return false
}

// A blocking is one f on its way through a goroutine.
type blocking struct {
	f     func()
	state atomicx.Uint32

	mu     atomicx.Mutex
	ended  outcome.Outcome // set by the goroutine, under mu, before over
	over   bool
	waiter Resumer[struct{}]
}

const (
	jobQueued    uint32 = iota
	jobStarted          // by the goroutine: f is waited for
	jobAbandoned        // by the task: f never runs
)

func (j *blocking) run() {
	if !j.state.CompareAndSwap(jobQueued, jobStarted) {
		return
	}
	outcome.Of(j.f, func(o outcome.Outcome) {
		j.mu.Lock()
		j.ended, j.over = o, true
		waiter := j.waiter
		j.mu.Unlock()
		waiter.Resume(struct{}{}, nil) // false: cancelled just now, and about to look at over
	})
}

func (j *blocking) wait(ctx context.Context) error {
	_, err := Suspend(ctx, func(r Resumer[struct{}]) (struct{}, bool) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.waiter = r
		return struct{}{}, j.over
	})
	return err
}
