package stage

import (
	"context"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/promise"
)

// A task is one input on its way through the stages, and the context of its handlers.
//
// Tasks form trees: a task that a handler begins with its own context is a child. The count open is the number of children that are
// not done. Once the task has left its last stage, the count is one less than this number, so that a new task can begin with the
// count 0. In the diagram, -P> is a handler that begins a child, -C> a child that is done, and -W> the worker with which the task
// leaves its last stage.
//
//	n  -P> n+1     n >= 0; from -1 it is refused with errEnded
//	n  -C> n-1
//	n  -W> n-1
//	0  -C,W> -1    done: the answer is given, and then the parent loses a child
//
// Invariant: the count is -1 only after the handlers of the whole tree have returned, or will not run.
// Debt: the call of t.countDown that takes the count to -1 must give the answer; otherwise the Do would wait without end.
type task struct {
	values context.Context
	parent *task
	answer answer                 // receives the result; nil if nobody waits for it
	err    atomicx.Pointer[error] // the first error in the tree; set once
	end    atomicx.Pointer[ending]
	gid    atomicx.Int64 // the goroutine of the latest handler
	at     *core         // the stage of the latest handler; read only by the same goroutine
	asked  *asking       // the wait of the handler that waits for the task in a Do, or nil; never changes
	open   atomicx.Int32
	gone   atomicx.Bool // the Do was cancelled and has returned; pairs with the loads in task.unwanted and core.lendsByChain
	tries  int32        // failed tries in the current stage
	until  until        // the context that ends the task; never changes
	level  uint8        // the priority in the current stage
	dead   bool         // OnFail has been called for the task
	told   bool         // asking.examine has ended the task in the queue, because its Do was cancelled; protected by the guard
}

// The type until says which context ends a task.
type until uint8

const (
	cut       until = iota // no context; only a Close that cuts the stage off ends the task
	likeCtx                // the context given to Do or Begin
	likeOwner              // the parent's context
)

// An answer is notified of the end of a task, by one call of settled.
type answer interface{ settled(err error) }

// A reply holds the answer to a Do or Begin.
type reply[Out any] struct {
	out     Out
	promise promise.Promise[Out]
}

func (r *reply[Out]) settled(err error) {
	if err != nil {
		r.promise.Fail(err)
		return
	}
	r.promise.Fill(r.out)
}

// An ending is the context of a task that only a Close can end. The method source makes the ending when it is first needed.
type ending struct {
	context.Context
	cancel func(cause error)
}

// taskKey is the key for the task of a context.
type taskKey struct{}

// here returns the stage of the handler of t, or nil if the caller is not on the goroutine of this handler.
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
		if v := e.Value(key); v != nil { // the context in e has the cause
			return v
		}
	}
	return t.values.Value(key)
}

// String implements fmt.Stringer.
func (t *task) String() string { return "stage.task" }

// AfterFunc arranges for f to be called when the task's context is done. A wait with the context then needs no goroutine.
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

// cutOff cancels the context of the tree of t, unless it is the context of a Do or Begin.
func (t *task) cutOff(cause error) {
	for t.until == likeOwner {
		t = t.parent
	}
	if t.until == cut {
		t.source().(*ending).cancel(cause)
	}
}

// wasCut reports whether a Close has cut off the tree of t. If so, t must count as failed, not as cancelled by its caller.
func (t *task) wasCut() bool {
	for t.until == likeOwner {
		t = t.parent
	}
	return t.until == cut && t.Err() != nil
}

// unwanted reports whether t must not begin any more, because its Do has returned or its context is done.
func (t *task) unwanted() bool { return t.gone.Load() || t.until != cut && t.Err() != nil }

// adopt adds a child, or returns false if t is done.
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

// countDown records that t leaves its last stage, or that a child of t is done.
func (t *task) countDown(err error) {
	for {
		if err != nil {
			first := err
			t.err.CompareAndSwap(nil, &first)
		}
		// Step 11 of a task, see do.go.
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

// ends calls t.countDown, unless asking.examine has already ended t.
func (t *task) ends(err error) {
	if !t.told {
		t.countDown(err)
	}
}

// leaveAlone does the work of t.countDown for a task without an answer. If the task has children that are not done, leaveAlone returns
// false. Otherwise, leaveAlone stores the first error of the tree in err.
func (t *task) leaveAlone(err *error) bool {
	if !t.open.CompareAndSwap(0, -1) {
		return false
	}
	if first := t.err.Load(); first != nil {
		*err = *first
	}
	if t.parent != nil {
		t.parent.countDown(*err)
	}
	return true
}

// Detach returns a context with the values of ctx, but without its task and its cancellation. A task begun with this context has no
// parent.
func Detach(ctx context.Context) context.Context { return detached{context.WithoutCancel(ctx)} }

type detached struct{ context.Context }

func (d detached) Value(key any) any {
	if key == (taskKey{}) {
		return nil
	}
	return d.Context.Value(key)
}
