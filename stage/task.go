package stage

import (
	"context"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/gid"
)

// A task is one input on its way through the stages, and the context of its handlers.
//
// Tasks form trees: a task that a handler begins with its own context is a child. The count open is the number of
// children that are not done, less one once the way of the task itself has ended, so that a fresh task needs no store. -P> is a handler
// that begins a child, -C> a child that is done, -W> the worker at the end of the way.
//
//	n  -P> n+1     n >= 0; from -1 it is refused with ErrEnded
//	n  -C> n-1
//	n  -W> n-1
//	0  -C,W> -1    done: the answer is given, and then the parent loses a child
//
// Invariant: open is -1 only after the handlers of the whole tree have returned, or will not run.
// Debt: the call of leave that takes open to -1 must give the answer, or the Do would wait without end.
type task struct {
	values context.Context
	parent *task
	answer answer                 // nil means that nobody waits for it; set before the way ends
	err    atomicx.Pointer[error] // the first failure; set once
	end    atomicx.Pointer[ending]
	gid    atomicx.Int64 // the goroutine of the latest handler
	at     *core         // the stage of the latest handler; read only by the same goroutine
	asked  *asking       // the Do of a handler that waits for it; never changes
	open   atomicx.Int32
	gone   atomicx.Bool // its Do has returned; pairs with the loads in over and lends
	tries  int32        // tries of the current stage's handler; the guard protects it
	until  until        // never changes
	level  uint8        // the priority in the stage that it is in
	dead   bool         // OnFail was called for it
	told   bool         // its Do was cancelled, and look has ended it in the queue; under the guard
}

// until says which context ends the task.
type until uint8

const (
	cut       until = iota // no context does, but a Close may cut the task off
	likeCtx                // the context of Do or Begin does
	likeOwner              // the parent's context does
)

// An answer is the receiver of a task's end: settled is called once.
type answer interface{ settled(err error) }

// An ending is the end of a task that only a Close can end. source makes it at the first need.
type ending struct {
	context.Context
	cancel func(cause error)
}

// taskKey is the key under which a context has its task.
type taskKey struct{}

// taskOf returns the task that ctx belongs to, nil if there is none.
func taskOf(ctx context.Context) *task {
	if t, ok := ctx.(*task); ok {
		return t
	}
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

// here returns the stage whose handler calls on its own goroutine, nil if there is none.
func (t *task) here() *core {
	if t != nil && t.gid.Load() == gid.Get() {
		return t.at
	}
	return nil
}

// Deadline implements context.Context.
func (t *task) Deadline() (deadline time.Time, ok bool) {
	switch t.until {
	case likeCtx:
		return t.values.Deadline()
	case likeOwner:
		return t.parent.Deadline()
	}
	return deadline, false
}

// Done implements context.Context.
func (t *task) Done() <-chan struct{} { return t.source().Done() }

// Err implements context.Context.
func (t *task) Err() error {
	if t.until == cut && t.end.Load() == nil {
		return nil
	}
	return t.source().Err()
}

// Value implements context.Context.
func (t *task) Value(key any) any {
	if key == (taskKey{}) {
		return t
	}
	if e := t.end.Load(); e != nil {
		if v := e.Value(key); v != nil { // the context of e has the cause
			return v
		}
	}
	return t.values.Value(key)
}

// String is what fmt prints.
func (t *task) String() string { return "stage.task" }

// AfterFunc arranges a call of f after the task's context is done. A wait with it needs no goroutine then.
func (t *task) AfterFunc(f func()) (stop func() bool) { return cancelctx.AfterFunc(t.source(), f) }

// source returns the context that ends t.
func (t *task) source() context.Context {
	switch t.until {
	case likeCtx:
		return t.values
	case likeOwner:
		return t.parent
	}
	e := t.end.Load()
	if e == nil {
		e = new(ending)
		e.Context, e.cancel = cancel.New(context.Background())
		if !t.end.CompareAndSwap(nil, e) {
			e = t.end.Load()
		}
	}
	return e
}

// AfterFunc lets package cancel register f without a goroutine for each call.
func (e *ending) AfterFunc(f func()) (stop func() bool) { return cancelctx.AfterFunc(e.Context, f) }

// cutOff ends the context of the tree that t is in, unless a context of Do or Begin is responsible for it.
func (t *task) cutOff(cause error) {
	for t.until == likeOwner {
		t = t.parent
	}
	if t.until == cut {
		t.source().(*ending).cancel(cause)
	}
}

// wasCut reports whether a Close has cut off the tree that t is in. Then t must count as failed, not as cancelled by its
// caller.
func (t *task) wasCut() bool {
	for t.until == likeOwner {
		t = t.parent
	}
	return t.until == cut && t.Err() != nil
}

// over reports whether t need not be begun any more.
func (t *task) over() bool { return t.gone.Load() || t.until != cut && t.Err() != nil }

// adopt adds a child, unless t is done.
func (t *task) adopt() bool {
	for {
		n := t.open.Load()
		if n < 0 {
			return false
		}
		if t.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends the way of t, or of one of its children.
func (t *task) leave(err error) {
	for {
		if err != nil {
			first := err
			t.err.CompareAndSwap(nil, &first)
		}
		if t.open.Add(-1) >= 0 {
			return
		}
		if first := t.err.Load(); first != nil {
			err = *first
		}
		if t.answer != nil {
			t.answer.settled(err)
		}
		if t.parent == nil {
			return
		}
		t = t.parent
	}
}

// ends ends the way of t, unless look has done so.
func (t *task) ends(err error) {
	if !t.told {
		t.leave(err)
	}
}

// leaveAlone is leave for a task without an answer to give, if it has no children left. The first error goes to err.
func (t *task) leaveAlone(err *error) bool {
	if !t.open.CompareAndSwap(0, -1) {
		return false
	}
	if first := t.err.Load(); first != nil {
		*err = *first
	}
	if t.parent != nil {
		t.parent.leave(*err)
	}
	return true
}

// Detach returns a context with the values of ctx and neither its task nor its end: tasks that are begun with it belong to
// no other.
func Detach(ctx context.Context) context.Context { return detached{context.WithoutCancel(ctx)} }

type detached struct{ context.Context }

func (d detached) Value(key any) any {
	if key == (taskKey{}) {
		return nil
	}
	return d.Context.Value(key)
}
