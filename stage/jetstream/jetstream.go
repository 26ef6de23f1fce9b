// Package jetstream replicates a stage over machines: a work queue of NATS JetStream before it, with a bound, that several
// processes serve.
//
// A message is acknowledged when its whole task is done. If a process dies before that, another process gets the
// message: each is done at least once. Handlers must put up with a message that comes again.
package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
)

// Options are the choices of Open. The zero value is a bound of 10,000 messages.
type Options struct {
	Queue    int           // messages stored or in progress; zero is 10,000
	InFlight int           // messages in progress in all replicas together: the sum of their widths; zero is 1000
	Tries    int           // deliveries, after which a message that fails is dead; zero is 5
	AckWait  time.Duration // a message of a process that died is delivered again after it; zero is 30 s
	Dead     string        // the subject for dead messages, which have a second stream; "" means that they are dropped
	Storage  jetstream.StorageType
	Replicas int // copies of the stream, in a cluster of servers

	// OnError is called with each error that Serve meets and does not return: of a pull, as when the servers are away or the stream was
	// deleted; of a try that failed; of a message that is dead; of an answer that did not reach the servers. It is called by several
	// goroutines and must not block.
	OnError func(err error)
}

// A Queue is a queue of Ts on the servers.
type Queue[T any] struct {
	js       jetstream.JetStream
	name     string
	subject  string
	o        Options
	consumer jetstream.Consumer
	counts
}

// Stats are figures of the Serves of one Queue in this process.
type Stats struct {
	Pulled   uint64 // messages received
	Done     uint64 // acknowledged
	Failed   uint64 // tries that failed and were not the last
	Dead     uint64 // stored as dead, or dropped if Options.Dead is ""
	Returned uint64 // given back because the flow was closed or Serve ended
	Waits    uint64 // times that the stages of the flow rejected or shed a message, which then waited
	Errors   uint64 // failures of pulls and answers: calls of OnError for no try
}

type counts struct{ pulled, done, failed, dead, returned, waits, errors atomic.Uint64 }

// Stats returns the figures. It never suspends.
func (q *Queue[T]) Stats() Stats {
	c := &q.counts
	return Stats{c.pulled.Load(), c.done.Load(), c.failed.Load(), c.dead.Load(), c.returned.Load(), c.waits.Load(), c.errors.Load()}
}

// tell calls OnError with an error.
func (q *Queue[T]) tell(what string, err error) {
	if q.o.OnError != nil {
		q.o.OnError(fmt.Errorf("jetstream: queue %s: %s: %w", q.name, what, err))
	}
}

// meet counts and reports an error of a pull or of an answer.
func (q *Queue[T]) meet(what string, err error) {
	q.errors.Add(1)
	q.tell(what, err)
}

// Permanent returns err as an error that no further try can mend: a message whose task fails with it is dead at once. errors.Is and
// errors.As find err in it. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// Open makes the queue, or finds it. A name consists of letters, digits, - and _. Values are JSON.
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
	case errors.As(err, &api) && api.ErrorCode == 10077 && strings.Contains(api.Description, "maximum messages"): // other failures have this code, too
		return fmt.Errorf("%s: %w", q.name, stage.ErrFull)
	}
	return fmt.Errorf("jetstream: queue %s: %w", q.name, err)
}

// Waiting returns the number of messages that are stored, including messages in progress.
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
