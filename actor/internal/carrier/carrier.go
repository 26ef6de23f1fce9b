// Package carrier gives access to the request in an actor's message, for code that carries messages elsewhere, such as
// to another process, a file or a queue.
package carrier

// A Carrier is a request with a reply of any type.
type Carrier interface {
	// ReplyFrom passes *to to the request's method Reply. The argument must be a pointer that NewReply returned.
	ReplyFrom(to any) bool

	// Refuse calls the request's method Refuse.
	Refuse(err error) bool

	// Asked reports whether the request was asked (see actor.Ask). Waited reports whether it was asked and has been neither
	// answered nor cancelled.
	Asked() bool
	Waited() bool

	// Asker returns the goroutine that waits in an Ask to a line (see SetLine), or 0 if none waits.
	Asker() int64

	// Home reports whether the actor a, an actor.Actor, is the home of the request, or the request has no home yet.
	Home(a any) bool

	// NewReply returns a pointer to a new zero value of the reply's type, into which a reply can be decoded.
	NewReply() any

	// ReplyTo starts the request on behalf of another process. After the message is sent, f is called once, with the
	// reply or with the error that an Ask would have returned. The function must not suspend. ReplyTo panics if the
	// request was asked before.
	ReplyTo(f func(v any, err error))
}

var (
	of        func(m any) (Carrier, bool)
	setLine   func(a any, watch func(tell func(err error)) (stop func())) (drop func())
	goroutine func(a any) int64
)

// Of returns the Carrier of the request m, and reports whether m is a request.
func Of(m any) (Carrier, bool) { return of(m) }

// SetLine makes the actor a, an actor.Actor, a line: it passes its messages on to an actor in another process. An actor that
// watches the line then also watches that other actor, through the function watch. SetLine must be called before other actors
// know a. The function drop must be called when a has ended.
func SetLine(a any, watch func(tell func(err error)) (stop func())) (drop func()) {
	return setLine(a, watch)
}

// Goroutine returns the goroutine on which the actor a, an actor.Actor, runs now, or 0 if it does not run or gets no requests.
func Goroutine(a any) int64 { return goroutine(a) }

// Provide sets the implementation of the other functions. Package actor calls Provide, because actor defines the types of
// requests.
func Provide(ofMessage func(m any) (Carrier, bool), line func(a any, watch func(tell func(err error)) (stop func())) (drop func()), at func(a any) int64) {
	of, setLine, goroutine = ofMessage, line, at
}
