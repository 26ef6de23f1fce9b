package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Close ends the inbox. The remaining mail becomes dead letters, and a Send to the inbox returns ErrEnded. On a Self, Close is Stop.
func (in *Inbox[M]) Close() {
	if in.self != nil {
		in.stop()
		return
	}
	in.end(nil)
}

// hold calls Hold, if the scheduler has this method, so that the scheduler counts the actor as a task until the actor has ended.
func (s *Self[M]) hold() error {
	h, ok := suspend.As[interface {
		Hold() (release func(), err error)
	}](s.on)
	if !ok {
		return nil
	}
	var err error
	s.release, err = h.Hold()
	return err
}

// joinFamily makes the actor a child of the actor in ctx, if there is one.
func (s *Self[M]) joinFamily(ctx context.Context) {
	p := actorOf(ctx)
	if p == nil {
		return
	}
	s.child = &child{parent: p}
	s.child.Value = s
	p.guard.Lock()
	p.fertile.Store(true)
	p.tiesLocked().children.Push(&s.child.Node)
	p.guard.Unlock()
}

var errGoexit = fmt.Errorf("actor: runtime.Goexit: %w", promise.ErrAbandoned)

// end ends the actor, in the actor's last task. If a function that was registered with OnEnd panics, the deferred call of s.stepped
// calls the remaining functions and ends the actor with the panic.
func (s *Self[M]) end(err error) {
	returned := false
	defer s.stepped(&returned)
	s.reacted()
	s.goOn, s.frames = nil, nil
	if s.fertile.Load() && s.drains(err) {
		s.drain()
	}
	s.runOnEnd(nil)
	returned = true
	s.Inbox.end(err)
}

// drains reports whether an actor that is done with err stops its children and waits until they have ended. After any other end, the
// children are killed.
func (s *Self[M]) drains(err error) bool {
	if err != nil && !errors.Is(err, ErrStopped) {
		return false
	}
	if s.killed.Load() {
		return false
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	return (s.closed || err != nil) && s.ties.children.First() != nil
}

// drain stops the children and waits until they have ended. Before that, the remaining mail becomes dead letters, because a child may
// be waiting for the reply to one of these messages.
func (s *Self[M]) drain() {
	s.guard.Lock()
	s.closed = true
	s.failLocked(ErrEnded)
	calls := s.takeCallsLocked(nil)
	s.mail.fetch(&s.arrived)
	s.guard.Unlock()
	calls.fail(nil)
	each(s.bury)
	for {
		children := s.offspring()
		for _, c := range children {
			c.stop()
		}
		if len(children) == 0 || s.outlive(children) != nil {
			return
		}
	}
}

// end ends the inbox with err, or with the cause if it was killed. Each message that was accepted and not received becomes a dead
// letter.
func (in *Inbox[M]) end(err error) {
	if in.ctx.Err() != nil { // the owner may see the context's end before follow's callback has run
		in.kill(context.Cause(&in.ctx))
	}
	in.guard.Lock()
	if in.state == ended {
		in.guard.Unlock()
		return
	}
	var cause error
	switch {
	case in.killed.Load():
		err, cause = in.err, in.err
	case errors.Is(err, ErrStopped):
		err = nil
	}
	in.state, in.closed, in.err = ended, true, err
	in.failLocked(ErrEnded)
	calls := in.takeCallsLocked(nil)
	in.mail.fetch(&in.arrived)
	in.guard.Unlock()
	in.task.Store(0) // the goroutine's next task is not this actor

	// The following calls are deferred, so that a panic or a Goexit skips none of them. The last deferred call runs first.
	defer in.tell(err)
	if in.hooks != nil && in.hooks.onEnd != nil {
		defer in.hooks.onEnd(err)
	}
	if in.mail.count > 0 {
		defer each(in.bury)
	}
	in.ctx.Cancel(cause) // a Kill may not have done so yet, and the children must see its cause
	calls.fail(err)
}

// tell publishes the end of an actor: it resumes the waiters, closes the Done channel, and calls the watchers.
func (in *Inbox[M]) tell(err error) {
	if in.self != nil {
		defer in.self.forget()
	}
	in.guard.Lock()
	in.over = true
	tied := in.ties != nil
	if tied {
		in.ties.ended.ResumeAll(struct{}{}, nil) // a cancelled waiter is skipped, and needs no wake-up
		if in.ties.done != nil {
			close(in.ties.done)
		}
		tied = in.ties.watchers.First() != nil || in.ties.left.First() != nil
	}
	in.guard.Unlock()
	if !tied {
		return
	}
	if in.self != nil {
		defer in.self.takeBack(nil)
	}
	each(func() bool { return in.tellNext(err) })
}

// tellNext calls the next watcher with err, and reports whether there was one.
func (in *Inbox[M]) tellNext(err error) (more bool) {
	w := in.nextWatcher()
	if w != nil {
		w.Value(err)
	}
	return w != nil
}

// forget removes the actor from its family and ends the scheduler's Hold.
func (s *Self[M]) forget() {
	s.leaveFamily()
	if s.release != nil {
		s.release()
	}
}
