// Package carrier gives access to the request in an actor's message, for code that carries messages elsewhere, such as
// to another process, a file or a queue.
package carrier

// A Carrier is a request with a reply of any type.
type Carrier interface {
	// ReplyFrom passes *to to the request's method Reply. The argument must be a pointer that NewReply returned.
	ReplyFrom(to any) bool

	// Refuse calls the request's method Refuse.
	Refuse(err error) bool

	// Waited reports whether the request was asked (see actor.Ask) and has been neither answered nor cancelled.
	Waited() bool

	// NewReply returns a pointer to a new zero value of the reply's type, into which a reply can be decoded.
	NewReply() any

	// ReplyTo starts the request on behalf of another process. After the message is sent, f is called once, with the
	// reply or with the error that an Ask would have returned. The function must not suspend. ReplyTo panics if the
	// request was asked before.
	ReplyTo(f func(v any, err error))
}

var of func(m any) (Carrier, bool)

// Of returns the Carrier of the request m, and reports whether m is a request.
func Of(m any) (Carrier, bool) { return of(m) }

// Provide sets the implementation of the function Of. Package actor calls Provide, because actor defines the types of
// requests.
func Provide(f func(m any) (Carrier, bool)) { of = f }
