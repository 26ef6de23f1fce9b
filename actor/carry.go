package actor

// A Carrier is the request in a message, for code that carries messages elsewhere: to another process, a file, a queue.
type Carrier struct{ q pending }

// CarrierOf returns the carrier of m, and whether m is a request.
func CarrierOf(m any) (Carrier, bool) {
	q := asRequest(m)
	return Carrier{q}, q != nil
}

// ReplyFrom is Reply with the value that to, a pointer of NewReply, points to.
func (c Carrier) ReplyFrom(to any) bool { return c.q.replyFrom(to) }

// Refuse is Refuse of the request.
func (c Carrier) Refuse(err error) bool { return c.q.fail(err) }

// Waited reports whether the request was asked and is neither answered nor cancelled.
func (c Carrier) Waited() bool { return c.q.call().waited() }

// NewReply returns a pointer to a new zero value of the request's type, to be decoded into.
func (c Carrier) NewReply() any { return c.q.newReply() }

// ReplyTo asks the request on somebody's behalf: after the message is sent, f is called once with the reply, or with the error that an
// Ask would have returned. f must not suspend. It panics if the request was asked before.
func (c Carrier) ReplyTo(f func(v any, err error)) { c.q.replyTo(f) }

func (q *Request[R]) replyFrom(to any) bool {
	v, ok := to.(*R)
	if !ok {
		panic("actor: ReplyFrom a pointer that is not of NewReply")
	}
	return q.Reply(*v)
}

func (q *Request[R]) newReply() any { return new(R) }

func (q *Request[R]) replyTo(f func(v any, err error)) {
	if f == nil {
		panic("actor: ReplyTo with a nil function")
	}
	if q.asked.phase.Load() != fresh {
		panic("actor: ReplyTo for a request that was asked before")
	}
	q.to = func(v R, err error) { f(v, err) }
	q.asked.phase.Store(asked)
}
