// Package watch provides a value that one side stores and any number of tasks follow: a configuration, a leader, the state of a
// connection.
//
// A channel hands each value to one reader, and makes the writer wait. A sync.Cond needs a lock, and its waiters cannot give up. Here a
// reader waits for a version that it has not seen, and then gets the latest value:
//
//	for now := config.Load(); ; {
//		apply(now.Value)
//		if now, err = config.Changed(ctx, now.Version); err != nil {
//			return err // ctx is done, or there will be no more values
//		}
//	}
//
// A slow reader misses values in between, and never the last one. It is tokio's watch channel, and the StateFlow of kotlinx.coroutines.
//
// Use package broadcast where each reader needs each value, a promise.Promise for a value that arrives once, and an atomic.Pointer where
// no task waits for a change.
package watch

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a wait for a value that will not come, and of a Store after the Close. The last value can still be loaded.
var ErrClosed = outcome.Named("watch: closed", suspend.ErrClosed)

// A State is a value and its version. The version grows with each Store.
type State[T any] struct {
	Value   T
	Version uint64
}

// A Value is the latest of the values that were stored. The zero Value has the zero T, at version 0. It must not be copied. Load takes
// no lock, and Store never suspends.
type Value[T any] struct {
	// -S> is a Store, -C> a Close.
	//
	//	version n -S> version n+1   all waiters are resumed with it
	//	open      -C> closed        all waiters are resumed with ErrClosed
	//
	// Invariant: a waiter has seen the current version, and the Value is open; otherwise it would not wait.

	guard   suspend.Guard
	state   atomicx.Pointer[State[T]] // a nil pointer means the zero State; changes under guard, pairs with the Load in Load
	closed  bool
	waiters suspend.Queue[State[T], struct{}]
}

// New returns a Value that holds v, at version 0.
func New[T any](v T) *Value[T] {
	w := new(Value[T])
	w.state.Store(&State[T]{Value: v})
	return w
}

// Load returns the latest value, and its version for Changed. It never suspends.
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

// Store makes v the latest value, and resumes all tasks that wait for a change, in the order in which they came. An equal value is a change,
// too. After the Close it changes nothing, and returns ErrClosed. It never suspends.
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
	w.waiters.ResumeAll(next, nil) // a refused waiter was cancelled, and is owed nothing
	return nil
}

// Changed returns the latest value as soon as its version is not seen. It suspends the caller until then. If ctx is done first, or
// already, it returns the cancellation error. If the Value is closed first, or already, and seen is the last version, it returns ErrClosed.
// If a Store and the cancellation meet, either may win.
func (w *Value[T]) Changed(ctx context.Context, seen uint64) (State[T], error) {
	return suspend.Wait[State[T]](ctx, changed[T]{w, seen}, false)
}

// ChangedOp is Changed as an Op. Its seen never changes, so the next change needs another Op.
func (w *Value[T]) ChangedOp(seen uint64) suspend.Op[State[T]] {
	return suspend.OpOf[State[T]](&changed[T]{w, seen})
}

// Until returns the first value that it sees for which ok reports true, and suspends the caller until there is one. It fails as
// Changed does. A value that is replaced before the caller goes on may not be seen. ok runs in the caller's task, under no lock.
//
// With a bool it is an event that can be reset: Store(true), Store(false), and Until(ctx, func(set bool) bool { return set }).
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

// Close says that there will be no more values, and ends all waits with ErrClosed. The last value stays. A second Close changes nothing and
// returns ErrClosed. It never suspends.
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
