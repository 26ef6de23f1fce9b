package suspend

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
)

// Blocking runs f, which may block in any way, on a goroutine of no scheduler while the calling task is suspended. The scheduler bounds the
// number of such goroutines, so f may have to wait its turn. If ctx is done before f has started, Blocking returns the cancellation error
// and f never runs. Once started, f is waited for. A task that still runs after its scheduler was closed may call Blocking too, but then
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
			j.giveUpOrWait()
		}
	}()
	err := j.wait(ctx)
	settled = true
	if err != nil && j.giveUpOrWait() {
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

// giveUpOrWait is the end of a wait that was cancelled: f never runs, or else it is waited for.
func (j *blocking) giveUpOrWait() (abandoned bool) {
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
	jobStarted          // the goroutine has begun f, and the task waits for it
	jobAbandoned        // the task gave up, so f never runs
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
