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
	"github.com/braidgo/braid/internal/carrier"
)

// Options are the choices of Serve. The zero value is the default.
type Options struct {
	Queue string // the queue group; empty: every server of the subject gets every message

	// Cap is how many messages wait here for an actor whose mailbox is full. Further messages are lost, but an Ask fails with
	// actor.ErrFull. Zero: 65,536. They are never more than 64 MiB.
	Cap int

	// OnLost is called with the number of messages and replies that were lost since the last call, and the reason: the queue was full, a
	// message could not be decoded, a reply could not be published. An Ask that got the error does not count. It must not block, or the messages behind wait.
	OnLost func(n int, err error)

	// Beat is the time between two signs of life for watchers. Zero: one second.
	Beat time.Duration
}

const maxWaiting = 64 << 20 // bytes

// A Server serves one subject.
type Server struct {
	nc    *nats.Conn
	id    string
	serve func(ctx context.Context, msg *nats.Msg)
	sub   *nats.Subscription
	life  *nats.Subscription
	held  *nats.Subscription
	ctx   context.Context
	end   context.CancelFunc
	done  chan struct{}
	opts  Options
	lost  atomic.Int64

	mu         sync.Mutex
	dropped    int // counts the messages dropped by NATS that were reported
	waiting    []*nats.Msg
	bytes      int
	delivering sync.WaitGroup
	busy       bool                // a goroutine delivers
	requests   map[string]struct{} // requests that are not answered, keyed by askHeader
	closed     bool
}

// Serve sends the messages of a subject to an actor, until Close or until the actor has ended. A request is answered when the actor
// replies. A reply that cannot be encoded, or is too large for NATS, is an ErrNoReply to its asker. While the mailbox is full, messages
// wait, see Options.Cap.
func Serve[M any](nc *nats.Conn, subject string, to actor.Ref[M], codec Codec[M], o Options) (*Server, error) {
	if o.Beat <= 0 {
		o.Beat = time.Second
	}
	if o.Cap <= 0 {
		o.Cap = 65_536
	}
	s := &Server{nc: nc, id: nuid.Next(), done: make(chan struct{}), opts: o, requests: map[string]struct{}{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.serve = func(ctx context.Context, msg *nats.Msg) { serve(ctx, s, msg, to, codec) }
	var err error
	subscribe := func(subject, queue string, f nats.MsgHandler) (sub *nats.Subscription) {
		if err == nil {
			sub, err = nc.QueueSubscribe(subject, queue, f)
		}
		return sub
	}
	s.held = subscribe(heldSubject(subject), "", s.tellHeld)
	s.life = subscribe(askSubject(subject), "", func(msg *nats.Msg) { _ = msg.Respond([]byte(s.id)) })
	s.sub = subscribe(subject, o.Queue, s.receive)
	if err == nil {
		err = nc.Flush() // the subject is served from here on
	}
	if err != nil {
		s.end()
		for _, sub := range []*nats.Subscription{s.held, s.life, s.sub} {
			if sub != nil {
				_ = sub.Unsubscribe()
			}
		}
		return nil, fmt.Errorf("natsactor: %w", err)
	}
	go s.live(subject, to)
	return s, nil
}

// replyTo returns the subject for the reply to a message; empty: nobody waits for one.
func replyTo(msg *nats.Msg) string {
	if strings.HasSuffix(msg.Reply, "."+lostToken) {
		return ""
	}
	return msg.Reply
}

// receive never blocks, so that a request is recorded when it arrives, even while the actor's mailbox is full. Otherwise its lease might run out.
func (s *Server) receive(msg *nats.Msg) {
	s.mu.Lock()
	var err error
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
	if key := msg.Header.Get(askHeader); key != "" {
		s.requests[key] = struct{}{}
	}
	s.waiting = append(s.waiting, msg)
	s.bytes += len(msg.Data)
	if !s.busy {
		s.busy = true
		s.delivering.Go(s.deliver)
	}
	s.mu.Unlock()
}

// deliver sends the messages that wait to the actor, one after the other.
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

// serve passes one message on.
func serve[M any](ctx context.Context, s *Server, msg *nats.Msg, to actor.Ref[M], codec Codec[M]) {
	m, err := codec.Decode(msg.Data)
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
	}
	err = to.SendWait(ctx, m)
	if err != nil && ctx.Err() != nil {
		err = ErrUnreachable // the service was closed
	}
	switch {
	case err != nil:
		s.refuse(msg, err)
	case !asks:
		s.release(msg) // it is no request to the actor
	}
}

// refuse answers that there will be no reply, so that the Ask ends. Without an asker, the message is lost.
func (s *Server) refuse(msg *nats.Msg, err error) {
	if replyTo(msg) == "" {
		s.lose(1, err)
		return
	}
	s.answer(msg, errorMsg(msg.Reply, noReply(err)))
}

// answer publishes the answer to a request. An answer that NATS does not carry becomes an error without a text, which it does.
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
	s.release(msg) // a lost answer ends the Ask by its lease
	if err != nil {
		s.lose(1, err)
	}
}

// release forgets a request. The last one takes the answers to questions for requests with it, if the server is closed.
func (s *Server) release(msg *nats.Msg) {
	key := msg.Header.Get(askHeader)
	if key == "" {
		return
	}
	s.mu.Lock()
	delete(s.requests, key)
	last := s.closed && len(s.requests) == 0
	s.mu.Unlock()
	if last {
		_ = s.held.Unsubscribe()
	}
}

// tellHeld answers the question which requests are held. The question has the client's id and tokens, each in a line.
func (s *Server) tellHeld(msg *nats.Msg) {
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

// Lost returns how many messages were lost here.
func (s *Server) Lost() int64 { return s.lost.Load() }

func (s *Server) lose(n int, err error) {
	s.lost.Add(int64(n))
	if s.opts.OnLost != nil {
		s.opts.OnLost(n, err)
	}
}

// loseDropped reports the messages that NATS has dropped since the last time, because this process had no time for them.
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

// live gives signs of life, and one of the end.
func (s *Server) live(subject string, a actor.Actor) {
	defer close(s.done)
	beat := time.NewTicker(s.opts.Beat)
	defer beat.Stop()
	subject = lifeSubject(subject)
	for {
		select {
		case <-beat.C:
			_ = s.nc.Publish(subject, []byte(s.id))
			s.loseDropped()
		case <-a.Done():
			end := &nats.Msg{Subject: subject, Header: nats.Header{}}
			if err := a.Wait(context.Background()); err != nil {
				end = errorMsg(subject, err)
			}
			end.Header.Set(endHeader, s.id)
			_ = s.nc.PublishMsg(end) // reaches a Watch whose question comes when it is answered no more
			s.unsubscribe()
			_ = s.nc.PublishMsg(end) // reaches a Watch that had an answer and missed the first
			_ = s.nc.Flush()
			return
		case <-s.ctx.Done():
			s.unsubscribe()
			return
		}
	}
}

// unsubscribe ends the service. Messages that wait are refused, and requests that the actor has are still answered.
func (s *Server) unsubscribe() {
	s.loseDropped()
	s.end()
	_ = s.sub.Unsubscribe()
	_ = s.life.Unsubscribe()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.delivering.Wait()
	s.mu.Lock()
	last := len(s.requests) == 0
	s.mu.Unlock()
	if last {
		_ = s.held.Unsubscribe()
	}
}

// Close ends the service. The actor goes on, and its replies are still sent.
func (s *Server) Close() {
	s.end()
	<-s.done
}
