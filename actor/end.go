package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Close ends the inbox: the mail that is left becomes dead letters, and its Ref returns ErrEnded. On a Self it is Stop.
func (in *Inbox[M]) Close() {
	if in.self != nil {
		in.stop()
		return
	}
	in.end(nil)
}

// hold counts the actor as a suspended task of its scheduler while it waits without one, if the scheduler offers it.
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

// joinFamily makes the actor a child of the actor of ctx, if there is one.
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

// end is the end of an actor, in its last task. A panic of a function of OnEnd is the actor's: stepped then calls the remaining
// functions, and ends the actor with the panic.
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

// drains reports whether the actor, which is done with err, stops its children and waits for their ends. Another end kills them.
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

// drain stops the children and waits for their ends. The mail that is left is dead before: a child may wait for the answer to a request
// in it.
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

// end ends the inbox with err, unless it has been killed. Whatever is accepted before is received by now or becomes a dead letter
// here.
func (in *Inbox[M]) end(err error) {
	if in.ctx.Err() != nil { // the owner may have seen it before the callback that kills
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
	in.task.Store(0) // another task of this goroutine may ask: it is not the actor

	// One after another, the last one first. They are deferred, so that a panic or a Goexit of one function skips no other.
	defer in.tell(err)
	if in.hooks != nil && in.hooks.onEnd != nil {
		defer in.hooks.onEnd(err)
	}
	if in.mail.count > 0 {
		defer each(in.bury)
	}
	in.ctx.Cancel(cause) // a Kill may be about to, and the children are to end with its cause
	calls.fail(err)
}

// tell is the last act of an actor: it publishes the end.
func (in *Inbox[M]) tell(err error) {
	if in.self != nil {
		defer in.self.forget()
	}
	in.guard.Lock()
	in.over = true
	tied := in.ties != nil
	if tied {
		in.ties.ended.ResumeAll(struct{}{}, nil) // a waiter that refuses was cancelled, and needs nothing
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

// tellNext calls one watcher with err, and reports whether a watcher was left.
func (in *Inbox[M]) tellNext(err error) (more bool) {
	w := in.nextWatcher()
	if w != nil {
		w.Value(err)
	}
	return w != nil
}

// forget leaves the family and the scheduler.
func (s *Self[M]) forget() {
	s.leaveFamily()
	if s.release != nil {
		s.release()
	}
}
