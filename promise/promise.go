// Package promise provides a value that is set once and that any number of tasks can await.
//
// A closed channel signals that a result exists, but carries neither the result nor its error. A promise holds both, and an Op can combine
// several promises:
//
//	sum := promise.Go(ctx, pool, computeSum) // runs a task on any scheduler
//	page := promise.Go(ctx, loop, fetchPage)
//	...
//	v, err := sum.Await(ctx) // suspends only the caller
//
// All, Any and Race wait for several promises, without a task or a goroutine for each. A cancelled Await does not change the promise, and
// does not stop the function that Go has started. To stop the function, cancel the context that was passed to Go.
//
// Use a channel if only one goroutine reads the result. Use package scope where the work must not outlive the caller, and package lazy
// where the first reader starts the work.
package promise

import (
	"cmp"
	"context"

	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// errAbandoned is the error of a promise whose function panicked or called runtime.Goexit. Any and Race also fail with errAbandoned if they
// are called without futures.
var errAbandoned = outcome.Named("promise: abandoned", suspend.ErrAbandoned)

// A Promise holds a value and an error, which are set once and then never change. The zero Promise is empty and ready to use. A Promise
// must not be copied. Awaiting a filled Promise takes no lock. Waiters are resumed in the order of their calls.
type Promise[T any] struct {
	filled atomicx.Bool // set under the guard, after value and err; so where it is true, value and err may be read without the guard
	value  T
	err    error

	guard     suspend.Guard
	waiters   suspend.Queue[struct{}, struct{}] // empty once the promise is filled
	done      chan struct{}                     // made by Done
	followers dlist.List[follower]              // oldest follower first; empty once the promise is filled
}

// A Future is the read-only view of a Promise.
type Future[T any] interface {
	Await(ctx context.Context) (T, error)
	AwaitOp() suspend.Op[T]
	Try() (v T, ok bool, err error)
	Done() <-chan struct{}

	promise() *Promise[T]
}

func (p *Promise[T]) promise() *Promise[T] { return p }

// New returns an empty promise.
func New[T any]() *Promise[T] { return new(Promise[T]) }

// Go starts f as a task by calling on.Go, or on a plain goroutine if on is nil, and returns a promise of f's results. If on.Go returns an
// error, the promise fails with this error. If f panics or calls runtime.Goexit, or if on is a node of a simulation that crashes before f
// begins, the promise fails with an error that is suspend.ErrAbandoned, and the scheduler treats the panic or exit as it does in any task.
// After a panic, the error also wraps a *suspend.PanicError. Go passes ctx to f, and f runs even if ctx is done. Go panics if f is nil.
func Go[T any](ctx context.Context, on suspend.Spawner, f func(ctx context.Context) (T, error)) *Promise[T] {
	if f == nil {
		panic("promise: Go with a nil function")
	}
	p := New[T]()
	err := abandoned.Go(cmp.Or(on, suspend.Goroutines), func() {
		abandoned.Watch(errAbandoned, func() { p.Resolve(f(ctx)) }, func(err error) { p.Fail(err) })
	}, func() { p.Fail(errAbandoned) })
	if err != nil {
		p.Fail(err)
	}
	return p
}

// Fill fills p with v, resumes all waiters and returns true. If p is filled already, Fill returns false and changes nothing. If several
// calls race, exactly one call returns true. Fill never suspends.
//
// A Fill that returns true synchronizes before the return of every Await that gets the value.
func (p *Promise[T]) Fill(v T) bool { return p.Resolve(v, nil) }

// Fail fills p with an error, as Fill does with a value. It panics if err is nil.
func (p *Promise[T]) Fail(err error) bool {
	if err == nil {
		panic("promise: Fail with a nil error")
	}
	var zero T
	return p.Resolve(zero, err)
}

// Resolve fills p with a value and an error, as Fill does with a value. Await then returns both.
func (p *Promise[T]) Resolve(v T, err error) bool {
	p.guard.Lock()
	if p.filled.Load() {
		p.guard.Unlock()
		return false
	}
	p.value, p.err = v, err
	p.filled.Store(true)
	p.waiters.ResumeAll(struct{}{}, nil) // a waiter that cannot be resumed was cancelled
	if p.done != nil {
		close(p.done)
	}
	followers := p.followers
	p.followers = dlist.List[follower]{}
	p.guard.Unlock()
	for t := followers.Pop(); t != nil; t = followers.Pop() {
		t.Value.of.told(t.Value.i)
	}
	return true
}

// Await returns the value and the error of p. It suspends the caller until p is filled. If ctx is done before the call or during the wait,
// Await returns the cancellation error, even if p is filled.
func (p *Promise[T]) Await(ctx context.Context) (T, error) {
	suspend.Preemptible()
	if p.filled.Load() {
		done := ctx.Done()
		if done == nil {
			return p.value, p.err
		}
		select {
		case <-done:
		default:
			return p.value, p.err
		}
	}
	_, err := suspend.WaitLazily[struct{}](ctx, (*awaitSource[T])(p))
	if err != nil {
		var zero T
		return zero, err
	}
	return p.value, p.err
}

// Try returns the value and the error of p, and reports whether p is filled. It never suspends.
func (p *Promise[T]) Try() (v T, ok bool, err error) {
	suspend.Point()
	if !p.filled.Load() {
		return v, false, nil
	}
	return p.value, true, p.err
}

// Done returns a channel that is closed when p is filled, for Go's select statement. Successive calls of Done return the same channel.
func (p *Promise[T]) Done() <-chan struct{} {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.filled.Load() {
			close(p.done)
		}
	}
	return p.done
}

// AwaitOp returns an Op that performs Await.
func (p *Promise[T]) AwaitOp() suspend.Op[T] {
	return suspend.Map(suspend.OpOf[struct{}]((*awaitSource[T])(p)), func(struct{}, error) (T, error) { return p.value, p.err })
}

type awaitSource[T any] Promise[T]

func (s *awaitSource[T]) Guard() *suspend.Guard                 { return &s.guard }
func (s *awaitSource[T]) Try() (v struct{}, ok bool, err error) { return v, s.filled.Load(), nil }
func (s *awaitSource[T]) Enqueue(r suspend.Resumer[struct{}])   { s.waiters.Push(r, struct{}{}) }
func (s *awaitSource[T]) Remove(r suspend.Resumer[struct{}])    { s.waiters.Remove(r) }
