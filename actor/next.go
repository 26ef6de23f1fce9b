package actor

// A Next says how an actor goes on. It is an error only as fs.SkipDir is one: bodies and reactions return an error: nil, if
// they are done; a Next; or any other error, if they have failed. When a body is done, the AndThen or Loop around it goes on.
// Without one, the actor ends.
//
// A Next has no effect until it is returned, and may be returned any number of times. errcheck finds a Next that is not returned.
type Next interface {
	error
	next()
}

// Skip is returned by a function that is called with a message and does not take it. The message stays where it is.
var Skip Next = skip{}

type skip struct{}

func (skip) next()         {}
func (skip) Error() string { return "actor: Skip" }

// A reaction waits for a message without a task. A func is a pointer, so a Next of it costs no allocation.
type reaction[M any] func(M) error

func (reaction[M]) next()         {}
func (reaction[M]) Error() string { return "actor: React" }

type andThen struct {
	first error
	then  func() error
}

func (*andThen) next()         {}
func (*andThen) Error() string { return "actor: AndThen" }

// AndThen goes on with first, which may be nil, and when that is done, with then.
func AndThen(first error, then func() error) Next {
	if then == nil {
		panic("actor: AndThen with a nil function")
	}
	return &andThen{first: first, then: then}
}

type loop struct {
	cond func() bool // nil means always
	body func() error
}

func (*loop) next()         {}
func (*loop) Error() string { return "actor: Loop" }

// Loop goes on with body, and whenever that is done, with body again. It ends when body fails, or when the actor is stopped or
// killed. So nothing is kept of the Nexts around a Loop but a Catch: a body may return the Loop of another state, and so on for ever.
func Loop(body func() error) Next {
	if body == nil {
		panic("actor: Loop with a nil function")
	}
	return &loop{body: body}
}

// LoopWhile is Loop as long as cond, which is called before each turn, returns true.
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

// Catch goes on with first. If first fails, or anything that it leads to, the actor goes on with h of the error. A panic is a
// *suspend.PanicError. After one, the actor goes on in a new task. A Stop and a Kill are not caught, nor is anything after a Kill: a panic of
// an actor that is being killed goes on as in any task. A runtime.Goexit ends the actor. Requests that were received and not answered
// in first fail with ErrNoReply, functions that were left with OnEnd in first are called, and SendAfters, Watches and Links of first are
// taken back.
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

// On returns a function that calls f with the messages of type T and skips all others.
func On[T, M any](f func(T) error) func(M) error {
	return func(m M) error {
		if v, ok := any(m).(T); ok {
			return f(v)
		}
		return Skip
	}
}
