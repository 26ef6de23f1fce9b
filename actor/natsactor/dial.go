package natsactor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/suspend"
)

// ErrInDoubt is reported for messages that were published shortly before the connection to the NATS server broke. Each of them may have
// arrived, may still arrive, or may be lost. It is also wrapped by the error of an Ask whose request was published and not answered,
// because the actor may have handled this request, or may handle it later. An Ask with ErrCycle has this error, too, if the server already
// held the request. Repeat such a request only if this does no harm.
var ErrInDoubt = errors.New("natsactor: in doubt whether the message arrived")

// errAway is the error of an Ask while the connection is broken.
var errAway = fmt.Errorf("%w: the connection is broken, and the request was not sent", ErrUnreachable)

// DialOptions configure Dial. The zero value is the default.
type DialOptions[M any] struct {
	// Actor has the options of the local actor that publishes. Its Dead is also called with each message that could not be published.
	// If its Name is empty, the name is the subject.
	Actor actor.Options[M]

	// Lease is the time after which an Ask fails with ErrUnreachable if no server confirms that it holds the request. The server may
	// still be running, but be unreachable. Time for which this process does not run, as after a SIGSTOP, does not count.
	// The servers are asked on a subject below _braid.life, for which both sides need permission. Zero means five seconds. If Lease is
	// negative, an Ask waits until its context ends. Lease is also that of a Watch by an actor: see the function Watch.
	Lease time.Duration

	// OnLost is called with the number of messages that are lost, or may be lost, and the reason. The reason is an error from the codec
	// or from NATS, ErrUnreachable if nobody served the subject when the message reached the NATS server, or ErrInDoubt. OnLost must
	// not block. An Ask is not counted, because the Ask returns the error.
	OnLost func(n int, err error)
}

// Dial returns a Ref for the actor that is served at subject. It is the address of a local actor on the given scheduler, or on plain
// goroutines if on is nil. The local actor publishes the messages that it receives. When ctx is done, the local actor is killed. A Stop
// ends it when it has published its mail. When the connection is closed, also at the end of a Drain, the local actor fails with
// nats.ErrConnectionClosed. If NATS refuses a message because of the Drain, the error is nats.ErrConnectionDraining. No other error ends
// it. At its end, each pending Ask fails. A message that cannot be encoded, or that NATS refuses, becomes a dead letter. An Ask with such
// a message fails with actor.ErrNoReply and the reason.
func Dial[M any](ctx context.Context, on suspend.Spawner, nc *nats.Conn, subject string, codec Codec[M], o DialOptions[M]) (actor.Ref[M], error) {
	if o.Lease == 0 {
		o.Lease = 5 * time.Second
	}
	d := &dialled{
		nc: nc, subject: subject, id: nuid.Next(), inbox: nc.NewRespInbox() + ".", lease: o.Lease, onLost: o.OnLost,
		asked: map[string]*asking{}, wake: make(chan struct{}, 1), flushed: make(chan uint64, 1),
	}
	status := nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	sub, err := nc.Subscribe(d.inbox+"*", func(msg *nats.Msg) { d.receive(msg, codec.DecodeReply) })
	if err != nil {
		nc.RemoveStatusListener(status)
		return actor.Ref[M]{}, fmt.Errorf("natsactor: %w", err)
	}
	if o.Actor.Name == "" {
		o.Actor.Name = subject
	}
	ref := spawn(ctx, on, d, codec, o)
	drop := carrier.SetLine(ref, func(tell func(err error)) (stop func()) { return watchLine(nc, subject, d.lease, ref.Done(), tell) })
	go func() {
		d.tend(ref, nc.IsClosed(), status)
		drop()
		nc.RemoveStatusListener(status)
		_ = sub.Unsubscribe()
	}()
	return ref, nil
}

// spawn starts the local actor that publishes.
func spawn[M any](ctx context.Context, on suspend.Spawner, d *dialled, codec Codec[M], o DialOptions[M]) actor.Ref[M] {
	publish := func(m M) error {
		q, asks := carrier.Of(m)
		if asks = asks && q.Asked(); asks && !q.Waited() {
			return nil // the Ask was cancelled
		}
		data, err := codec.Encode(m)
		switch {
		case err != nil:
		case asks:
			err = d.ask(data, q)
		default:
			err = d.send(data)
		}
		switch {
		case err == nil:
			return nil
		case asks:
			q.Refuse(noReply(err))
		default:
			if o.Actor.Dead != nil {
				o.Actor.Dead(m)
			}
			d.lose(1, err)
		}
		if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
			return err
		}
		return nil
	}
	return actor.Spawn(ctx, on, func(_ context.Context, self *actor.Self[M]) error {
		self.OnEnd(d.refuseAll)
		return actor.Loop(func() error { return self.React(publish) })
	}, o.Actor)
}

// A client has the methods of *nats.Conn that the type dialled uses.
type client interface {
	PublishMsg(m *nats.Msg) error
	FlushTimeout(d time.Duration) error
	IsConnected() bool
	IsClosed() bool
}

// A dialled records the requests that were published and are not answered, and counts the messages that may not have reached the NATS
// server.
//
// A successful flush means that the NATS server has received all messages published before it. Requests need no flush. Every third of a
// lease, the client publishes a question, and servers answer with the requests that they hold. A request fails if no server has
// confirmed it during a whole lease. Otherwise a lost reply would make an Ask wait for ever.
type dialled struct {
	nc      client
	subject string
	id      string // identifies this client in questions to the servers
	inbox   string
	lease   time.Duration
	onLost  func(n int, err error)
	wake    chan struct{} // wakes d.tend when there is work
	flushed chan uint64   // receives the number of flushed messages, or 0 if the flush has failed

	away bool // used only in d.tend; the connection is broken, and the break was reported

	mu      sync.Mutex
	asked   map[string]*asking // keyed by the last token of the reply's subject
	last    uint64
	tending bool
	sending bool   // a message that is not a request is being published
	broke   bool   // the connection broke while a message was being published
	closed  bool   // the connection is closed
	given   uint64 // number of messages that the client has accepted
	flushes uint64 // number of messages that the server had received by the last flush
	settled uint64 // number of messages that the server had received by the flush before the last, or that were reported
}

type asking struct {
	q     carrier.Carrier
	by    *asker    // nil if the Ask is not that of a served actor
	held  time.Time // the time when a server last confirmed the request; at first the time of the Ask
	asked time.Time // the time of the last question about the request
}

// send publishes a message that is not a request.
func (d *dialled) send(data []byte) error {
	d.mu.Lock()
	d.sending, d.broke = true, false
	d.tendLocked()
	d.mu.Unlock()
	err := d.nc.PublishMsg(&nats.Msg{Subject: d.subject, Reply: d.inbox + lostToken, Data: data})
	d.mu.Lock()
	d.sending = false
	doubtful := err == nil && d.broke
	if err == nil {
		d.given++
	}
	if doubtful {
		d.settled, d.flushes = d.given, d.given
	}
	d.mu.Unlock()
	if doubtful {
		d.lose(1, ErrInDoubt)
	}
	return err
}

// ask publishes a request. While the connection is broken, it does not, because the request might be handled long after its Ask has
// failed.
func (d *dialled) ask(data []byte, q carrier.Carrier) error {
	switch {
	case d.nc.IsClosed():
		return nats.ErrConnectionClosed
	case !d.nc.IsConnected():
		return errAway
	}
	now := time.Now()
	d.mu.Lock()
	d.last++
	token := strconv.FormatUint(d.last, 36)
	d.mu.Unlock()
	msg := &nats.Msg{Subject: d.subject, Reply: d.inbox + token, Header: nats.Header{askHeader: {d.id + "." + token}}, Data: data}
	by := askerOf(q, msg)
	d.mu.Lock()
	d.asked[token] = &asking{q, by, now, now}
	d.tendLocked()
	d.mu.Unlock()
	err := d.nc.PublishMsg(msg)
	if err != nil {
		d.removeAsked(token)
	}
	return err
}

func (d *dialled) tendLocked() {
	if !d.tending {
		d.tending = true
		select {
		case d.wake <- struct{}{}:
		default: // d.tend is about to be woken
		}
	}
}

// removeAsked removes and returns the pending request with this token.
func (d *dialled) removeAsked(token string) (q carrier.Carrier, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.asked[token]
	if a == nil {
		return q, false
	}
	delete(d.asked, token)
	a.by.done()
	return a.q, true
}

// refuseAll fails the pending requests when the local actor ends.
func (d *dialled) refuseAll() {
	err := ErrInDoubt
	if d.nc.IsClosed() {
		err = fmt.Errorf("%w: %w", ErrInDoubt, nats.ErrConnectionClosed)
	}
	d.mu.Lock()
	all := d.asked
	d.asked = map[string]*asking{}
	d.mu.Unlock()
	for _, a := range all {
		a.by.done()
		a.q.Refuse(noReply(err))
	}
}

// The last token of a request's reply subject is a number. A question about requests has heldToken instead. A message that is not a
// request has lostToken, so that NATS can report that there is no subscriber.
const (
	heldToken = "_held"
	lostToken = "_lost"
)

// receive handles a message to the inbox.
func (d *dialled) receive(msg *nats.Msg, decode func(data []byte, to any) error) {
	token := strings.TrimPrefix(msg.Subject, d.inbox)
	switch token {
	case heldToken:
		d.hear(msg)
		return
	case lostToken:
		if nobodyThere(msg) {
			d.lose(1, ErrUnreachable)
		}
		return
	}
	q, ok := d.removeAsked(token)
	if !ok {
		return
	}
	if nobodyThere(msg) {
		q.Refuse(noReply(ErrUnreachable))
		return
	}
	if err := remoteError(msg); err != nil {
		q.Refuse(err)
		return
	}
	to := q.NewReply()
	if err := noPanic(func() error { return decode(msg.Data, to) }); err != nil {
		q.Refuse(noReply(err))
		return
	}
	q.ReplyFrom(to)
}

// hear handles a server's answer to a question, and restarts the leases of the requests that the server holds.
func (d *dialled) hear(msg *nats.Msg) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for token := range strings.SplitSeq(string(msg.Data), "\n") {
		if a := d.asked[token]; a != nil {
			a.held = now
		}
	}
}
