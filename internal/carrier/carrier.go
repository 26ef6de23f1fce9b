// Package carrier is the request in a message of an actor, for code that carries messages elsewhere: to another process, a file, a queue.
package carrier

// A Carrier is a request of any type.
type Carrier interface {
	// ReplyFrom is Reply with the value that to, a pointer of NewReply, points to.
	ReplyFrom(to any) bool

	// Refuse is Refuse of the request.
	Refuse(err error) bool

	// Waited reports whether the request was asked and is neither answered nor cancelled.
	Waited() bool

	// NewReply returns a pointer to a new zero value of the type of the reply, to be decoded into.
	NewReply() any

	// ReplyTo starts the request on behalf of another process: after the message is sent, f is called once with the reply, or with the error
	// that an Ask would have returned. f must not suspend. It panics if the request was asked before.
	ReplyTo(f func(v any, err error))
}

var of func(m any) (Carrier, bool)

// Of returns the carrier of m, and whether m is a request.
func Of(m any) (Carrier, bool) { return of(m) }

// Provide gives Of its function. Package actor calls it, because requests are types of actor.
func Provide(f func(m any) (Carrier, bool)) { of = f }
