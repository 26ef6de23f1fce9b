package natsactor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
)

// Options configure Serve. The zero value is the default.
type Options struct {
	Queue string // NATS queue group; if it is empty, every server receives every message

	// Cap is the maximum number of messages that the Server queues while the actor's mailbox is full. Further messages are lost, but an
	// Ask fails with actor.ErrFull. Zero means 65,536. The queue never holds more than 64 MiB.
	Cap int

	// OnLost is called with the number of messages and replies that were lost since the last call, and the reason: the queue was full,
	// a message could not be decoded, or a reply could not be published. An Ask that received the error does not count. OnLost must not
	// block, because later messages wait until it returns.
	OnLost func(n int, err error)

	// Beat is the time between two signs of life. Zero means one second.
	Beat time.Duration
}

const maxWaiting = 64 << 20 // bytes

// A Server serves one subject.
type Server struct {
	nc      *nats.Conn
	id      string
	subject string
	actor   actor.Actor
	serve   func(ctx context.Context, msg *nats.Msg)
	sub     *nats.Subscription
	life    *nats.Subscription
	held    *nats.Subscription
	hold    *nats.Subscription // has a message that nobody receives, so that a Drain of the connection waits for the last reply
	drained chan struct{}      // closed when the NATS client has passed all messages of sub to receive
	closing chan struct{}      // closed by the first Shutdown
	once    sync.Once
	ctx     context.Context // ends when the messages that wait for room are given up
	giveUp  context.CancelFunc
	done    chan struct{}
	opts    Options
	lost    atomic.Int64

	mu         sync.Mutex
	dropped    int   // how many of the messages that the NATS client has dropped were reported
	told       int64 // how many of the losses came before the end began, or were in the error of a Close
	waiting    []*nats.Msg
	bytes      int
	delivering sync.WaitGroup
	busy       bool                // a goroutine is running s.deliver
	requests   map[string]*request // unanswered requests, keyed by askHeader
	asking     *asker              // the Ask in which the actor waits, or nil
	closed     bool
}

// A request is what a server knows of an unanswered request.
type request struct {
	reply  string
	q      carrier.Carrier // nil until the request is decoded
	chains []string        // see cycle.go
}

// Serve sends the messages on a subject to an actor until Close is called or the actor has ended. A request is answered when the actor
// replies. If the reply cannot be encoded, or is too large for NATS, the Ask fails with ErrNoReply. While the mailbox is full, messages
// are queued, see Options.Cap.
func Serve[M any](nc *nats.Conn, subject string, to actor.Ref[M], codec Codec[M], o Options) (*Server, error) {
	if o.Beat <= 0 {
		o.Beat = time.Second
	}
	if o.Cap <= 0 {
		o.Cap = 65_536
	}
	s := &Server{
		nc: nc, id: nuid.Next(), subject: subject, actor: to, opts: o, requests: map[string]*request{},
		drained: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.ctx, s.giveUp = context.WithCancel(context.Background())
	s.serve = func(ctx context.Context, msg *nats.Msg) { serve(ctx, s, msg, to, codec) }
	status := nc.StatusChanged(nats.DRAINING_SUBS, nats.CLOSED)
	if err := s.subscribe(); err != nil {
		s.giveUp()
		nc.RemoveStatusListener(status)
		for _, sub := range []*nats.Subscription{s.held, s.life, s.hold, s.sub} {
			if sub != nil {
				_ = sub.Unsubscribe()
			}
		}
		return nil, fmt.Errorf("natsactor: %w", err)
	}
	serving.Lock()
	if serving.all == nil {
		serving.all = map[*Server]struct{}{}
	}
	serving.all[s] = struct{}{}
	serving.Unlock()
	go func() {
		s.live(to, status)
		nc.RemoveStatusListener(status)
		s.giveUp()
		close(s.done)
		s.liveOn()
	}()
	return s, nil
}

// subscribe makes the subscriptions. When it returns nil, the subject is served.
func (s *Server) subscribe() (err error) {
	if s.held, err = s.nc.Subscribe(heldSubject(s.subject), s.tellHeld); err != nil {
		return err
	}
	if s.life, err = s.nc.Subscribe(askSubject(s.subject), func(msg *nats.Msg) { _ = msg.Respond([]byte(s.id)) }); err != nil {
		return err
	}
	hold := holdSubject(s.subject, s.id)
	if s.hold, err = s.nc.SubscribeSync(hold); err != nil {
		return err
	}
	if err = s.nc.Publish(hold, nil); err != nil {
		return err
	}
	if s.sub, err = s.nc.QueueSubscribe(s.subject, s.opts.Queue, s.receive); err != nil {
		return err
	}
	s.sub.SetClosedHandler(func(string) { close(s.drained) })
	return s.nc.Flush()
}

// replyTo returns the subject for the reply to msg, or the empty string if nobody waits for a reply.
func replyTo(msg *nats.Msg) string {
	if strings.HasSuffix(msg.Reply, "."+lostToken) {
		return ""
	}
	return msg.Reply
}

// receive queues a message and never blocks, so that a request is recorded before its lease expires, even while the mailbox is full.
func (s *Server) receive(msg *nats.Msg) {
	s.mu.Lock()
	key, chains := msg.Header.Get(askHeader), msg.Header[chainHeader]
	err := s.cycleLocked(chains)
	switch {
	case s.closed:
		err = ErrUnreachable
	case len(s.waiting) >= s.opts.Cap, s.bytes > 0 && s.bytes+len(msg.Data) > maxWaiting:
		err = actor.ErrFull
	}
	if err != nil {
		s.mu.Unlock()
		s.refuse(msg, err)
		return
	}
	if key != "" {
		s.requests[key] = &request{reply: msg.Reply, chains: chains}
	}
	s.waiting = append(s.waiting, msg)
	s.bytes += len(msg.Data)
	if !s.busy {
		s.busy = true
		s.delivering.Go(s.deliver)
	}
	s.mu.Unlock()
}

// deliver sends the queued messages to the actor, one after another.
func (s *Server) deliver() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.busy, s.waiting = false, nil
			s.mu.Unlock()
			return
		}
		msg := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		s.bytes -= len(msg.Data)
		s.mu.Unlock()
		s.serve(s.ctx, msg)
	}
}

// serve decodes one message and sends it to the actor.
func serve[M any](ctx context.Context, s *Server, msg *nats.Msg, to actor.Ref[M], codec Codec[M]) {
	var m M
	err := noPanic(func() (err error) {
		m, err = codec.Decode(msg.Data)
		return err
	})
	if err != nil {
		s.refuse(msg, err)
		return
	}
	q, asks := carrier.Of(m)
	if asks = asks && replyTo(msg) != ""; asks {
		q.ReplyTo(func(v any, err error) {
			if err != nil {
				s.answer(msg, errorMsg(msg.Reply, err))
				return
			}
			data, err := codec.EncodeReply(v)
			if err != nil {
				s.refuse(msg, err)
				return
			}
			s.answer(msg, &nats.Msg{Subject: msg.Reply, Data: data})
		})
		s.mu.Lock()
		if r := s.requests[msg.Header.Get(askHeader)]; r != nil {
			r.q = q
		}
		s.mu.Unlock()
	}
	err = to.SendWait(ctx, m)
	if err != nil && ctx.Err() != nil { // the service was closed
		if err = to.Send(m); errors.Is(err, actor.ErrFull) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	switch {
	case err != nil:
		s.refuse(msg, err)
	case !asks:
		s.removeRequest(msg) // the actor cannot reply to this message
	}
}

// noPanic calls the decode method of a codec. A panic is an error, because any process may have sent the bytes.
func noPanic(decode func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("natsactor: the codec has panicked: %v", v)
		}
	}()
	return decode()
}

// refuse answers msg with an error, so that the Ask ends. If nobody waits for a reply, the message is lost.
func (s *Server) refuse(msg *nats.Msg, err error) {
	if replyTo(msg) == "" {
		s.lose(1, err)
		return
	}
	s.answer(msg, errorMsg(msg.Reply, noReply(err)))
}

// answer publishes the answer to a request. If a reply is too large for NATS, an error replaces it. If an error is too large, its text
// is dropped.
func (s *Server) answer(msg, answer *nats.Msg) {
	err := s.nc.PublishMsg(answer)
	if errors.Is(err, nats.ErrMaxPayload) {
		refusal := errorMsg(answer.Subject, noReply(fmt.Errorf("the reply: %w", err)))
		if len(answer.Header) > 0 {
			refusal = answer
			refusal.Data = nil
		}
		err = s.nc.PublishMsg(refusal)
	}
	s.removeRequest(msg) // the lease of the Ask expires if the answer is lost
	if err != nil {
		s.lose(1, err)
	}
}

// removeRequest removes an answered request. After the last request of a closed server, removeRequest also releases the server.
func (s *Server) removeRequest(msg *nats.Msg) {
	key := msg.Header.Get(askHeader)
	if key == "" {
		return
	}
	s.mu.Lock()
	delete(s.requests, key)
	last := s.closed && len(s.requests) == 0
	s.mu.Unlock()
	if last {
		go s.release() // the caller may be the task that has replied
	}
}

// release ends what a closed server needs for its last answers. It may block its goroutine.
func (s *Server) release() {
	_ = s.held.Unsubscribe()
	serving.Lock()
	delete(serving.all, s)
	serving.Unlock()
	_, _ = s.hold.NextMsg(time.Second) // a Drain of the connection may go on
	_ = s.hold.Unsubscribe()
}

// tellHeld answers a client's question about the requests that this server holds. The first line of the question is the client's id,
// and each further line is the token of a request. A message with chains is a probe.
func (s *Server) tellHeld(msg *nats.Msg) {
	if len(msg.Header[chainHeader]) > 0 {
		s.probe(msg)
		return
	}
	asker, tokens, _ := strings.Cut(string(msg.Data), "\n")
	var held []string
	s.mu.Lock()
	for token := range strings.SplitSeq(tokens, "\n") {
		if _, ok := s.requests[asker+"."+token]; ok {
			held = append(held, token)
		}
	}
	s.mu.Unlock()
	if len(held) > 0 {
		_ = msg.Respond([]byte(strings.Join(held, "\n")))
	}
}

// Lost returns the number of messages and replies that this Server has lost.
func (s *Server) Lost() int64 { return s.lost.Load() }

func (s *Server) lose(n int, err error) {
	s.lost.Add(int64(n))
	if s.opts.OnLost != nil {
		s.opts.OnLost(n, err)
	}
}

// loseDropped reports the messages that the NATS client has dropped since the last call, because this process was too slow.
func (s *Server) loseDropped() {
	s.mu.Lock()
	all, err := s.sub.Dropped()
	n := all - s.dropped
	if err != nil || n <= 0 {
		s.mu.Unlock()
		return
	}
	s.dropped = all
	s.mu.Unlock()
	s.lose(n, nats.ErrSlowConsumer)
}
