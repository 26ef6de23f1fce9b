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
	"github.com/braidgo/braid/internal/carrier"
	"github.com/braidgo/braid/suspend"
)

// ErrInDoubt is the error of messages that were published shortly before the connection to the server broke. Each of them has arrived, or
// will, or is lost.
var ErrInDoubt = errors.New("natsactor: the connection broke")

// DialOptions are the choices of Dial. The zero value is the default.
type DialOptions[M any] struct {
	// Actor has the options of the actor that publishes. Its Dead is called also with a message that could not be published.
	Actor actor.Options[M]

	// Lease is the time after which an Ask fails with ErrUnreachable if no server says that it has the request. That may be false: the
	// server may go on where it cannot be reached. Questions to the servers use a subject below _braid.life, so both sides must have
	// permission for it. Zero: five seconds. Below zero, an Ask waits for its context.
	Lease time.Duration

	// OnLost is called with a number of messages that are lost, or may be lost, and the reason: the error of the codec or of NATS,
	// ErrUnreachable if nobody served the subject when the message came to the server, or ErrInDoubt. It must not block. An Ask is not
	// counted, since it returns the error itself.
	OnLost func(n int, err error)
}

// Dial returns a Ref for the actor that is served at subject. It is the Ref of an actor here, on a scheduler, which reacts by publishing.
// When ctx is done, the actor is killed. Stop ends it. When the connection is closed, it fails with nats.ErrConnectionClosed, and with it
// all that was asked through it. No other error ends it: a message that cannot be encoded, or that NATS refuses, is a dead letter, and if
// it is an Ask, the Ask fails with actor.ErrNoReply and the reason.
func Dial[M any](ctx context.Context, on suspend.Spawner, nc *nats.Conn, subject string, codec Codec[M], opts ...DialOptions[M]) (actor.Ref[M], error) {
	var o DialOptions[M]
	if len(opts) > 0 {
		o = opts[0]
	}
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
	ref := spawn(ctx, on, d, codec, o)
	go func() {
		d.tend(ref, nc.IsClosed(), status)
		nc.RemoveStatusListener(status)
		_ = sub.Unsubscribe()
	}()
	return ref, nil
}

// spawn starts the actor that publishes.
func spawn[M any](ctx context.Context, on suspend.Spawner, d *dialled, codec Codec[M], o DialOptions[M]) actor.Ref[M] {
	publish := func(m M) error {
		q, asks := carrier.Of(m)
		asks = asks && q.Waited()
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
		return actor.Loop(func() error { return self.React(publish) })
	}, o.Actor)
}

// A client is a *nats.Conn.
type client interface {
	PublishMsg(m *nats.Msg) error
	FlushTimeout(d time.Duration) error
	IsConnected() bool
}

// A dialled keeps the requests that were published and are not answered, and counts messages of which it is not known that they
// have reached the server.
//
// A flush says that the server has all that was published before it. Requests need none: each third of a lease a question to the servers finds
// the requests that they hold, and a request that nobody has held for a lease fails. Otherwise a lost reply would leave an Ask without end.
type dialled struct {
	nc      client
	subject string
	id      string // names this client in questions
	inbox   string
	lease   time.Duration
	onLost  func(n int, err error)
	wake    chan struct{} // there is something to tend
	flushed chan uint64   // a number of messages; 0 if the flush has failed

	away bool // tend's own: the connection is broken, and its break was reported

	mu      sync.Mutex
	asked   map[string]*asking // keyed by the last token of the reply's subject
	last    uint64
	tending bool
	sending bool   // a message is being given to the client; not a request
	broke   bool   // the connection has broken while a message was sent
	closed  bool   // the connection will bring nothing more
	given   uint64 // messages that the client has taken
	flushes uint64 // messages that the server had at the last flush
	settled uint64 // messages that the server had at the last flush but one, so that it has passed them on; or that were reported
}

type asking struct {
	q     carrier.Carrier
	held  time.Time // the last sign that a server holds it, at first the time of the Ask
	asked time.Time // the time of the last question for it
}

// send publishes a message that is no request.
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

// ask publishes a request.
func (d *dialled) ask(data []byte, q carrier.Carrier) error {
	now := time.Now()
	d.mu.Lock()
	d.last++
	token := strconv.FormatUint(d.last, 36)
	d.asked[token] = &asking{q, now, now}
	d.tendLocked()
	d.mu.Unlock()
	err := d.nc.PublishMsg(&nats.Msg{Subject: d.subject, Reply: d.inbox + token, Header: nats.Header{askHeader: {d.id + "." + token}}, Data: data})
	if err != nil {
		d.take(token)
	}
	return err
}

func (d *dialled) tendLocked() {
	if !d.tending {
		d.tending = true
		select {
		case d.wake <- struct{}{}:
		default: // tend is about to be woken
		}
	}
}

// take takes a request out that was asked.
func (d *dialled) take(token string) (q carrier.Carrier, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.asked[token]
	if a == nil {
		return q, false
	}
	delete(d.asked, token)
	return a.q, true
}

// The last tokens of subjects for messages to Dial that are no replies. No number begins so. A message with lostToken is no request:
// NATS answers it if nobody has subscribed.
const (
	heldToken = "_held"
	lostToken = "_lost"
)

// receive takes a message to the inbox.
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
	q, ok := d.take(token)
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
	if err := decode(msg.Data, to); err != nil {
		q.Refuse(noReply(err))
		return
	}
	q.ReplyFrom(to)
}

// hear takes the answer of a server that holds requests, so that their leases begin anew.
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

// tend looks after requests and messages until a has ended and nothing is left.
func (d *dialled) tend(a actor.Actor, closed bool, status <-chan nats.Status) {
	tick := 100 * time.Millisecond
	if d.lease > 0 {
		tick = min(tick, max(d.lease/4, time.Millisecond))
	}
	timer := time.NewTimer(tick)
	defer timer.Stop()
	if closed { // maybe before there was a listener
		d.broken(a, nats.CLOSED)
	}
	flushing, ended := false, a.Done()
	for ended != nil || d.busy() {
		select {
		case <-ended:
			ended = nil // the last messages may still be in doubt
		case s := <-status:
			d.broken(a, s)
		case n := <-d.flushed:
			flushing = false
			d.believe(n, a, status)
		case <-d.wake:
			timer.Reset(tick)
		case now := <-timer.C:
			d.breaks(a, status)
			n, more := d.look(now)
			if n > 0 && !flushing {
				flushing = true
				go d.flush(n)
			}
			if more {
				timer.Reset(tick)
			}
		}
	}
}

// broken takes a status of the connection, and reports a break.
func (d *dialled) broken(a actor.Actor, s nats.Status) {
	if d.away = d.away && s == nats.CLOSED || s == nats.RECONNECTING || s == nats.DISCONNECTED; d.away {
		d.doubt() // a Close that finds a connection leaves none: it flushes
	}
	if s == nats.CLOSED {
		a.Kill(nats.ErrConnectionClosed) // every pending Ask ends, too
		d.mu.Lock()
		d.closed = true
		d.mu.Unlock()
	}
}

// breaks takes what status has.
func (d *dialled) breaks(a actor.Actor, status <-chan nats.Status) {
	for {
		select {
		case s := <-status:
			d.broken(a, s)
		default:
			return
		}
	}
}

// believe takes the result of a flush. A break is seen before: a flush on the next connection does not count the messages that the last
// connection lost.
func (d *dialled) believe(n uint64, a actor.Actor, status <-chan nats.Status) {
	d.breaks(a, status)
	d.settle(n)
}

// busy reports whether the timer of tend is set, or about to be.
func (d *dialled) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tending
}

// doubt reports the messages that may be lost as the connection has broken.
func (d *dialled) doubt() {
	d.mu.Lock()
	n := d.given - d.settled
	d.settled, d.flushes, d.broke = d.given, d.given, true
	d.mu.Unlock()
	if n > 0 {
		d.lose(int(n), ErrInDoubt)
	}
}

// flush waits until the server has the first n messages, and sends n; 0 if the flush fails.
func (d *dialled) flush(n uint64) {
	if d.nc.FlushTimeout(flushFor) != nil {
		n = 0
	}
	d.flushed <- n // there is room, since flushes do not overlap
}

const flushFor = 5 * time.Second

// settle notes that the server has the first n messages; 0 is no news.
func (d *dialled) settle(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > 0 {
		d.settled = max(d.settled, d.flushes)
		d.flushes = max(d.flushes, n)
	}
}

func (d *dialled) lose(n int, err error) {
	if d.onLost != nil {
		d.onLost(n, err)
	}
}

const maxTokens = 4096 // bounds a question

// look fails the requests whose lease is over, forgets requests without an Ask that waits, and sends questions for the rest. It returns
// the number of messages that are worth a flush, and whether it must be called again.
func (d *dialled) look(now time.Time) (flush uint64, more bool) {
	connected := d.nc.IsConnected() // otherwise questions would wait for a server, with the messages
	var over []carrier.Carrier
	var ask []string
	d.mu.Lock()
	for token, a := range d.asked {
		switch {
		case !a.q.Waited(): // the reply to a cancelled Ask may never come
			delete(d.asked, token)
		case d.lease < 0:
		case now.Sub(a.held) >= d.lease:
			over = append(over, a.q)
			delete(d.asked, token)
		case connected && now.Sub(a.asked) >= d.lease/3:
			a.asked = now
			ask = append(ask, token)
		}
	}
	if connected && d.given > d.settled {
		flush = d.given
	}
	more = len(d.asked) > 0 || d.sending || !d.closed && d.given > d.settled
	d.tending = more
	d.mu.Unlock()
	for _, q := range over {
		q.Refuse(noReply(ErrUnreachable))
	}
	for len(ask) > 0 {
		n := min(len(ask), maxTokens)
		question := d.id + "\n" + strings.Join(ask[:n], "\n")
		_ = d.nc.PublishMsg(&nats.Msg{Subject: heldSubject(d.subject), Reply: d.inbox + heldToken, Data: []byte(question)})
		ask = ask[n:]
	}
	return flush, more
}
