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
// A slow reader may miss intermediate values, but never the last value. Modify computes the next value from the latest one, so that no
// update is lost. A Value is like the watch channel of tokio and the StateFlow of kotlinx.coroutines.
//
// Use package broadcast if each reader needs every value, a promise.Promise for a value that is set once, and an atomic.Pointer if no task
// waits for changes.
package watch

import (
	"context"

	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a wait for a change on a closed Value, of a Store or Modify after the Close, and of a second Close. Load still
// returns the last value.
var ErrClosed = outcome.Named("watch: closed", suspend.ErrClosed)

// A State is a value and its version. Each Store and each Modify increments the version.
type State[T any] struct {
	Value   T
	Version uint64
}

// A Value holds the value that was stored last. The zero Value holds the zero T, at version 0. A Value must not be copied. Load takes no
// lock, and neither Store nor Modify suspends.
type Value[T any] struct {
	// -S> is a Store or a Modify, -C> a Close.
	//
	//	version n -S> version n+1   all waiters are resumed with the new State, those of UntilOp with a request to look again
	//	open      -C> closed        all waiters are resumed with ErrClosed
	//
	// Invariant: while a task waits, the Value is open, and the task has seen the current version.

	guard   suspend.Guard
	state   atomicx.Pointer[State[T]] // a nil pointer means the zero State; set under the guard; pairs with the load in Value.now
	closed  bool
	waiters suspend.Queue[State[T], struct{}]
	more    *more[T] // nil before the first wait of an UntilOp and the first Modify
}

// A more holds the fields of a Value that most Values do not need.
type more[T any] struct {
	untils   suspend.Queue[T, struct{}]
	modifies int   // the number of calls of Modify that have not returned
	writer   int64 // if modifies > 0, the id of the goroutine that has stored the last of the values stored since then
}

func (w *Value[T]) moreLocked() *more[T] {
	if w.more == nil {
		w.more = new(more[T])
	}
	return w.more
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

// Store stores v, and resumes all tasks that wait for a change, in the order of their calls, and then the waiters of UntilOp. A Store of an
// equal value is also a change. After a Close, Store changes nothing and returns ErrClosed. Store never suspends.
//
// A Store or Modify synchronizes before the return of each Load, Changed, Until and UntilOp that returns its value or a later one, and
// before each call of the function of a Modify, Until or UntilOp that gets it.
func (w *Value[T]) Store(v T) error {
	w.guard.Lock()
	defer w.guard.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.storeLocked(v)
	return nil
}

// Modify atomically replaces the value by the result of f, which it calls with the latest value, and returns what it has stored. It resumes
// the waiters as Store does. After a Close, Modify changes nothing and returns ErrClosed, but may have called f. Modify never suspends.
//
// Modify calls f under no lock, and calls it again if another Store or Modify comes first, so f should be short and have no effects. In the
// end, f has got the value that its result replaces. This is the update of StateFlow in kotlinx.coroutines, and compare-and-swap in a loop.
// If f panics or calls runtime.Goexit, so does Modify, and the value is unchanged. f may Load, but must not call Store or Modify of the
// same Value: Modify panics if the latest value is by f itself, and this value remains. If another goroutine has changed the Value since,
// Modify cannot tell, and calls f again. Modify panics if f is nil.
func (w *Value[T]) Modify(f func(T) T) (State[T], error) {
	if f == nil {
		panic("watch: Modify with a nil function")
	}
	w.countModify(1)
	defer w.countModify(-1)
	for {
		suspend.Point()
		before := w.now()
		v := f(before.Value)
		if now, stored, err := w.replace(before.Version, v); stored || err != nil {
			return now, err
		}
	}
}

// countModify adds by to the number of calls of Modify that have not returned. While the number is above 0, each Store records its
// goroutine, so that a Modify finds the changes by its own function.
func (w *Value[T]) countModify(by int) {
	w.guard.Lock()
	defer w.guard.Unlock()
	w.moreLocked().modifies += by
}

// replace stores v if the version is still seen. It panics if the calling goroutine has stored the last value.
func (w *Value[T]) replace(seen uint64, v T) (now State[T], stored bool, err error) {
	w.guard.Lock()
	defer w.guard.Unlock()
	switch {
	case w.closed:
		return now, false, ErrClosed
	case w.now().Version == seen:
		return w.storeLocked(v), true, nil
	case w.more.writer == gid.Get():
		panic("watch: the function of a Modify changes the Value itself")
	}
	return now, false, nil
}

func (w *Value[T]) storeLocked(v T) State[T] {
	next := State[T]{v, w.now().Version + 1}
	w.state.Store(&next)
	if w.more != nil && w.more.modifies > 0 {
		w.more.writer = gid.Get()
	}
	w.waiters.ResumeAll(next, nil) // a waiter that cannot be resumed was cancelled
	var none T
	w.resumeUntils(none, again.Err)
	return next
}

func (w *Value[T]) resumeUntils(none T, err error) {
	if w.more != nil {
		w.more.untils.ResumeAll(none, err)
	}
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

// UntilOp returns an Op that performs Until. A Select calls ok in the calling task, under no lock, and again after each change.
// suspend.Then calls ok first on the calling goroutine, and later on the executor. Unlike the function of Until, ok must not suspend. It
// must not change the Value either: after each change a Select looks again, so it would call ok forever, and never suspend. If ok panics,
// nothing is performed, and the panic continues. UntilOp panics if ok is nil.
func (w *Value[T]) UntilOp(ok func(T) bool) suspend.Op[T] {
	if ok == nil {
		panic("watch: UntilOp with a nil function")
	}
	return suspend.OpOf[T](condition[T]{w, ok})
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
	var none T
	w.resumeUntils(none, ErrClosed)
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

// A condition makes the Source of an UntilOp for each use of the Op, because the Source keeps the result of ok. As a Source it is never
// ready, since suspend.OpOf calls only Anew.
type condition[T any] struct {
	*Value[T]
	ok func(T) bool
}

// Anew implements again.Maker.
func (c condition[T]) Anew() suspend.Source[T] { return &until[T]{condition: c} }

func (c condition[T]) Guard() *suspend.Guard        { return &c.guard }
func (condition[T]) Try() (v T, ok bool, err error) { return v, false, nil }
func (condition[T]) Enqueue(suspend.Resumer[T])     {}
func (condition[T]) Remove(suspend.Resumer[T])      {}

// An until is the Source of one use of an UntilOp, and an again.Preparer: ok must not run under the guard.
type until[T any] struct {
	condition[T]
	seen  State[T]
	holds bool // the result of ok for seen
}

func (u *until[T]) Prepare() {
	now := u.now()
	u.holds = u.ok(now.Value)
	u.seen = now
}

func (u *until[T]) Drop()                        { u.seen, u.holds = State[T]{}, false }
func (u *until[T]) Settle()                      { u.Drop() }
func (u *until[T]) Enqueue(r suspend.Resumer[T]) { u.moreLocked().untils.Push(r, struct{}{}) }
func (u *until[T]) Remove(r suspend.Resumer[T])  { u.more.untils.Remove(r) }
func (u *until[T]) Try() (v T, ok bool, err error) {
	switch {
	case u.holds: // even if the value has been replaced since, as in Until; or else quick Stores would keep the caller looking
		return u.seen.Value, true, nil
	case u.now().Version != u.seen.Version:
		return v, true, again.Err
	case u.closed:
		return v, true, ErrClosed
	}
	return v, false, nil
}
