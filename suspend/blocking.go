package suspend

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend/sched"
)

// Blocking runs f on a separate goroutine while the calling task is suspended. f may block in any way. The scheduler bounds the
// number of these goroutines, so f may have to wait before it starts. If ctx ends before f has started, Blocking returns the
// cancellation error, and f never runs. Once f has started, Blocking waits for f to return. A task that still runs after its
// scheduler was closed may call Blocking too, but then nothing bounds the number of goroutines.
//
// In a task, f may lock its thread and return without unlocking it: then the goroutine and the thread end.
//
// If f panics, Blocking panics in the calling task with the same value. If f calls runtime.Goexit, the calling task exits too.
// Without a bound task, Blocking calls f directly.
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
	if s, ok := As[sched.Blocker](Here()); ok {
		start = s.Block
	}
	j := &blocking{f: f}
	if err := start(j.run); errors.Is(err, ErrClosed) {
		go j.run() // a task may clean up after its scheduler was closed
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

// BlockingValue is like Blocking, but for a function with results. It returns the results of f, or the cancellation error if ctx
// ends before f has started.
func BlockingValue[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var v T
	var failed error
	if err := Blocking(ctx, func() { v, failed = f() }); err != nil {
		return v, err
	}
	return v, failed
}

// giveUpOrWait ends a Blocking whose wait has failed. If f has not started, it never runs, and giveUpOrWait returns true. Otherwise
// giveUpOrWait waits for f.
func (j *blocking) giveUpOrWait() (abandoned bool) {
	if j.state.CompareAndSwap(jobQueued, jobAbandoned) {
		j.f = nil // a job that is still queued must not retain f
		return true
	}
	_ = j.wait(context.Background())
	return false
}

// A blocking is one call of Blocking.
type blocking struct {
	f     func()
	state atomicx.Uint32

	mu     atomicx.Mutex
	ended  outcome.Outcome // set under mu by the goroutine that runs f, together with over
	over   bool
	waiter Resumer[struct{}]
}

const (
	jobQueued    uint32 = iota
	jobStarted          // the goroutine runs f, and the task waits for f
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
		waiter.Resume(struct{}{}, nil) // a task that this call does not resume reads j.over when it waits
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
