package workstealing

import (
	"context"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Join runs a and b, in parallel if a worker is free, and returns when both have ended. It calls a in the calling task.
// While a runs, another worker may steal b; otherwise the caller runs b afterwards. If a suspends, the first free
// worker begins b. So a and b may wait for each other, even on a pool of one worker.
//
// Join returns the values of both functions. Its error is a's error, or b's error if a succeeds. If ctx is already
// cancelled, Join returns the cancellation error and calls neither function. Cancelling ctx does not end a running
// Join: Join calls b even if a fails, and waits for both. To end a and b early, have them use the ctx that they
// receive.
//
// If a panics or calls runtime.Goexit, Join does the same in the caller, with the same panic value. The same holds for
// b, whichever worker ran it, unless a has already panicked or exited. The stack trace of a panic in a stolen b is
// lost. In all cases both functions have ended before the caller panics or exits.
//
// Join may be called wherever the caller may suspend. If the caller is not a task of p, it suspends while a task of p
// runs the Join. If p is then closed, Join returns an error that wraps suspend.ErrClosed, and calls neither function.
func Join[A, B any](ctx context.Context, p *Pool, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	if err = suspend.Err(ctx); err != nil {
		return va, vb, err
	}
	s := p.current()
	if s == nil {
		return joinOutside(ctx, p, a, b)
	}
	return joinOn(ctx, s, a, b)
}

// joinOn implements Join in a task on the fiber s.
func joinOn[A, B any](ctx context.Context, s *fiber, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	f := s.worker.fork(ctx, side[B](b))
	returned := false
	defer func() {
		if !returned { // a has panicked or exited; its unwinding continues when b has ended
			f.abandon(s)
		}
	}()
	va, err = a(ctx)
	returned = true

	var errB error
	switch w := s.worker; { // a may have suspended and resumed on another worker
	case w.forks.popIf(f):
		w.recycle(f)
		w.takenBack(s)
		vb, errB = b(ctx)
	case f.claim():
		f.ctx, f.body = nil, nil // a deque may still hold f
		vb, errB = b(ctx)
	default:
		var v any
		v, errB = f.result(s)
		vb, _ = v.(B) // the assertion fails for a nil interface value, and vb stays nil
	}
	if err == nil {
		err = errB
	}
	return va, vb, err
}

// joinOutside calls Join in a new task of p.
func joinOutside[A, B any](ctx context.Context, p *Pool, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	if errPool := p.inside(func() { va, vb, err = Join(ctx, p, a, b) }); errPool != nil {
		err = errPool
	}
	return va, vb, err
}

// A side turns a function of any result type into the body of a fork, without an allocation.
type side[T any] func(context.Context) (T, error)

func (s side[T]) run(f *fork) { f.value, f.err = valueOf(s(f.ctx)) }

func valueOf[T any](v T, err error) (any, error) { return v, err }

// wait suspends the joining task until f has ended. The wait cannot be cancelled.
func (f *fork) wait() {
	if f.state.Load() == done {
		return
	}
	_, _ = suspend.Suspend(context.Background(), func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		f.waiter = r
		return struct{}{}, !f.state.CompareAndSwap(claimed, awaited)
	})
}

// join calls f.wait in the task that made f, which runs on s.
func (f *fork) join(s *fiber) {
	s.joins = true
	defer func() { s.joins = false }() // reset even if the task exits
	f.wait()
}

// result waits for f, which was stolen, and returns, panics or exits as f did. It empties f, because a deque may still
// hold f.
func (f *fork) result(s *fiber) (any, error) {
	f.join(s)
	v, err, ended := f.value, f.err, f.ended
	f.forget()
	ended.Rethrow()
	return v, err
}

func (f *fork) forget() {
	f.waiter, f.value, f.err, f.ended = suspend.Resumer[struct{}]{}, nil, nil, outcome.Outcome{}
}

// inside runs f as a task of p, for a caller that is not a task of p, and returns, panics or exits as f does.
func (p *Pool) inside(f func()) error {
	j := &fork{body: plain(f)}
	j.state.Store(claimed)
	if err := p.Go(j.run); err != nil {
		return err
	}
	j.wait()
	j.ended.Rethrow()
	return nil
}

type plain func()

func (f plain) run(*fork) { f() }

// abandon waits until f has ended, although its Join no longer needs the result. f never runs in the task of s, because
// that task is unwinding, and a panic in f must not disturb it.
func (f *fork) abandon(s *fiber) {
	if f.claim() {
		s.pool.enqueue(entry{fork: f})
	}
	f.join(s)
	f.forget()
}

// fork pushes a new fork onto the deque of w, whose task is running.
func (w *worker) fork(ctx context.Context, body interface{ run(*fork) }) *fork {
	f := w.recycled
	if f == nil {
		f = new(fork)
	} else {
		w.recycled, f.next = f.next, nil
	}
	f.ctx, f.body, f.under = ctx, body, labels.Here()
	w.forks.push(f)
	w.pool.announce()
	return f
}

// recycle keeps f, which was taken back, for the next call of w.fork.
func (w *worker) recycle(f *fork) {
	f.ctx, f.body = nil, nil
	f.next, w.recycled = w.recycled, f
}
