// Package watch provides a variable whose changes any number of tasks can wait for, such as a configuration, the current leader, or the
// state of a connection.
//
// A channel passes each value to one reader, and makes the writer wait. A sync.Cond needs a lock, and its waiters cannot be cancelled. A
// reader of a Value waits for a version that it has not seen, and then gets the latest value:
//
//	for now := config.Load(); ; {
//		apply(now.Value)
//		if now, err = config.Changed(ctx, now.Version); err != nil {
//			return err // ctx is done, or config is closed
//		}
//	}
//
// A slow reader may miss intermediate values, but never the last value. A Value is like the watch channel of tokio and the StateFlow of
// kotlinx.coroutines.
//
// Use package broadcast if each reader needs every value, a promise.Promise for a value that is set once, and an atomic.Pointer if no task
// waits for changes.
package watch

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a wait for a change on a closed Value, of a Store after the Close, and of a second Close. Load still returns
// the last value.
var ErrClosed = outcome.Named("watch: closed", suspend.ErrClosed)

// A State is a value and its version. Each Store increments the version.
type State[T any] struct {
	Value   T
	Version uint64
}

// A Value holds the value that was stored last. The zero Value holds the zero T, at version 0. A Value must not be copied. Load takes no
// lock, and Store never suspends.
type Value[T any] struct {
	// -S> is a Store, -C> a Close.
	//
	//	version n -S> version n+1   all waiters are resumed with the new State
	//	open      -C> closed        all waiters are resumed with ErrClosed
	//
	// Invariant: while a task waits, the Value is open, and the task has seen the current version.

	guard   suspend.Guard
	state   atomicx.Pointer[State[T]] // a nil pointer means the zero State; set under the guard; pairs with the load in Value.now
	closed  bool
	waiters suspend.Queue[State[T], struct{}]
}

// New returns a Value that holds v at version 0.
func New[T any](v T) *Value[T] {
	w := new(Value[T])
	w.state.Store(&State[T]{Value: v})
	return w
}

// Load returns the latest value and its version, which the caller may pass to Changed. It never suspends.
func (w *Value[T]) Load() (now State[T]) {
	suspend.Point()
	return w.now()
}

func (w *Value[T]) now() (now State[T]) {
	if s := w.state.Load(); s != nil {
		now = *s
	}
	return now
}

// Store stores v, and resumes all tasks that wait for a change, in the order of their calls. A Store of an equal value is also a change.
// After a Close, Store changes nothing and returns ErrClosed. Store never suspends.
//
// A Store synchronizes before the return of each Load, Changed and Until that returns its value or a later one.
func (w *Value[T]) Store(v T) error {
	w.guard.Lock()
	defer w.guard.Unlock()
	if w.closed {
		return ErrClosed
	}
	next := State[T]{v, w.now().Version + 1}
	w.state.Store(&next)
	w.waiters.ResumeAll(next, nil) // a waiter that cannot be resumed was cancelled
	return nil
}

// Changed suspends the caller until the version differs from seen, and then returns the latest value. If ctx is done before the call or
// during the wait, Changed returns the cancellation error. If the Value is closed and seen is the last version, Changed returns ErrClosed.
// If a Store races with the cancellation, either may win.
func (w *Value[T]) Changed(ctx context.Context, seen uint64) (State[T], error) {
	return suspend.Wait[State[T]](ctx, changed[T]{w, seen})
}

// ChangedOp returns an Op that performs Changed. To wait for the next change, make another Op with the new version.
func (w *Value[T]) ChangedOp(seen uint64) suspend.Op[State[T]] {
	return suspend.OpOf[State[T]](&changed[T]{w, seen})
}

// Until returns the first value that it sees for which ok returns true. It suspends the caller until then. It fails as Changed does. Until
// may miss a value that is replaced before the caller resumes. It calls ok in the caller's task, under no lock.
//
// A Value[bool] is an event that can be reset. Store(true) sets it, Store(false) resets it, and Until(ctx, func(set bool) bool { return set
// }) waits for it.
func (w *Value[T]) Until(ctx context.Context, ok func(T) bool) (T, error) {
	err := suspend.Err(ctx)
	for now := w.Load(); err == nil; now, err = w.Changed(ctx, now.Version) {
		if ok(now.Value) {
			return now.Value, nil
		}
	}
	var none T
	return none, err
}

// Close closes w, so that no more values can be stored, and ends all waits with ErrClosed. Load still returns the last value. A second
// Close changes nothing and returns ErrClosed. Close never suspends.
func (w *Value[T]) Close() error {
	w.guard.Lock()
	defer w.guard.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.closed = true
	w.waiters.ResumeAll(State[T]{}, ErrClosed)
	return nil
}

// A changed is the Source of Changed and ChangedOp.
type changed[T any] struct {
	*Value[T]
	seen uint64
}

func (c changed[T]) Guard() *suspend.Guard               { return &c.guard }
func (c changed[T]) Enqueue(r suspend.Resumer[State[T]]) { c.waiters.Push(r, struct{}{}) }
func (c changed[T]) Remove(r suspend.Resumer[State[T]])  { c.waiters.Remove(r) }

func (c changed[T]) Try() (now State[T], ok bool, err error) {
	switch now = c.now(); {
	case now.Version != c.seen:
		return now, true, nil
	case c.closed:
		return State[T]{}, true, ErrClosed
	}
	return State[T]{}, false, nil
}
