package actor

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/braidgo/braid/suspend"
)

// Spawn starts an actor on a scheduler and returns its address. body runs in a task; its ctx is done when ctx is, when the actor
// is killed, and when it has ended. The actor is a child of the actor that ctx is of, if there is one. The actor ends when body is done or fails, and with it all that body has led to. When ctx
// is done, the actor is killed. If on refuses the task, now or later, the actor has ended with the error of the refusal.
//
// Whatever an actor does happens one thing after another: a Send synchronizes before the receipt of its message, and a reaction
// before the next one, on whatever thread.
func Spawn[M any](ctx context.Context, on suspend.Spawner, body func(ctx context.Context, self *Self[M]) error, o ...Options[M]) Ref[M] {
	if on == nil || body == nil {
		panic("actor: Spawn without a scheduler or a body")
	}
	s := &Self[M]{on: on}
	s.self = s
	s.init(ctx, o)
	s.enter = s.step()
	s.goOn = opening[M](body)
	if err := s.hold(); err != nil {
		goroutine(func() { s.end(err) })
		return s.Ref()
	}
	if s.follow(ctx) {
		s.joinFamily(ctx)
	}
	s.launch()
	return s.Ref()
}

// React goes on with the first message that f does not Skip, as Handle does, but without a task and without a stack while the
// actor waits: so it has to be returned, and nothing after it runs. The actor goes on with the result of f. f runs as
// a task and may suspend.
//
//	return self.React(func(m Msg) error { … })
func (s *Self[M]) React(f func(M) error) Next {
	if f == nil {
		panic("actor: React with a nil function")
	}
	return reaction[M](f)
}

type within[M any] struct {
	f    func(M) error
	d    time.Duration
	late func() error
}

func (*within[M]) next()         {}
func (*within[M]) Error() string { return "actor: ReactWithin" }

// A timed is a within whose time runs.
type timed[M any] struct {
	*within[M]
	timer *timer
}

// ReactWithin is React with a timeout: if no message that f takes comes for d, the actor goes on with late. d counts from the
// return of this Next; a message that f skips does not begin it anew. When the actor finds d to be over, f is called with the
// messages that are there, but with no later message. If d is not positive, that is at once.
func (s *Self[M]) ReactWithin(d time.Duration, f func(M) error, late func() error) Next {
	if f == nil || late == nil {
		panic("actor: ReactWithin with a nil function")
	}
	return &within[M]{f: f, d: d, late: late}
}

// An awaiter is an Await of any type.
type awaiter interface {
	Next
	begin(s executor)
}

// An executor is a starter of any type.
type executor interface {
	suspend.Executor
	proceed(f func() error)
	context() context.Context
}

type await[T any] struct {
	op suspend.Op[T]
	k  func(T, error) error
}

func (*await[T]) next()         {}
func (*await[T]) Error() string { return "actor: Await" }

func (a *await[T]) begin(s executor) {
	suspend.Then(s.context(), a.op, s, func(v T, err error) { s.proceed(func() error { return a.k(v, err) }) })
}

// Await goes on with k of op's result, without a task and without a stack while the actor waits. Until then its mail waits. If
// the actor is killed first, k is called with the error of the cancellation. k runs as a task and may suspend.
func Await[T, M any](s *Self[M], op suspend.Op[T], k func(T, error) error) Next {
	if s == nil || k == nil {
		panic("actor: Await without an actor or a function")
	}
	return &await[T]{op: op, k: k}
}

// An opening is a body.
type opening[M any] func(ctx context.Context, self *Self[M]) error

func (opening[M]) next() {}

func (opening[M]) Error() string { return "actor: opening" }

// proceed is a function that the actor goes on with.
type proceed func() error

func (proceed) next() {}

func (proceed) Error() string { return "actor: proceed" }

// step returns the function of the actor's tasks. A task lasts to the end of the actor, or until it waits without a task. Then
// another task may have begun already, so the returning task must touch nothing of the actor.
//
// Between the body of the actor and its coroutine there is one frame. A small body that receives fits into the first two kilobytes then.
func (s *Self[M]) step() func() {
	return func() {
		returned := false
		defer s.stepped(&returned)
		if s.asks {
			s.tasked()
		}
		if body, ok := s.goOn.(opening[M]); ok {
			s.goOn = body(&s.ctx, s)
		}
		s.trampoline()
		returned = true
	}
}

// stepAfter is step, of a task that begins with f. f calls functions of an Op.
func (s *Self[M]) stepAfter(f func()) {
	returned := false
	defer s.stepped(&returned)
	if s.asks {
		s.tasked()
	}
	f()
	s.trampoline()
	returned = true
}

// stepped is deferred by all that calls functions of the actor. After a panic that a Catch is for, the actor goes on in another task.
func (s *Self[M]) stepped(returned *bool) {
	if *returned {
		return
	}
	v := recover()
	if s.at.inHand() { // the function of a reaction has panicked
		s.received(s.at)
	}
	if v == nil { // runtime.Goexit
		s.end(errGoexit)
		return
	}
	err := &panicked{suspend.PanicError{Value: v, Stack: debug.Stack()}}
	if s.catches(err) {
		s.reacted()
		s.goOn = err
		s.untasked()
		s.launch()
		return
	}
	s.end(err)
	panic(v)
}

// trampoline follows one Next after another, until the actor waits without a task, or ends. So combinators need no stack.
func (s *Self[M]) trampoline() {
	err := s.goOn
	s.goOn = nil
	for woken := true; ; woken = false { // woken: a reaction has waited, and has looked at all that it knew
		switch n := err.(type) {
		case nil:
			f := s.frames
			if f == nil {
				s.end(nil)
				return
			}
			err = s.back(f)
		case reaction[M]:
			var waits bool
			if waits, err = s.react(err, n, woken); waits {
				return
			}
		case *within[M]:
			err = &timed[M]{n, s.startTimer(n.d)}
		case *timed[M]:
			s.goOn = n
			var waits bool
			if waits, err = s.react(n, n.f, woken); waits {
				return
			}
			if err == errLate {
				err = n.late()
			}
		case proceed:
			err = n()
		case *andThen:
			s.frames = &frame{up: s.frames, then: n.then}
			err = n.first
		case *loop:
			if err = nil; n.cond == nil || n.cond() {
				s.frames = &frame{up: s.around(n), loop: n}
				err = n.body()
			}
		case *catch:
			c := &caught{catch: n, onEnd: s.onEnd}
			s.leave(&c.left, nil)
			s.frames = &frame{up: s.frames, catch: c}
			err = n.first()
		case awaiter:
			s.untasked()
			n.begin((*starter[M])(s))
			return
		case skip:
			panic("actor: Skip returned outside a function that is called with a message")
		case Next:
			panic("actor: a React of another type of actor returned")
		default:
			if s.frames == nil {
				s.end(err)
				return
			}
			err = s.fail(err)
		}
	}
}

// around returns the frames around n that something may come back to. A Loop is never done, so only a Catch is left of those around
// it. Otherwise a state machine that goes from one Loop to the next would keep them all.
func (s *Self[M]) around(n *loop) *frame {
	f := s.frames
	for n.cond == nil && f != nil && f.catch == nil {
		f = f.up
	}
	return f
}

// back goes on with f, the innermost frame, as its inner Next is done.
func (s *Self[M]) back(f *frame) error {
	if n := f.loop; n != nil {
		s.spin()
		if n.cond == nil || n.cond() {
			return n.body()
		}
	}
	s.frames = f.up
	if f.then != nil {
		return f.then()
	}
	if f.catch != nil {
		s.take(&f.catch.left)
	}
	return nil
}

// spin is called in each turn of a Loop, and at each restart, to let other tasks run: there may be no wait between two of them.
func (s *Self[M]) spin() {
	if s.mail.spins++; s.mail.spins >= turnsUntilYield {
		s.mail.spins = 0
		suspend.Yield()
	}
}

// fail goes on with the innermost Catch that err, a failure, is for.
func (s *Self[M]) fail(err error) error {
	for f := s.frames; f != nil; f = f.up {
		s.frames = f.up
		if c := f.catch; c != nil && s.caught(c.catch, err) {
			s.runOnEnd(c.onEnd)
			s.takeBack(&c.left)
			s.failReceived(err)
			s.spin()
			return c.h(err)
		}
	}
	return err
}

// caught reports whether n is for err: neither a Stop nor a Kill is caught, and a panic only where that is asked for.
func (s *Self[M]) caught(n *catch, err error) bool {
	if s.killed.Load() || errors.Is(err, ErrStopped) {
		return false
	}
	_, ofPanic := err.(*panicked)
	return n.panics || !ofPanic
}

// catches reports whether a Catch goes on after err.
func (s *Self[M]) catches(err error) bool {
	for f := s.frames; f != nil; f = f.up {
		if f.catch != nil && s.caught(f.catch.catch, err) {
			return true
		}
	}
	return false
}

// errLate is the result of a reaction whose time is over.
var errLate = errors.New("actor: late")

// react calls f, of the reaction n, with the messages that it has not seen. It reports whether the actor waits, which is the end of
// this task. Otherwise the actor goes on with err. The reactions of a Loop follow one another here, as most actors consist of one.
func (s *Self[M]) react(n error, f func(M) error, woken bool) (waits bool, err error) {
	for {
		if !woken {
			suspend.Preemptible()
			s.fresh()
		}
		woken = false
		if s.killed.Load() {
			s.reacted()
			return false, s.cancellation()
		}
		if s.mail.count > 0 {
			if took, err := s.scan(&s.at, f); took {
				if s.at = (place[M]{}); s.goOn != nil { // its time runs
					s.reacted()
				}
				if err != nil || s.frames == nil || s.frames.loop == nil {
					return false, err
				}
				if l := s.frames.loop; l.cond == nil {
					n = l.body()
				} else {
					n = s.back(s.frames)
				}
				next, again := n.(reaction[M])
				if !again {
					return false, n
				}
				f = next
				continue
			}
		}
		var t *timer
		if n, ok := n.(*timed[M]); ok {
			t = n.timer
		}
		s.guard.Relock()
		news, err := s.newsLocked(t)
		if !news {
			s.goOn = n
			s.restLocked()
			s.state = reacting
			s.untasked()
			s.guard.Unlock() // another task may run after this
			return true, nil
		}
		s.guard.Unlock()
		if err != nil {
			s.reacted()
			if err == ErrTimeout {
				err = errLate
			}
			return false, err
		}
		woken = true
	}
}

// reacted is the end of a reaction's wait.
func (s *Self[M]) reacted() {
	s.at = place[M]{}
	if n, ok := s.goOn.(*timed[M]); ok {
		n.timer.stop()
		s.goOn = nil
	}
}

// A starter is an actor as the executor of its Awaits. It is also a Spawner, so that a timeout finds the scheduler's timers.
type starter[M any] Self[M]

// Execute calls f, which takes the result, in a task that then goes on with it.
func (s *starter[M]) Execute(f func()) error {
	err := s.on.Go(func() { (*Self[M])(s).stepAfter(f) })
	if err != nil {
		goroutine(func() { (*Self[M])(s).refuse(f, err) })
	}
	return nil
}

func (s *starter[M]) Go(f func()) error { return s.on.Go(f) }

func (s *starter[M]) Unwrap() suspend.Spawner { return s.on }

func (s *starter[M]) proceed(f func() error) { s.goOn = proceed(f) }

func (s *starter[M]) context() context.Context { return &s.ctx }

// refuse ends an actor whose scheduler has refused a task. The result of its Await, a lock perhaps, is still its own.
func (s *Self[M]) refuse(f func(), err error) {
	defer s.end(err)
	f()
	if k, ok := s.goOn.(proceed); ok {
		_ = k()
	}
}
