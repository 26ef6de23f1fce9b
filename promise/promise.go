// Package promise provides a value that arrives once and is awaited by any number of tasks.
//
// A closed channel says that a result is there, but not the result or its error, and cannot be combined. A promise holds
// both:
//
//	sum := promise.Go(ctx, pool, computeSum) // a task of any scheduler
//	page := promise.Go(ctx, loop, fetchPage)
//	...
//	v, err := sum.Await(ctx) // suspends only the caller
//
// All, Any and Race are operations that wait for several promises, without a task or a goroutine for each. A cancelled Await leaves the
// promise as it is, and the function of Go runs on: pass it a context that ends.
//
// Use a channel for a single goroutine that reads the result. Use package scope where the work must not outlive the caller, and
// package lazy where the first reader starts the work.
package promise

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A Promise is a place for one value, or one error, that is filled once and never changes again. The zero Promise is empty and ready
// to use; it must not be copied. Awaiting a filled Promise takes no lock. Waiters become runnable in the order in which they came.
type Promise[T any] struct {
	filled atomicx.Bool // set under guard, after value and err; pairs with the load in Try
	value  T
	err    error

	guard     suspend.Guard
	waiters   suspend.Queue[struct{}, struct{}] // empty once filled
	done      chan struct{}                     // made on demand
	followers dlist.List[follower[T]]           // sorted by arrival; empty once filled
}

// A Future is the read end of a Promise.
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

// Fill fills p with v and resumes all waiters. If p is filled already, it returns false and changes nothing. If several calls
// meet, one wins. It never suspends.
//
// A Fill that returns true synchronizes before the return of every Await that gets the value.
func (p *Promise[T]) Fill(v T) bool { return p.Resolve(v, nil) }

// Fail fills p with an error, as Fill does with a value. A nil err panics.
func (p *Promise[T]) Fail(err error) bool {
	if err == nil {
		panic("promise: Fail with a nil error")
	}
	var zero T
	return p.Resolve(zero, err)
}

// Resolve fills p with both results of a function, and Await returns both.
func (p *Promise[T]) Resolve(v T, err error) bool {
	p.guard.Lock()
	if p.filled.Load() {
		p.guard.Unlock()
		return false
	}
	p.value, p.err = v, err
	p.filled.Store(true)
	p.waiters.ResumeAll(struct{}{}, nil) // a refused waiter was cancelled, and is owed nothing
	if p.done != nil {
		close(p.done)
	}
	followers := p.followers
	p.followers = dlist.List[follower[T]]{}
	p.guard.Unlock()
	for t := followers.Pop(); t != nil; t = followers.Pop() {
		t.Value.of.told(t.Value.i)
	}
	return true
}

// Await returns the value and the error of p. It suspends the caller until p is filled. If ctx is done first, or already, it returns
// the cancellation error, whether p is filled or not.
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
	return p.await(ctx)
}

func (p *Promise[T]) await(ctx context.Context) (T, error) {
	_, err := suspend.Wait[struct{}](ctx, (*awaitSource[T])(p), true)
	if err != nil {
		var zero T
		return zero, err
	}
	return p.value, p.err
}

// Try returns the value and the error of p, and whether p is filled. It never suspends.
func (p *Promise[T]) Try() (v T, ok bool, err error) {
	suspend.Point()
	if !p.filled.Load() {
		return v, false, nil
	}
	return p.value, true, p.err
}

// Done returns a channel that is closed when p is filled, for a native select. It is always the same one.
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

// AwaitOp is Await as an Op.
func (p *Promise[T]) AwaitOp() suspend.Op[T] {
	return suspend.Map(suspend.OpOf[struct{}]((*awaitSource[T])(p)), func(struct{}, error) (T, error) { return p.value, p.err })
}

type awaitSource[T any] Promise[T]

func (s *awaitSource[T]) Guard() *suspend.Guard                 { return &s.guard }
func (s *awaitSource[T]) Try() (v struct{}, ok bool, err error) { return v, s.filled.Load(), nil }
func (s *awaitSource[T]) Enqueue(r suspend.Resumer[struct{}])   { s.waiters.Push(r, struct{}{}) }
func (s *awaitSource[T]) Remove(r suspend.Resumer[struct{}])    { s.waiters.Remove(r) }
