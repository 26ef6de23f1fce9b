// Package jetstream replicates a stage over machines: a work queue of NATS JetStream before it, with a bound, that several
// processes serve.
//
// A message is acknowledged when the whole task that it has become is done. If a process dies before that, another gets the
// message: each is done at least once. Handlers must put up with a message that comes again.
package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
)

// Options are the choices of Open. The zero value is a bound of 10,000 messages.
type Options struct {
	Queue    int           // messages stored, those in progress included; zero is 10,000
	InFlight int           // messages in progress in all replicas together: the sum of their widths; zero is 1000
	Tries    int           // deliveries, after which a message is dead; zero is 5
	AckWait  time.Duration // after which the message of a process that died is delivered again; zero is 30 s
	Dead     string        // the subject for dead messages, stored in a stream of its own; "": they are dropped
	Storage  jetstream.StorageType
	Replicas int // of the stream, in a cluster of servers
}

// A Queue is a queue of Ts on the servers.
type Queue[T any] struct {
	js       jetstream.JetStream
	name     string
	subject  string
	o        Options
	consumer jetstream.Consumer
}

// Open makes the queue, or finds it. A name is of letters, digits, - and _. Values are JSON.
func Open[T any](ctx context.Context, js jetstream.JetStream, name string, o Options) (*Queue[T], error) {
	if name == "" || strings.ContainsAny(name, " .*>\t\r\n/\\") {
		return nil, fmt.Errorf("jetstream: %q is no name for a queue", name)
	}
	o.Queue, o.InFlight, o.Tries = or(o.Queue, 10_000), or(o.InFlight, 1000), or(o.Tries, 5)
	if o.AckWait == 0 {
		o.AckWait = 30 * time.Second
	}
	q := &Queue[T]{js: js, name: name, subject: "stage." + name, o: o}
	// Never MaxBytes beside MaxMsgs with DiscardNew: the server then acknowledges messages that it does not store.
	_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{q.subject}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
		MaxMsgs: int64(o.Queue), Duplicates: time.Minute, Storage: o.Storage, Replicas: o.Replicas,
	})
	if err == nil && o.Dead != "" {
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: name + "-dead", Subjects: []string{o.Dead}, Storage: o.Storage, Replicas: o.Replicas, Duplicates: time.Minute,
		})
	}
	if err == nil {
		q.consumer, err = js.CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
			Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.AckWait, MaxAckPending: o.InFlight,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("jetstream: queue %s: %w", name, err)
	}
	return q, nil
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Submit stores v, and returns nil once it is stored. When the queue is full, it returns a stage.ErrFull. Messages with the
// same id, within a minute, are stored once; "" is no id. Submit does not retry: after an error other than ErrFull, v may
// be stored.
func (q *Queue[T]) Submit(ctx context.Context, v T, id string) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("jetstream: queue %s: %w", q.name, err)
	}
	m := &nats.Msg{Subject: q.subject, Data: data}
	var opts []jetstream.PublishOpt
	if id != "" {
		opts = append(opts, jetstream.WithMsgID(id))
	}
	_, err = q.js.PublishMsg(ctx, m, opts...)
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api) && api.ErrorCode == 10077 && strings.Contains(api.Description, "maximum messages"): // other failures have this code
		return fmt.Errorf("%s: %w", q.name, stage.ErrFull)
	}
	return fmt.Errorf("jetstream: queue %s: %w", q.name, err)
}

// Waiting returns the number of messages that are stored, those in progress included.
func (q *Queue[T]) Waiting(ctx context.Context) (int, error) {
	s, err := q.js.Stream(ctx, q.name)
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs), nil
}

// pullFor is how long a request for a message waits on the server. It is also how long Serve takes to end when idle.
const pullFor = time.Second

// Serve pulls messages, at most width at a time, and begins a task of f with each. When the task is done, and all that it
// has begun, the message is acknowledged. If it fails, the message is delivered again after a while, and after Tries
// deliveries it is dead; so is a message that is not a T. If the stages of f reject, Serve waits.
//
// When ctx is done, Serve pulls no more, finishes the tasks in progress, and returns the error of the cancellation. It
// returns early if f is closed, with stage.ErrClosed; messages in hand go back to the queue. While the servers are away, it
// tries again.
func Serve[T, Out any](ctx context.Context, q *Queue[T], f stage.Flow[T, Out], width int) error {
	if width < 1 {
		panic("jetstream: Serve without a width")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var pullers sync.WaitGroup
	for range width {
		pullers.Go(func() {
			for ctx.Err() == nil {
				if err := pull(ctx, q, f); errors.Is(err, stage.ErrClosed) {
					stop(err)
				}
			}
		})
	}
	pullers.Wait()
	return context.Cause(ctx)
}

// pull waits for one message, and sees it done.
func pull[T, Out any](ctx context.Context, q *Queue[T], f stage.Flow[T, Out]) error {
	batch, err := q.consumer.Fetch(1, jetstream.FetchMaxWait(pullFor))
	if err != nil { // the servers are away
		pause(ctx, pullFor/4)
		return nil
	}
	m, ok := <-batch.Messages()
	if !ok {
		if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
			pause(ctx, pullFor/4)
		}
		return nil
	}
	return do(context.WithoutCancel(ctx), q, f, m)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// do begins a task with a message, and answers the message when it is done.
func do[T, Out any](ctx context.Context, q *Queue[T], f stage.Flow[T, Out], m jetstream.Msg) error {
	beats, ended := make(chan struct{}), make(chan struct{})
	go func() { // the server is told that m is in progress
		defer close(ended)
		for {
			select {
			case <-beats:
				return
			case <-time.After(q.o.AckWait / 3):
				_ = m.InProgress()
			}
		}
	}()
	err := perform(ctx, f, m)
	close(beats)
	<-ended
	var malformed *malformedError
	switch {
	case err == nil:
		q.confirm(ctx, m)
	case errors.Is(err, stage.ErrClosed):
		_ = m.Nak()
		return err
	case errors.As(err, &malformed), delivered(m) >= q.o.Tries:
		q.bury(ctx, m, err)
	default:
		_ = m.NakWithDelay(min(100*time.Millisecond<<min(delivered(m), 10), 10*time.Second))
	}
	return nil
}

type malformedError struct{ error }

func perform[T, Out any](ctx context.Context, f stage.Flow[T, Out], m jetstream.Msg) error {
	var v T
	if err := json.Unmarshal(m.Data(), &v); err != nil {
		return &malformedError{err}
	}
	for {
		answer, err := f.Begin(ctx, v)
		switch {
		case err == nil:
			_, err = answer.Await(ctx)
			return err
		case !errors.Is(err, stage.ErrFull):
			return err
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// confirm acknowledges m, and tries again while the servers are away: a message whose acknowledgement is lost comes again.
func (q *Queue[T]) confirm(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(ctx, q.o.AckWait)
	defer cancel()
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := m.DoubleAck(try)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// bury stores a dead message, with the reason, and takes it out of the queue.
func (q *Queue[T]) bury(ctx context.Context, m jetstream.Msg, reason error) {
	if q.o.Dead != "" {
		dead := &nats.Msg{Subject: q.o.Dead, Data: m.Data(), Header: nats.Header{"Reason": {reason.Error()}}}
		var opts []jetstream.PublishOpt
		if meta, err := m.Metadata(); err == nil {
			opts = append(opts, jetstream.WithMsgID(fmt.Sprintf("%s-%d", q.name, meta.Sequence.Stream)))
		}
		if _, err := q.js.PublishMsg(ctx, dead, opts...); err != nil {
			_ = m.NakWithDelay(time.Second) // it must not be lost
			return
		}
	}
	_ = m.TermWithReason(reason.Error())
}

func delivered(m jetstream.Msg) int {
	meta, err := m.Metadata()
	if err != nil {
		return 1
	}
	return int(meta.NumDelivered)
}
