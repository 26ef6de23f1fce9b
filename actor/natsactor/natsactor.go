// Package natsactor gives actors addresses on NATS: a Ref of an actor in another process is a Ref like any other.
//
// [Serve] lets an actor receive the messages of a subject, and [Dial] returns a Ref that publishes to one. Messages are encoded by
// a [Codec]. An Ask is a request of NATS, and ErrUnreachable says at once that nobody serves the subject.
//
// # Promises
//
// Delivery is at most once. Messages that are sent through one Ref of Dial arrive in their order. A Send that returns nil was accepted
// by the local actor that publishes, and no more. Losses that NATS knows of, at a consumer that is too slow, are counted and told by
// Options.OnLost. For stronger guarantees, put JetStream in front of Serve and acknowledge in the reaction.
//
// Several processes that serve one subject with one Options.Queue share its messages. Security, accounts and clusters are those of NATS.
// There is no Link and no Spawn across processes.
package natsactor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
)

// ErrUnreachable is the error of an Ask, and of a Watch, of a subject that nobody serves or that cannot be reached.
var ErrUnreachable = errors.New("natsactor: unreachable")

// A RemoteError is an error that came from another process. Only its text has come.
type RemoteError struct{ Text string }

func (e *RemoteError) Error() string { return e.Text }

// A Codec turns messages and replies into bytes and back. Its methods may be called from several goroutines.
type Codec[M any] interface {
	Encode(m M) ([]byte, error)
	Decode(data []byte) (M, error)
	EncodeReply(v any) ([]byte, error)
	DecodeReply(data []byte, to any) error // to is a pointer to the type of the reply
}

// Options are the choices of Serve. The zero value is the default.
type Options struct {
	Queue string // the queue group; empty: every server of the subject gets every message

	// Cap is how many messages wait here for an actor whose mailbox is full, before NATS drops others. Zero: the limit of
	// NATS.
	Cap int

	// OnLost is called with the number of messages that were dropped, or that could not be decoded, since the last call. It must not
	// block.
	OnLost func(n int, err error)

	// Beat is the time between two signs of life for those that Watch. Zero: one second.
	Beat time.Duration
}

const errorHeader = "Braid-Error"

// A Server serves one subject.
type Server struct {
	nc   *nats.Conn
	sub  *nats.Subscription
	life *nats.Subscription
	end  context.CancelFunc
	done chan struct{}
	opts Options

	mu      sync.Mutex
	dropped int // of those of NATS, told already
	lost    atomic.Int64
}

// Serve sends the messages of a subject to an actor, until Close or until the actor has ended. A request is answered when the actor
// replies. While the mailbox is full, messages wait, see Options.Cap.
func Serve[M any](nc *nats.Conn, subject string, to actor.Ref[M], codec Codec[M], o Options) (*Server, error) {
	if o.Beat <= 0 {
		o.Beat = time.Second
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Server{nc: nc, end: end, done: make(chan struct{}), opts: o}
	receive := func(msg *nats.Msg) {
		if err := serve(ctx, msg, to, codec); err != nil {
			s.lose(1, err)
		}
	}
	var err error
	if s.sub, err = nc.QueueSubscribe(subject, o.Queue, receive); err != nil {
		end()
		return nil, fmt.Errorf("natsactor: %w", err)
	}
	if o.Cap > 0 {
		err = s.sub.SetPendingLimits(o.Cap, -1)
	}
	if err == nil {
		s.life, err = nc.Subscribe(lifeSubject(subject)+".ask", func(msg *nats.Msg) { _ = msg.Respond(nil) })
	}
	if err == nil {
		err = nc.Flush() // from here on, the subject is served
	}
	if err != nil {
		end()
		_ = s.sub.Unsubscribe()
		return nil, fmt.Errorf("natsactor: %w", err)
	}
	go s.live(ctx, subject, to)
	return s, nil
}

// serve passes one message on, and returns an error if it is lost. A request is not lost: its asker is told.
func serve[M any](ctx context.Context, msg *nats.Msg, to actor.Ref[M], codec Codec[M]) error {
	refuse := func(err error) error {
		if msg.Reply == "" {
			return err
		}
		answer := nats.NewMsg(msg.Reply)
		answer.Header.Set(errorHeader, err.Error())
		return msg.RespondMsg(answer)
	}
	m, err := codec.Decode(msg.Data)
	if err != nil {
		return refuse(err)
	}
	if q, ok := actor.CarrierOf(m); ok && msg.Reply != "" {
		q.ReplyTo(func(v any, err error) {
			var data []byte
			if err == nil {
				data, err = codec.EncodeReply(v)
			}
			if err != nil {
				_ = refuse(err)
				return
			}
			_ = msg.Respond(data)
		})
	}
	if err := to.SendWait(ctx, m); err != nil {
		return refuse(err)
	}
	return nil
}

// Lost returns how many messages were lost here.
func (s *Server) Lost() int64 { return s.lost.Load() }

func (s *Server) lose(n int, err error) {
	s.lost.Add(int64(n))
	if s.opts.OnLost != nil {
		s.opts.OnLost(n, err)
	}
}

// loseDropped tells of the messages that NATS has dropped since the last time.
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
func (s *Server) live(ctx context.Context, subject string, a actor.Actor) {
	defer close(s.done)
	slow := s.sub.StatusChanged(nats.SubscriptionSlowConsumer)
	beat := time.NewTicker(s.opts.Beat)
	defer beat.Stop()
	subject = lifeSubject(subject)
	for {
		select {
		case <-beat.C:
			_ = s.nc.Publish(subject, nil)
			s.loseDropped() // also those that came while it was slow already
		case <-slow:
			s.loseDropped()
		case <-a.Done():
			end := nats.NewMsg(subject)
			end.Header.Set(endHeader, "ended")
			if err := a.Wait(context.Background()); err != nil {
				end.Header.Set(errorHeader, err.Error())
			}
			_ = s.nc.PublishMsg(end) // for a Watch whose question comes when it is answered no more
			s.unsubscribe()
			_ = s.nc.PublishMsg(end) // for one whose question was answered, and that has missed the first
			_ = s.nc.Flush()
			return
		case <-ctx.Done():
			s.unsubscribe()
			return
		}
	}
}

func (s *Server) unsubscribe() {
	s.loseDropped()
	s.end()
	_ = s.sub.Unsubscribe()
	_ = s.life.Unsubscribe()
}

// Close ends the service. The actor goes on.
func (s *Server) Close() {
	s.end()
	<-s.done
}
