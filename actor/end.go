package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A PanicError is the error with which an actor ends whose code has panicked. A Catch of the panic is given it, too.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprint("actor: panic: ", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

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

// An ends holds others that want to know of an end.
type ends struct {
	done     chan struct{} // nil until asked for
	watchers []*watcher
}

// A watcher is one Watch, or one side of a Link.
type watcher struct{ tell func(err error) }

func (l *life) endsLocked() *ends {
	if l.ends == nil {
		l.ends = new(ends)
	}
	return l.ends
}

// An ending is the end of a life as a Source. Its result is the err of the life.
type ending life

func (e *ending) Guard() *suspend.Guard                  { return &e.guard }
func (e *ending) Try() (none struct{}, ok bool, _ error) { return none, e.over, nil }
func (e *ending) Enqueue(r suspend.Resumer[struct{}])    { e.waiters.Push(r, struct{}{}) }
func (e *ending) Remove(r suspend.Resumer[struct{}])     { e.waiters.Remove(r) }

// wait is Wait of an Actor.
func (l *life) wait(ctx context.Context) error {
	if _, err := suspend.Wait[struct{}](ctx, (*ending)(l), true); err != nil {
		return err
	}
	return l.err
}

func (l *life) waitOp() suspend.Op[error] {
	return suspend.Map(suspend.OpOf[struct{}]((*ending)(l)), func(struct{}, error) (error, error) { return l.err, nil })
}

func (l *life) done() <-chan struct{} {
	l.guard.Lock()
	defer l.guard.Unlock()
	e := l.endsLocked()
	if e.done == nil {
		e.done = make(chan struct{})
		if l.over {
			close(e.done)
		}
	}
	return e.done
}

// watch tells w of the end, at once if it has come.
func (l *life) watch(w *watcher) {
	l.guard.Lock()
	over, err := l.over, l.err
	if !over {
		e := l.endsLocked()
		e.watchers = append(e.watchers, w)
	}
	l.guard.Unlock()
	if over {
		w.tell(err)
	}
}

func (l *life) unwatch(w *watcher) {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ends == nil {
		return
	}
	for i, x := range l.ends.watchers {
		if x == w {
			l.ends.watchers = append(l.ends.watchers[:i:i], l.ends.watchers[i+1:]...)
			return
		}
	}
}

// stop is Stop.
func (in *Inbox[M]) stop() {
	in.guard.Lock()
	start := false
	if !in.closed {
		in.closed = true
		in.failLocked(ErrStopped)
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
	s.goOn, s.frames = nil, nil
	s.reacted()
	s.runOnEnd(0)
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
	in.waiters.ResumeAll(struct{}{}, nil) // one that refuses was cancelled, and is owed nothing
	var watchers []*watcher
	if e := in.ends; e != nil {
		watchers, e.watchers = e.watchers, nil
		if e.done != nil {
			close(e.done)
		}
	}
	in.guard.Unlock()
	each(func() bool {
		if len(watchers) == 0 {
			return false
		}
		w := watchers[0]
		watchers = watchers[1:]
		w.tell(err)
		return true
	})
}

// forget takes back the watches and timers that the actor has left with others.
func (s *Self[M]) forget() {
	if s.extra != nil {
		s.stopLater()
		s.guard.Lock()
		watches := s.extra.watches
		s.extra.watches = nil
		s.guard.Unlock()
		for w, other := range watches {
			other.lifeOf().unwatch(w)
		}
	}
	if s.release != nil {
		s.release()
	}
}

// OnEnd leaves a function that is called when the actor ends, the last one first, in its task; or when it fails in a Catch, if it
// was left there. It is for actors without a stack to defer on.
func (s *Self[M]) OnEnd(f func()) {
	if f == nil {
		panic("actor: OnEnd with a nil function")
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	x := s.extraLocked()
	x.onEnd = append(x.onEnd, f)
}

// runOnEnd calls the functions of OnEnd down to the n'th.
func (s *Self[M]) runOnEnd(n int) {
	for s.extra != nil && len(s.extra.onEnd) > n {
		last := len(s.extra.onEnd) - 1
		f := s.extra.onEnd[last]
		s.extra.onEnd[last] = nil
		s.extra.onEnd = s.extra.onEnd[:last]
		f()
	}
}

// Watch sends as(err) to this actor when another one has ended with err, once, and behind all that the other one has sent to it; at
// once if the other one has ended before. as is called by the ending actor and must not suspend. After stop, no message comes.
func (s *Self[M]) Watch(other Actor, as func(err error) M) (stop func()) {
	var w *watcher
	w = &watcher{func(err error) {
		m := as(err)
		s.guard.Lock()
		if !s.forgetWatchLocked(w) || s.closed {
			s.guard.Unlock()
			return
		}
		moved, start := s.acceptLocked(m, s.requestOf(m), true) // with the watch forgotten: after a stop, nothing comes
		s.guard.Unlock()
		moved.drop()
		if start {
			s.launch()
		}
	}}
	s.rememberWatch(w, other)
	other.lifeOf().watch(w)
	return func() {
		if s.forgetWatch(w) {
			other.lifeOf().unwatch(w)
		}
	}
}

func (s *Self[M]) rememberWatch(w *watcher, other Actor) {
	s.guard.Lock()
	defer s.guard.Unlock()
	x := s.extraLocked()
	if x.watches == nil {
		x.watches = map[*watcher]Actor{}
	}
	x.watches[w] = other
}

// forgetWatch reports whether w was to be told. One caller gets true.
func (s *Self[M]) forgetWatch(w *watcher) bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.forgetWatchLocked(w)
}

func (s *Self[M]) forgetWatchLocked(w *watcher) bool {
	_, ok := s.extra.watches[w]
	delete(s.extra.watches, w)
	return ok
}

// Link kills each of the two actors, with an *ExitError, if the other one fails; at once if it has failed before. A normal end kills
// nobody.
func (s *Self[M]) Link(other Actor) {
	me, it := &s.life, other.lifeOf()
	var here, there *watcher
	here = &watcher{func(err error) { // of this actor's end
		it.unwatch(there)
		if err != nil {
			other.Kill(&ExitError{me.name(), err})
		}
	}}
	there = &watcher{func(err error) {
		me.unwatch(here)
		if err != nil {
			s.kill(&ExitError{it.name(), err})
		}
	}}
	me.watch(here)
	it.watch(there)
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
