package workstealing

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Join runs a and b, in parallel if a worker is free, and returns when both have ended. It calls a in the calling task.
// While a runs another worker may steal b; otherwise the caller runs b afterwards. If a suspends, the first free worker
// begins b. So each may wait for the other, also on a pool of one worker.
//
// Join returns the values of both functions, and the error of a, or of b if a has none. If ctx is done already, Join
// returns the cancellation error and runs neither. A running Join is not cancelled: b runs even if a fails, and Join
// waits for both. Pass ctx on in a and b to end them.
//
// A panic in a is raised again in the caller with the same value, and so is a runtime.Goexit. A panic or Goexit in b
// follows, on whichever worker b ran, but the stack trace of a panic in a stolen b is lost. Both have ended by then.
//
// Join may be called wherever the caller may suspend. If the caller is not a task of p, it suspends, and a task of p runs the Join. If p is
// closed, Join returns suspend.ErrClosed and runs neither.
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

// joinOn is Join in a task that is on s.
func joinOn[A, B any](ctx context.Context, s *fiber, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	f := s.worker.fork(ctx, side[B](b))
	returned := false
	defer func() {
		if !returned { // a panicked or exited, and goes on to do so when b has ended
			f.abandon(s)
		}
	}()
	va, err = a(ctx)
	returned = true

	var errB error
	switch w := s.worker; { // a may have suspended, and gone on on another worker
	case w.forks.popIf(f):
		w.recycle(f)
		w.takenBack(s)
		vb, errB = b(ctx)
	case f.claim():
		f.ctx, f.body = nil, nil // a deque may hold f for a while
		vb, errB = b(ctx)
	default:
		var v any
		v, errB = f.result(s)
		vb, _ = v.(B) // a nil value of an interface type fails the assertion
	}
	if err == nil {
		err = errB
	}
	return va, vb, err
}

// joinOutside calls Join in a task of p.
func joinOutside[A, B any](ctx context.Context, p *Pool, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	if errPool := p.inside(func() { va, vb, err = Join(ctx, p, a, b) }); errPool != nil {
		err = errPool
	}
	return va, vb, err
}

// A fork is the second side of a Join, while it may run elsewhere. -J> is the task that joins, -W> a worker that has
// taken the fork from a deque.
//
//	open    -J> open     taken back from the bottom of its own deque: no worker has it, and none will
//	open    -J> claimed  a has moved to another worker, or others' forks are above: it runs in the task
//	open    -W> claimed  it runs on a coroutine of its own
//	claimed -J> awaited  the task suspends
//	claimed -W> done     it has ended before the task waits
//	awaited -W> done     and this worker owes the task its wake-up
//
// Invariant: the worker or task that claims a fork runs it, so that it runs once. An entry of a deque is a hint: a
// worker whose claim fails drops it. Only a fork that is taken back is used again, since only then it is certain that
// no deque has it.
type fork struct {
	state atomicx.Uint32
	ctx   context.Context
	body  interface{ run(*fork) } // dropped when the fork is taken
	next  *fork                   // links forks that are used again; the worker owns the list
	under labels.Set              // the profiler labels of the task that forks

	waiter suspend.Resumer[struct{}] // J writes it before awaited
	value  any                       // these by W, before done
	err    error
	ended  outcome.Outcome
}

const (
	open uint32 = iota
	claimed
	awaited
	done
)

// A side makes a fork's body of a function of any type, at no cost.
type side[T any] func(context.Context) (T, error)

func (s side[T]) run(f *fork) { f.value, f.err = valueOf(s(f.ctx)) }

func valueOf[T any](v T, err error) (any, error) { return v, err }

// claim reports whether the caller is to run f.
func (f *fork) claim() bool { return f.state.CompareAndSwap(open, claimed) }

// wait suspends the task that joins until f has ended. It is not cancellable.
func (f *fork) wait() {
	if f.state.Load() == done {
		return
	}
	_, _ = suspend.Suspend(context.Background(), func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		f.waiter = r
		return struct{}{}, !f.state.CompareAndSwap(claimed, awaited)
	})
}

// join is wait in the task that has forked f, which is on s.
func (f *fork) join(s *fiber) {
	s.joins = true
	defer func() { s.joins = false }() // runs even if the task exits
	f.wait()
}

// result waits for f, which was stolen, and ends as f has. It empties f, since a deque may hold it for a while.
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

// run runs f, which the caller has claimed, as the first and only thing on a coroutine.
func (f *fork) run() {
	body := f.body
	f.body = nil
	f.under.Put()
	outcome.Of(func() { body.run(f) }, func(o outcome.Outcome) {
		f.ended, f.ctx = o, nil
		if f.state.Swap(done) == awaited {
			f.waiter.Resume(struct{}{}, nil)
		}
	})
}

// inside runs f as a task of p, for a caller that is none, and ends as f does.
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

// abandon sees to it that f ends when its Join has no use for it any more. It never runs in the task of s, which is
// unwinding: a panic of f must not disturb it.
func (f *fork) abandon(s *fiber) {
	if f.claim() {
		s.pool.enqueue(&s.pool.injector, entry{fork: f})
	}
	f.join(s)
	f.forget()
}

// fork makes f the youngest fork of w, whose task is running.
func (w *worker) fork(ctx context.Context, body interface{ run(*fork) }) *fork {
	f := w.recycled
	if f == nil {
		f = new(fork)
	} else {
		w.recycled, f.next = f.next, nil
	}
	f.ctx, f.body, f.under = ctx, body, labels.Here()
	w.forks.push(f)
	if w.pool.wanted.Load() { // after the push: see Pool.wanted
		w.pool.wake()
	}
	return f
}

// recycle keeps f, which was taken back, for the next fork.
func (w *worker) recycle(f *fork) {
	f.ctx, f.body = nil, nil
	f.next, w.recycled = w.recycled, f
}
