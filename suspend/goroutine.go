package suspend

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/patience"
)

// A goroutine is the record of a suspended goroutine that has no task. After the suspension another goroutine may use the record.
// The word keeps its generation, so that the Resumers of an earlier use are stale. The channel belongs to the goroutine that made
// it, because a channel must not move from one testing/synctest bubble to another.
type goroutine struct {
	binding
	id      int64
	wake    chan struct{} // has a buffer of one, because a suspension causes at most one Unpark
	bubbled bool          // wake belongs to a bubble
	patience.Patience
}

// idleGoroutines holds unused records. A record is put back after its suspension has ended and its Unpark was received; otherwise
// the Unpark would wake the next user.
var idleGoroutines = sync.Pool{New: func() any {
	g := new(goroutine)
	g.task = g
	return g
}}

// newGoroutine returns a record that has begun a wait with ctx. The parameter done is the result of ctx.Done. The result waitFor
// is the same channel, or nil if the wait is lazy.
func newGoroutine(ctx context.Context, done <-chan struct{}) (g *goroutine, began state, waitFor <-chan struct{}) {
	g = idleGoroutines.Get().(*goroutine)
	if id := gid.Get(); id != g.id {
		g.id, g.wake, g.bubbled = id, make(chan struct{}, 1), inBubble()
	}
	status := openToContext
	if lazily.Allowed(ctx) {
		status, done = openLazily, nil
	}
	if began = g.word.load(); began.status() != status {
		began = g.word.open(status)
	}
	return g, began, done
}

// sleep blocks until the wait that began with s has ended, and reports whether it was resumed. The wait is cancelled when the
// channel (done) is closed.
func (g *goroutine) sleep(s state, done <-chan struct{}) (resumed bool) {
	if g.Begin() {
		runtime.Gosched()
		if g.End(!g.word.pending(s)); !g.word.pending(s) {
			done = nil
		}
	}
	if done == nil {
		<-g.wake
	} else {
		select {
		case <-g.wake:
		case <-done:
			if g.word.cancel(s) {
				return false
			}
			<-g.wake
		}
	}
	return !g.word.isCancelled(s) // a Resume that finds that the context has ended cancels the wait
}

// Park implements Task. It is never called, since a goroutine without a task waits in g.sleep.
func (g *goroutine) Park() { <-g.wake }

// Unpark wakes the goroutine. It is called once for each suspension, by the function that ended the suspension.
func (g *goroutine) Unpark() {
	if g.bubbled && !inBubble() {
		panic("suspend: a goroutine outside a synctest bubble ends a wait inside it, which the runtime does not allow; see docs/cancellation.md of Braid")
	}
	g.wake <- struct{}{}
}

// inBubble reports whether the caller is in a bubble of testing/synctest. Only there a time has no reading of the monotonic clock, which
// Round removes.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// inOwnBlock is bound while a goroutine without a task runs its block, so that a Suspend in the block panics.
var inOwnBlock = binding{doing: inBlock}

// suspendGoroutine is like Suspend, but for a goroutine without a task. The caller has already checked ctx.Err.
func suspendGoroutine[T any](ctx context.Context, block func(Resumer[T]) (T, bool)) (v T, err error) {
	done := ctx.Done()
	if done != nil && atomicx.Closed(done) {
		return v, cancellation(ctx)
	}
	g, began, waitFor := newGoroutine(ctx, done)
	s := slotOf[T](&g.binding)
	ok := false
	rebind(&inOwnBlock, func() { v, ok = s.block(&g.binding, block, Resumer[T]{s, began, done}) })
	if !ok && ledger.On() {
		recordSuspend(&g.binding, Resumer[T]{s, began, done})
	}
	again := !s.queued // a queued node still refers to the record
	switch {
	case ok:
		again = again && !g.word.isCancelled(began) // the Resume that has cancelled the wait will still call Unpark
	case g.sleep(began, waitFor):
		v, err = s.takeValue(began)
	default:
		err = cancellation(ctx)
	}
	if again && err == nil { // after an error the caller may still call Remove
		putBack(g)
	} // a panic skips this and drops the record
	return v, err
}

// waitGoroutine is like Wait, but for a goroutine without a task.
func waitGoroutine[T any, S Source[T]](ctx context.Context, guard *Guard, src S) (v T, err error) {
	done := ctx.Done()
	guard.Lock()
	if v, ok, err := src.Try(); ok {
		guard.Unlock()
		return v, err
	}
	g, began, waitFor := newGoroutine(ctx, done)
	s := slotOf[T](&g.binding)
	s.abandonNode()
	r := Resumer[T]{s, began, done}
	src.Enqueue(r)
	guard.Unlock()
	if ledger.On() {
		recordWait(&g.binding, src, guard, began, done != nil)
	}
	if g.sleep(began, waitFor) {
		v, err = s.takeValue(began)
	} else {
		remove(src, r)
		err = cancellation(ctx)
	}
	putBack(g)
	return v, err
}

// putBack keeps g for the next suspension, unless its slots have become large.
func putBack(g *goroutine) {
	if !g.large {
		idleGoroutines.Put(g)
	}
}
