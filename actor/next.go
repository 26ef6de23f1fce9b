package actor

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Next says how an actor continues. It is an error only so that bodies and reactions can return it, as an fs.WalkDirFunc returns
// fs.SkipDir. A body or reaction returns nil if it is done, a Next if the actor is to continue with it, and any other error if it has
// failed. When a body is done, the AndThen or Loop around it continues. If there is none, the actor ends.
//
// A Next has no effect until it is returned, and may be returned any number of times. The linter errcheck finds a Next that is not
// returned.
type Next interface {
	error
	next()
}

// Skip is returned by a function that is passed to Handle or React, to leave its message in the mailbox. The message keeps its place.
var Skip Next = skip{}

type skip struct{}

func (skip) next()         {}
func (skip) Error() string { return "actor: Skip" }

// A reaction is the Next that React returns. It is a func type because a func is a pointer, so that its conversion to a Next does not
// allocate.
type reaction[M any] func(M) error

func (reaction[M]) next()         {}
func (reaction[M]) reacts()       {}
func (reaction[M]) Error() string { return "actor: React" }

// An anyReaction is a reaction to messages of any type.
type anyReaction interface {
	Next
	reacts()
}

type andThen struct {
	first error
	then  func() error
}

func (*andThen) next()         {}
func (*andThen) Error() string { return "actor: AndThen" }

// AndThen returns a Next that continues with the Next passed as first and, when this is done, calls then(). The argument first may be
// nil.
func AndThen(first error, then func() error) Next {
	if then == nil {
		panic("actor: AndThen with a nil function")
	}
	return &andThen{first: first, then: then}
}

type loop struct {
	cond func() bool // a nil cond is always true
	body func() error
}

func (*loop) next()         {}
func (*loop) Error() string { return "actor: Loop" }

// Loop returns a Next that calls body, and calls body again whenever it is done. The loop ends when body fails, or when the actor is
// stopped or killed. Of the Nexts around a Loop, only Catches are kept. The body of a Loop may therefore return another Loop, any
// number of times, without using more memory.
func Loop(body func() error) Next {
	if body == nil {
		panic("actor: Loop with a nil function")
	}
	return &loop{body: body}
}

// LoopWhile is like Loop, but it calls cond before each turn and is done when cond returns false.
func LoopWhile(cond func() bool, body func() error) Next {
	if cond == nil || body == nil {
		panic("actor: LoopWhile with a nil function")
	}
	return &loop{cond: cond, body: body}
}

type catch struct {
	first  func() error
	h      func(error) error
	panics bool
}

func (*catch) next()         {}
func (*catch) Error() string { return "actor: Catch" }

// Catch returns a Next that calls first(). If this call, or a Next that follows from it, fails with err, the actor continues with
// h(err). A panic is also a failure: err then wraps a *suspend.PanicError, and the actor continues in a new task.
//
// Catch does not handle a Stop or a Kill, nor any failure after a Kill. A panic in an actor that is being killed unwinds as in any
// task. A runtime.Goexit ends the actor. Before h is called, the functions that were registered with OnEnd inside the Catch are called,
// the SendAfters, Watches and Links made inside it are undone, and all requests that the actor has received and not answered fail with
// ErrNoReply.
func Catch(first func() error, h func(err error) error) Next {
	if first == nil || h == nil {
		panic("actor: Catch with a nil function")
	}
	return &catch{first: first, h: h, panics: true}
}

// OrElse returns a function that calls g with the messages that f skips.
func OrElse[M any](f, g func(M) error) func(M) error {
	return func(m M) error {
		err := f(m)
		if _, skipped := err.(skip); skipped {
			return g(m)
		}
		return err
	}
}

// Only returns a function that calls f with the messages of type T and skips all others.
func Only[T, M any](f func(T) error) func(M) error {
	return func(m M) error {
		if v, ok := any(m).(T); ok {
			return f(v)
		}
		return Skip
	}
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

type within struct {
	react Next
	d     time.Duration
	late  func() error
}

func (*within) next() {}

func (*within) Error() string { return "actor: ReactWithin" }

// A timed is a ReactWithin whose timer has been started.
type timed struct {
	*within
	timer *timer
}

// ReactWithin is React with a timeout: if f skips every message for the time d, the actor continues with late(). The timeout starts
// when the Next is returned, and a skipped message does not restart it. When the actor notices that this time is over, it calls f with
// the messages already in the mailbox, but with no later message. If d is not positive, the actor notices this at once.
func (s *Self[M]) ReactWithin(d time.Duration, f func(M) error, late func() error) Next {
	if f == nil || late == nil {
		panic("actor: ReactWithin with a nil function")
	}
	return &within{react: reaction[M](f), d: d, late: late}
}

// An awaiter is an await with a result of any type.
type awaiter interface {
	Next
	start(l *life)
}

type await[T any] struct {
	op suspend.Op[T]
	k  func(T, error) error
}

func (*await[T]) next() {}

func (*await[T]) Error() string { return "actor: Await" }

func (a *await[T]) start(l *life) {
	s := &starter{life: l}
	suspend.Then(&l.ctx, a.op, s, func(v T, err error) {
		l.goOn = proceed(func() error { return a.k(v, err) })
		s.last.Store(s.rounds)
	})
}

// Await returns a Next that waits for op and then calls k with the result. While the actor waits, it has neither a task nor a stack,
// and handles no messages. If the actor is killed first, k is called with the error of the cancellation. k runs in a task and may
// suspend.
func Await[T, M any](s *Self[M], op suspend.Op[T], k func(T, error) error) Next {
	if s == nil || k == nil {
		panic("actor: Await with a nil actor or a nil function")
	}
	return &await[T]{op: op, k: k}
}
