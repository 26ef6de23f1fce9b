package actor

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// An actor ends in three changes. Each arrow has the name of the function that makes the change.
//
//	running ──drain──▶ draining ──terminate──▶ ended ──publishEnd──▶ over
//
//	draining   no message is accepted, the mail is dead letters, and the actor waits for its children, which it has stopped
//	ended      the code of the actor has ended, its context is cancelled, and its requests have failed
//	over       the actor has no children, or a Kill has cut the wait for them; all that wait for the end, and all watchers, learn of it
//
// These functions make the changes:
//
//	finish             the end of the actor's last task
//		drain              after a Stop: stops the children, and waits for them
//		terminate          ends the context and fails the requests; deferred calls then bury the mail and call Options.OnEnd
//			publishEnd         resumeEndWaiters and tellEnd; then the same for a parent whose last child this was
//
// An actor drains only after a Stop or an ErrStopped, and only if it has children; see drains. The function finish calls drain and
// terminate. A Kill in state ended makes the last change in cutEnd. The field life.state has the state ended, and life.over the state over.

// Close ends the inbox. The remaining mail becomes dead letters, and a Send to the inbox returns ErrEnded. On a Self, Close is Stop. The
// error is always nil, and a second Close changes nothing. Close never suspends.
func (in *Inbox[M]) Close() error {
	if in.life.on != nil {
		in.life.stop()
	} else {
		in.life.terminate(nil)
	}
	return nil
}

// hold calls Hold, if the scheduler has this method, so that the scheduler counts the actor as a task until the actor has ended.
func (l *life) hold() error {
	h, ok := suspend.As[interface {
		Hold() (release func(), err error)
	}](l.on)
	if !ok {
		return nil
	}
	var err error
	l.release, err = h.Hold()
	return err
}

// joinFamily makes the actor a child of the actor in ctx, if there is one.
func (l *life) joinFamily(ctx context.Context) {
	p := actorOf(ctx)
	if p == nil {
		return
	}
	l.child = &child{parent: p}
	l.child.Value = l
	p.guard.Lock()
	p.fertile.Store(true)
	p.tiesLocked().children.Push(&l.child.Node)
	p.guard.Unlock()
}

var errGoexit = outcome.Named("actor: ended by runtime.Goexit", suspend.ErrAbandoned)

// finish ends the actor, in the actor's last task. If a function that was registered with OnEnd panics, the deferred call of
// afterTask calls the remaining functions and ends the actor with the panic.
func (l *life) finish(err error) {
	returned := false
	defer l.afterTask(&returned)
	l.stopTimed()
	l.goOn, l.frames = nil, nil
	if l.fertile.Load() && l.drains(err) {
		l.drain()
	}
	l.runOnEnd(nil)
	returned = true
	l.terminate(err)
}

// drains reports whether an actor that is done with err stops its children and waits until they have ended. After any other end, the
// children are killed.
func (l *life) drains(err error) bool {
	if err != nil && !errors.Is(err, ErrStopped) {
		return false
	}
	if l.killed.Load() {
		return false
	}
	l.guard.Lock()
	defer l.guard.Unlock()
	return (l.closed || err != nil) && l.ties.children.First() != nil
}

// drain stops the children and waits until they have ended. Before that, the remaining mail becomes dead letters, because a child may
// be waiting for the reply to one of these messages.
func (l *life) drain() {
	l.guard.Lock()
	l.closed = true
	l.box.failLocked(ErrEnded)
	calls := l.takeCallsLocked(nil)
	l.box.fetchLocked()
	l.guard.Unlock()
	calls.fail(nil)
	each(l.box.bury)
	for {
		children := l.offspring()
		for _, c := range children {
			c.stop()
		}
		if len(children) == 0 || l.outlive(children) != nil { // a child may spawn another child with its parent's context
			return
		}
	}
}

// terminate ends the inbox with err, or with the cause if it was killed. Each message that was accepted and not received becomes a dead
// letter.
func (l *life) terminate(err error) {
	if l.ctx.Err() != nil { // the owner may see the context's end before follow's callback has run
		l.kill(context.Cause(&l.ctx))
	}
	l.guard.Lock()
	if l.state == ended {
		l.guard.Unlock()
		return
	}
	var cause error
	switch {
	case l.killed.Load():
		err, cause = l.err, l.err
	case errors.Is(err, ErrStopped):
		err = nil
	}
	l.state, l.closed, l.err = ended, true, err
	l.box.failLocked(ErrEnded)
	calls := l.takeCallsLocked(nil)
	l.box.fetchLocked()
	mail := l.box.countLocked() > 0
	l.guard.Unlock()
	l.task.Store(0) // the goroutine's next task is not this actor

	// The following calls are deferred, so that a panic or a Goexit skips none of them. The last deferred call runs first.
	defer l.publishEnd()
	if l.given != nil && l.given.onEnd != nil {
		defer l.given.onEnd(err)
	}
	if mail {
		defer each(l.box.bury)
	}
	l.ctx.Cancel(cause) // a Kill may not have done so yet, and the children must see its cause
	calls.fail(err)
}

// publishEnd publishes the end of an actor whose code has ended, and removes the actor from its family. While the actor has children, it
// stays in its family, and its end is published only after a Kill. Each turn publishes the end of one actor. The next is that of its parent, if
// the parent's code has ended and this was its last child.
func (l *life) publishEnd() {
	next := l
	each(func() bool {
		ended := next
		if ended == nil {
			return false
		}
		now := ended.resumeEndWaiters()
		defer func() { // also if a watcher has panicked
			if next = nil; now.childless {
				next = ended.leaveFamily()
			}
		}()
		ended.tellEnd(now)
		return true
	})
}

// A publication says what is left to do after resumeEndWaiters.
type publication struct {
	over      bool // the end has been published by this call
	tied      bool // there are watchers to tell, or functions to undo
	childless bool // the actor must leave its family
}

// resumeEndWaiters resumes the waiters for the end and closes the Done channel, unless there are children that the end must wait for.
func (l *life) resumeEndWaiters() (now publication) {
	l.guard.Lock()
	defer l.guard.Unlock()
	t := l.ties
	if now.childless = t == nil || t.children.First() == nil; !now.childless {
		t.waits = true
	}
	if l.over || !now.childless && !l.killed.Load() {
		return now
	}
	if l.over, now.over = true, true; t != nil {
		t.ended.ResumeAll(struct{}{}, nil) // a cancelled waiter is skipped, and needs no wake-up
		if t.done != nil {
			close(t.done)
		}
		now.tied = t.watchers.First() != nil || t.undos.First() != nil
	}
	return now
}

// cutEnd implements Kill for an actor whose code has ended: its end waits for its children no longer.
func (l *life) cutEnd() {
	l.guard.Lock()
	cut := false
	if l.state == ended && !l.over {
		l.killed.Store(true)
		cut = l.ties != nil && l.ties.waits
	}
	l.guard.Unlock()
	if cut {
		l.tellEnd(l.resumeEndWaiters())
	}
}

// tellEnd calls the functions of the watchers, undoes the actor's own Watches, Links and SendAfters, and ends the scheduler's Hold.
func (l *life) tellEnd(now publication) {
	if now.over && l.release != nil {
		defer l.release()
	}
	if !now.tied {
		return
	}
	defer l.undoSince(nil)
	each(func() bool {
		w := l.popWatcher()
		if w != nil {
			w.Value(l.err)
		}
		return w != nil
	})
}
