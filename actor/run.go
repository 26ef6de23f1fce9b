package actor

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/braidgo/braid/suspend"
)

// Spawn starts an actor on a scheduler and returns its address. body runs in a task, with a context that ends when ctx ends, when the
// actor is killed, or when the actor has ended. The actor ends when body and every Next that follows are done, or at the first failure.
// When ctx is done, the actor is killed. If ctx is another actor's context, or derived from it, the new actor is that actor's child. If
// the scheduler refuses a task, now or later, the actor ends with that error.
//
// An actor's code never runs concurrently with itself. A Send synchronizes before the receipt of its message, and a reaction
// synchronizes before the next reaction.
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

// React returns a Next that calls f with one message after another, as Handle does, until f returns anything but Skip. The actor then
// continues with the result of f. While the actor waits, it has neither a task nor a stack. React itself does not wait, so the caller
// must return the Next. f runs in a task and may suspend.
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

// A timed is a ReactWithin whose timer has been started.
type timed[M any] struct {
	*within[M]
	timer *timer
}

// ReactWithin is React with a timeout: if f skips every message for the time d, the actor continues with late(). The timeout starts
// when the Next is returned, and a skipped message does not restart it. When the actor notices that this time is over, it calls f with
// the messages already in the mailbox, but with no later message. If d is not positive, the actor notices this at once.
func (s *Self[M]) ReactWithin(d time.Duration, f func(M) error, late func() error) Next {
	if f == nil || late == nil {
		panic("actor: ReactWithin with a nil function")
	}
	return &within[M]{f: f, d: d, late: late}
}

// An awaiter is an await with a result of any type.
type awaiter interface {
	Next
	begin(s executor)
}

// An executor is a starter with messages of any type.
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

// Await returns a Next that waits for op and then calls k with the result. While the actor waits, it has neither a task nor a stack,
// and handles no messages. If the actor is killed first, k is called with the error of the cancellation. k runs in a task and may
// suspend.
func Await[T, M any](s *Self[M], op suspend.Op[T], k func(T, error) error) Next {
	if s == nil || k == nil {
		panic("actor: Await without an actor or a function")
	}
	return &await[T]{op: op, k: k}
}

// An opening is an actor's body in the form of a Next.
type opening[M any] func(ctx context.Context, self *Self[M]) error

func (opening[M]) next() {}

func (opening[M]) Error() string { return "actor: opening" }

// A proceed is a function that the actor calls next, in the form of a Next.
type proceed func() error

func (proceed) next() {}

func (proceed) Error() string { return "actor: proceed" }

// step returns the function that each of the actor's tasks runs. A task returns when the actor ends or waits without a task. In the
// second case another task may already run the actor, so the returning task must not touch it.
//
// Only one stack frame lies between the coroutine and the body, so that a small body that receives fits into two kilobytes of stack.
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

// stepAfter is like step, for a task that begins with a call of f. f calls functions of an Op, which may panic.
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

// stepped is deferred wherever functions of the user are called. After a panic that a Catch handles, the actor continues in another
// task.
func (s *Self[M]) stepped(returned *bool) {
	if *returned {
		return
	}
	v := recover()
	if s.at.inHand() { // a reaction's function has not returned
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

// trampoline runs one Next after another, until the actor waits without a task, or ends. Nested Nexts therefore need no stack.
func (s *Self[M]) trampoline() {
	err := s.goOn
	s.goOn = nil
	for woken := true; ; woken = false { // woken means that a reaction continues after its wait
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

// around returns the frames that must be kept around n. A Loop without a condition is never done, so only the frames from the innermost
// Catch outwards are kept. Otherwise a state machine made of Loops would keep all its frames.
func (s *Self[M]) around(n *loop) *frame {
	f := s.frames
	for n.cond == nil && f != nil && f.catch == nil {
		f = f.up
	}
	return f
}

// back continues with f, the innermost frame, when the Next inside f is done.
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

// spin is called in each turn of a Loop, and before the function of each Catch. It yields from time to time, because there may be no
// wait between two turns.
func (s *Self[M]) spin() {
	if s.mail.spins++; s.mail.spins >= turnsUntilYield {
		s.mail.spins = 0
		suspend.Yield()
	}
}

// fail continues with the innermost Catch that handles err. It returns err if there is none.
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

// caught reports whether n handles err. A Stop and a Kill are never handled, and a panic is handled only if n.panics is set.
func (s *Self[M]) caught(n *catch, err error) bool {
	if s.killed.Load() || errors.Is(err, ErrStopped) {
		return false
	}
	_, ofPanic := err.(*panicked)
	return n.panics || !ofPanic
}

// catches reports whether any Catch around the current Next handles err.
func (s *Self[M]) catches(err error) bool {
	for f := s.frames; f != nil; f = f.up {
		if f.catch != nil && s.caught(f.catch.catch, err) {
			return true
		}
	}
	return false
}

// errLate is the result of a reaction whose timeout has expired.
var errLate = errors.New("actor: late")

// react calls f, the function of the reaction n, with the messages behind the place s.at. If waits is true, the actor now waits, and
// the task must return. Otherwise the actor continues with err. react also runs the following reactions of a Loop, because most actors
// are such a Loop.
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
				if s.at = (place[M]{}); s.goOn != nil { // the reaction's timer is running
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
			s.guard.Unlock() // another task may run the actor after this
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

// reacted ends a reaction's wait and stops its timer.
func (s *Self[M]) reacted() {
	s.at = place[M]{}
	if n, ok := s.goOn.(*timed[M]); ok {
		n.timer.stop()
		s.goOn = nil
	}
}

// A starter is an actor as the executor of its Awaits. It is also a Spawner, so that a timeout in an Op uses the scheduler's timers.
type starter[M any] Self[M]

// Execute starts a task that calls f and continues the actor. f stores the actor's next step.
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

// refuse ends an actor whose scheduler has refused a task. It still calls the function of the Await, which may have to release the
// result, such as a lock.
func (s *Self[M]) refuse(f func(), err error) {
	defer s.end(err)
	f()
	if k, ok := s.goOn.(proceed); ok {
		_ = k()
	}
}
