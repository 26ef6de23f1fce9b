package actor

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// Spawn starts an actor on a scheduler, or on plain goroutines if on is nil, and returns its address. body runs in a task, with a context
// that ends when ctx ends, when the actor is killed, or when the actor has ended. The actor ends when body and every Next that follows are
// done, or at the first failure. When ctx is done, the actor is killed, unless its code has ended and it only waits for its children. If
// ctx is another actor's context, or derived from it, the new actor is that actor's child. If the scheduler refuses a task, now or later,
// the actor ends with that error.
//
// An actor's code never runs concurrently with itself. A Send synchronizes before the receipt of its message, and a reaction
// synchronizes before the next reaction.
func Spawn[M any](ctx context.Context, on suspend.Spawner, body func(ctx context.Context, self *Self[M]) error, o Options[M]) Ref[M] {
	if body == nil {
		panic("actor: Spawn with a nil body")
	}
	s := new(Self[M])
	l := &s.life
	l.on, l.goOn = cmp.Or(on, suspend.Goroutines), opening[M](body)
	s.init(ctx, o)
	l.enter = s.task()
	if err := l.hold(); err != nil {
		goroutine(func() { l.finish(err) })
		return s.Ref()
	}
	if l.follow(ctx) {
		l.joinFamily(ctx)
	}
	l.launch()
	return s.Ref()
}

// An opening is an actor's body in the form of a Next.
type opening[M any] func(ctx context.Context, self *Self[M]) error

func (opening[M]) next() {}

func (opening[M]) Error() string { return "actor: opening" }

// A proceed is a function that the actor calls next, in the form of a Next.
type proceed func() error

func (proceed) next() {}

func (proceed) Error() string { return "actor: proceed" }

// task returns the function that each of the actor's tasks runs. A task returns when the actor ends or waits without a task. In the
// second case another task may already run the actor, so the returning task must not touch it.
//
// Only one stack frame lies between the coroutine and the body, so that a small body that receives fits into two kilobytes of stack.
func (s *Self[M]) task() func() {
	return func() {
		returned := false
		defer s.life.afterTask(&returned)
		if s.life.asks {
			s.life.tasked()
		}
		if body, ok := s.life.goOn.(opening[M]); ok {
			s.life.goOn = body(&s.life.ctx, s)
		}
		s.life.trampoline()
		returned = true
	}
}

// taskAfter is like the function that task returns, for a task that begins with a round of an Await. round calls functions of an Op, which
// may panic. If the Await is not over then, another task may already run the next round, so this task must not touch the actor.
func (l *life) taskAfter(round func() (over bool)) {
	returned := false
	defer l.afterTask(&returned)
	if l.asks {
		l.tasked()
	}
	if round() {
		l.trampoline()
	} else if l.asks {
		l.task.CompareAndSwap(gid.Get(), 0)
	}
	returned = true
}

// afterTask is deferred wherever functions of the user are called. After a panic that a Catch handles, the actor continues in another
// task.
func (l *life) afterTask(returned *bool) {
	if *returned {
		return
	}
	v := recover()
	l.box.dropHeld() // a reaction's function has not returned
	if v == nil {    // runtime.Goexit
		l.finish(errGoexit)
		return
	}
	err := newPanicked(v)
	if l.catches(err) {
		l.stopTimed()
		l.goOn = err
		l.untasked()
		l.launch()
		return
	}
	l.finish(err)
	panic(v)
}

// trampoline runs one Next after another, until the actor waits without a task, or ends. Nested Nexts therefore need no stack.
func (l *life) trampoline() {
	err := l.goOn
	l.goOn = nil
	for woken := true; ; woken = false { // woken means that a reaction continues after its wait
		switch n := err.(type) {
		case nil:
			f := l.frames
			if f == nil {
				l.finish(nil)
				return
			}
			err = l.back(f)
		case *within:
			err = &timed{n, l.startTimer(n.d)}
		case *timed:
			l.goOn = n
			var waits bool
			if waits, err = l.box.react(n, woken); waits {
				return
			}
			if err == errLate {
				err = n.late()
			}
		case proceed:
			err = n()
		case *andThen:
			l.frames = &frame{up: l.frames, then: n.then}
			err = n.first
		case *loop:
			if err = nil; n.cond == nil || n.cond() {
				l.frames = &frame{up: l.around(n), loop: n}
				err = n.body()
			}
		case *catch:
			c := &caught{catch: n, onEnd: l.onEnd}
			l.pushUndo(&c.mark, nil)
			l.frames = &frame{up: l.frames, catch: c}
			err = n.first()
		case skip:
			panic("actor: Skip returned by a function that is not called with a message")
		case anyReaction:
			var waits bool
			if waits, err = l.box.react(err, woken); waits {
				return
			}
		case awaiter:
			l.untasked()
			n.start(l)
			return
		default:
			if l.frames == nil {
				l.finish(err)
				return
			}
			err = l.fail(err)
		}
	}
}

// around returns the frames that must be kept around n. A Loop without a condition is never done, so only the frames from the innermost
// Catch outwards are kept. Otherwise a state machine made of Loops would keep all its frames.
func (l *life) around(n *loop) *frame {
	f := l.frames
	for n.cond == nil && f != nil && f.catch == nil {
		f = f.up
	}
	return f
}

// back continues with f, the innermost frame, when the Next inside f is done.
func (l *life) back(f *frame) error {
	if n := f.loop; n != nil {
		l.box.spin()
		if n.cond == nil || n.cond() {
			return n.body()
		}
	}
	l.frames = f.up
	if f.then != nil {
		return f.then()
	}
	if f.catch != nil {
		l.removeUndo(&f.catch.mark)
	}
	return nil
}

// spin is called in each turn of a Loop, and before the function of each Catch. It yields from time to time, because there may be no
// wait between two turns.
func (in *Inbox[M]) spin() {
	if in.mail.spins++; in.mail.spins >= turnsUntilYield {
		in.mail.spins = 0
		suspend.Yield()
	}
}

// fail continues with the innermost Catch that handles err. It returns err if there is none.
func (l *life) fail(err error) error {
	for f := l.frames; f != nil; f = f.up {
		l.frames = f
		if c := f.catch; c != nil && l.caught(c.catch, err) {
			err = c.during(err)
			l.runOnEnd(c.onEnd) // a panic in one of these functions, or in the next calls, is another failure inside the Catch
			l.undoSince(&c.mark)
			l.failReceived(err)
			l.box.spin()
			l.frames = f.up
			return c.h(err)
		}
	}
	l.frames = nil
	return err
}

// during returns the failure that the Catch handles: err, or err together with the failure whose cleanup has panicked with err.
func (c *caught) during(err error) error {
	if c.failure != nil {
		err = &cleanupError{err, c.failure}
	}
	c.failure = err
	return err
}

// caught reports whether n handles err. A Stop and a Kill are never handled, and a panic is handled only if n.panics is set.
func (l *life) caught(n *catch, err error) bool {
	if l.killed.Load() || errors.Is(err, ErrStopped) {
		return false
	}
	switch err.(type) {
	case *panicked, *cleanupError:
		return n.panics
	}
	return true
}

// catches reports whether any Catch around the current Next handles err.
func (l *life) catches(err error) bool {
	for f := l.frames; f != nil; f = f.up {
		if f.catch != nil && l.caught(f.catch.catch, err) {
			return true
		}
	}
	return false
}

// errLate is the result of a reaction whose timeout has expired.
var errLate = errors.New("actor: late")

// react calls the function of the reaction n with the messages behind the place in.at. If waits is true, the actor now waits, and the
// task must return. Otherwise the actor continues with err. react also runs the following reactions of a Loop, because most actors are
// such a Loop.
func (in *Inbox[M]) react(n error, woken bool) (waits bool, err error) {
	l := &in.life
	var t *timer
	next := n
	if n, ok := n.(*timed); ok {
		t, next = n.timer, n.react
	}
	f, ok := next.(reaction[M])
	if !ok {
		panic("actor: the function returned the Next of an actor with another message type")
	}
	for {
		if !woken {
			suspend.Preemptible()
			in.fresh()
		}
		woken = false
		if l.killed.Load() {
			in.reacted()
			return false, l.cancellation()
		}
		// Step 7 of a message, see mailbox.go.
		if in.mail.count > 0 {
			if took, err := in.scan(&in.at, f); took {
				if in.at = (place[M]{}); t != nil {
					l.stopTimed()
				}
				if err != nil || l.frames == nil || l.frames.loop == nil {
					return false, err
				}
				if loop := l.frames.loop; loop.cond == nil {
					next = loop.body()
				} else {
					next = l.back(l.frames)
				}
				if f, ok = next.(reaction[M]); !ok {
					return false, next
				}
				n, t = f, nil
				continue
			}
		}
		// Step 8.
		l.guard.Relock()
		news, err := in.newsLocked(t)
		if !news {
			// Step 9.
			l.goOn = n
			in.restLocked()
			l.state = reacting
			l.untasked()
			l.guard.Unlock() // another task may run the actor after this
			return true, nil
		}
		l.guard.Unlock()
		if err != nil {
			in.reacted()
			if err == ErrTimeout {
				err = errLate
			}
			return false, err
		}
		woken = true
	}
}

// reacted ends a reaction's wait and stops its timer.
func (in *Inbox[M]) reacted() {
	in.at = place[M]{}
	in.life.stopTimed()
}

// dropHeld removes the message whose reaction has panicked or called Goexit, if there is one.
func (in *Inbox[M]) dropHeld() {
	if in.at.inHand() {
		in.received(in.at)
	}
	in.at = place[M]{}
}

// stopTimed stops the timer of the reaction that waits, if it has a timer.
func (l *life) stopTimed() {
	if n, ok := l.goOn.(*timed); ok {
		n.timer.stop()
		l.goOn = nil
	}
}

// A starter is an actor as the executor of one Await. It is also a Spawner, so that a timeout in an Op uses the scheduler's timers.
//
// suspend.Then calls Execute once for each round. In all rounds but the last, the operation only looks again, as a transaction does after
// a change. The last round calls the continuation, which stores the actor's next step.
type starter struct {
	*life
	rounds int32        // the number of rounds that have begun; each round begins after the one before it has submitted it
	last   atomic.Int32 // the number of the last round
}

// Execute starts a task that performs a round and, after the last one, continues the actor.
func (s *starter) Execute(f func()) error {
	round := func() (over bool) {
		s.rounds++
		n := s.rounds
		f()
		return s.last.Load() == n
	}
	err := s.on.Go(func() { s.taskAfter(round) })
	if err != nil {
		goroutine(func() { s.refuse(round, err) })
	}
	return nil
}

func (s *starter) Go(f func()) error { return s.on.Go(f) }

func (s *starter) Unwrap() suspend.Spawner { return s.on }

// refuse ends an actor whose scheduler has refused a task. It still calls the function of the Await, which may have to release the
// result, such as a lock. If the Await is not over, the Kill ends its wait, and the next task is refused, too.
func (l *life) refuse(round func() (over bool), err error) {
	over := true // also after a panic
	defer func() {
		if over {
			l.finish(err)
		} else {
			l.kill(err)
		}
	}()
	if over = round(); !over { // another call may already run the next round
		return
	}
	if k, ok := l.goOn.(proceed); ok {
		_ = k()
	}
}
