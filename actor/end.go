package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// panicked is the error of an actor whose own code has panicked.
type panicked struct{ suspend.PanicError }

func (e *panicked) Error() string { return "actor: " + e.PanicError.Error() }
func (e *panicked) Unwrap() error { return &e.PanicError }

// An ExitError is the cause with which a Link kills an actor.
type ExitError struct {
	Name string // of the actor that failed
	Err  error  // with which it failed
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("actor: linked actor %q failed: %v", e.Name, e.Err)
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

var errGoexit = fmt.Errorf("actor: runtime.Goexit: %w", promise.ErrAbandoned)

// A ties is what an actor has to do with others. It is guarded by the guard of the life.
type ties struct {
	done     chan struct{}                     // closed at the end; nil until asked for
	ended    suspend.Queue[struct{}, struct{}] // waiters for the end
	watchers dlist.List[func(err error)]       // of the end
	stopped  suspend.Queue[struct{}, struct{}] // waiters for the Stop
	children dlist.List[member]                // that have not ended
	left     dlist.List[func()]                // see leaving
}

// A watcher is one Watch, or one side of a Link. It is told the error of the end.
type watcher = dlist.Node[func(err error)]

func (l *life) tiesLocked() *ties {
	if l.ties == nil {
		l.ties = new(ties)
	}
	return l.ties
}

// An ending is the end of a life as a Source. Its result is the err of the life.
type ending life

func (e *ending) Guard() *suspend.Guard                  { return &e.guard }
func (e *ending) Try() (none struct{}, ok bool, _ error) { return none, e.over, nil }
func (e *ending) Enqueue(r suspend.Resumer[struct{}]) {
	(*life)(e).tiesLocked().ended.Push(r, struct{}{})
}
func (e *ending) Remove(r suspend.Resumer[struct{}]) { e.ties.ended.Remove(r) }

// wait is Wait of an Actor.
func (l *life) wait(ctx context.Context) error {
	if by := actorOf(ctx); by != nil && by.cameFrom(l) && !l.hasEnded() {
		return errOwnEnd
	}
	if _, err := suspend.Wait[struct{}](ctx, (*ending)(l), true); err != nil {
		return err
	}
	return l.err
}

func (l *life) hasEnded() bool {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.over
}

func (l *life) waitOp() suspend.Op[error] {
	return suspend.Map(suspend.OpOf[struct{}]((*ending)(l)), func(struct{}, error) (error, error) { return l.err, nil })
}

func (l *life) done() <-chan struct{} {
	l.guard.Lock()
	defer l.guard.Unlock()
	t := l.tiesLocked()
	if t.done == nil {
		t.done = make(chan struct{})
		if l.over {
			close(t.done)
		}
	}
	return t.done
}

// watch tells w of the end, at once if it has come.
func (l *life) watch(w *watcher) {
	l.guard.Lock()
	over, err := l.over, l.err
	if !over {
		l.tiesLocked().watchers.Push(w)
	}
	l.guard.Unlock()
	if over {
		w.Value(err)
	}
}

func (l *life) unwatch(w *watcher) {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties != nil {
		l.ties.watchers.Remove(w)
	}
}

// nextWatcher takes out the next watcher to be told of the end, nil if there is none.
func (l *life) nextWatcher() *watcher {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties == nil {
		return nil
	}
	return l.ties.watchers.Pop()
}

// A stopping is the Stop of a life, or its end, as a Source.
type stopping life

func (s *stopping) Guard() *suspend.Guard                  { return &s.guard }
func (s *stopping) Try() (none struct{}, ok bool, _ error) { return none, s.closed, nil }
func (s *stopping) Enqueue(r suspend.Resumer[struct{}]) {
	(*life)(s).tiesLocked().stopped.Push(r, struct{}{})
}
func (s *stopping) Remove(r suspend.Resumer[struct{}]) { s.ties.stopped.Remove(r) }

// stop is Stop.
func (in *Inbox[M]) stop() {
	in.guard.Lock()
	start := false
	if !in.closed {
		in.closed = true
		in.failLocked(ErrStopped)
		if in.ties != nil {
			in.ties.stopped.ResumeAll(struct{}{}, nil) // one that refuses was cancelled, and will look
		}
		start = in.wakeLocked()
	}
	in.guard.Unlock()
	if start {
		in.self.launch()
	}
}

// kill is Kill.
func (in *Inbox[M]) kill(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	in.guard.Lock()
	if in.state == ended || in.killed.Load() {
		in.guard.Unlock()
		return
	}
	in.killed.Store(true)
	in.closed, in.err = true, cause
	in.failLocked(cancelctx.Reason(context.Canceled, cause))
	start := in.wakeLocked()
	in.guard.Unlock()
	in.ctx.Cancel(cause)
	if start {
		in.self.launch()
	}
}

// end is the end of an actor, in its last task. A panic of a function of OnEnd is the actor's: stepped calls those that are left, and
// ends the actor with it.
func (s *Self[M]) end(err error) {
	returned := false
	defer s.stepped(&returned)
	s.reacted()
	s.goOn, s.frames = nil, nil
	if s.drains(err) {
		s.drain()
	}
	s.runOnEnd(nil)
	returned = true
	s.Inbox.end(err)
}

// end ends the inbox with err, unless it has been killed. Whatever is accepted before is received by now or becomes a dead letter
// here.
func (in *Inbox[M]) end(err error) {
	in.guard.Lock()
	if in.state == ended {
		in.guard.Unlock()
		return
	}
	switch {
	case in.killed.Load():
		err = in.err
	case errors.Is(err, ErrStopped):
		err = nil
	}
	in.state, in.closed, in.err = ended, true, err
	in.failLocked(ErrEnded)
	calls := in.takeCallsLocked(nil)
	in.kept.fetch(&in.in)
	in.guard.Unlock()
	in.task.Store(0) // another task of this goroutine may ask: it is not the actor

	// One after another, the last one first. A panic or a Goexit of a function that is called here ends none of the others.
	defer in.tell(err)
	if in.opts != nil && in.opts.OnEnd != nil {
		defer in.opts.OnEnd(err)
	}
	if in.kept.count > 0 {
		defer each(in.bury)
	}
	in.ctx.Cancel(nil)
	calls.fail(err)
}

// each calls next until it reports that nothing is left. After a panic or a Goexit of next, it goes on while that unwinds.
func each(next func() (more bool)) {
	more := true
	defer func() {
		if more {
			each(next)
		}
	}()
	for more {
		more = next()
	}
}

// bury makes a dead letter of the first message of which no function is being called, and reports whether there was one.
func (in *Inbox[M]) bury() (more bool) {
	p, ok := in.kept.after(place[M]{})
	if !ok {
		return false
	}
	m := p.message()
	in.kept.remove(p)
	if in.opts != nil && in.opts.Dead != nil {
		in.opts.Dead(m)
	}
	return true
}

// tell is the last act of an actor.
func (in *Inbox[M]) tell(err error) {
	if in.self != nil {
		defer in.self.forget()
	}
	in.guard.Lock()
	in.over = true
	tied := in.ties != nil
	if tied {
		in.ties.ended.ResumeAll(struct{}{}, nil) // one that refuses was cancelled, and is owed nothing
		if in.ties.done != nil {
			close(in.ties.done)
		}
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

// tellNext tells one watcher of the end, and reports whether there was one.
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
