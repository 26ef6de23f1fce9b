// Package jetstream distributes a stage over several machines. The messages wait in a bounded work queue of NATS JetStream, which
// several processes serve.
//
// A message is acknowledged when its whole task is done. If a process dies before that, another process gets the message. Each
// message is therefore processed at least once, and handlers must tolerate repeated messages.
//
// # Tries
//
// A try is a delivery whose task failed, or that was never answered, because the process died or lost its connection. A message begins
// at most Options.Tries times, and is then dead. Deliveries that were answered without a failure do not count: a message that waited
// for room in an overloaded stage and was given back at the end of Serve, and a task that failed with an error from Snooze.
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

// Options configures Open. The zero value means a bound of 10,000 messages.
type Options struct {
	Queue    int           // the maximum number of messages that wait for their first try or are in it; zero means 10,000
	InFlight int           // the maximum number of messages in progress in all replicas together; zero means 1000
	Tries    int           // the number of tries after which a message is dead; zero means 5
	AckWait  time.Duration // the time after which the message of a dead process is delivered again; zero means 30 s

	// Dead is the subject of the stream that stores dead messages; "" means that they are dropped. A stored message has the first
	// 4096 bytes of the reason in its header Reason. If the servers refuse it as too large, it is stored without its data, and its
	// header Size has the number of bytes.
	Dead string

	Storage  jetstream.StorageType
	Replicas int // the number of copies of the stream, in a cluster of servers

	// OnError is called with each error that Serve does not return: an error from a pull, for example if the servers are down or the
	// stream was deleted; the error of a failed try; the reason why a message is dead; and an error from sending an answer to the
	// servers. Several goroutines may call OnError at the same time, and OnError must not block.
	OnError func(err error)
}

// A Queue is a queue of values of type T on the servers.
type Queue[T any] struct {
	js       jetstream.JetStream
	name     string
	subject  string
	o        Options
	consumer jetstream.Consumer
	later    jetstream.Consumer // the messages that wait for their next try
	counts
}

// Stats has the figures of all calls of Serve for one Queue in this process.
type Stats struct {
	Pulled   uint64 // messages received
	Done     uint64 // messages acknowledged
	Failed   uint64 // failed tries that were not the last
	Dead     uint64 // messages stored as dead, or dropped if Options.Dead is ""
	Returned uint64 // messages given back because the flow was closed or Serve ended
	Snoozed  uint64 // tasks that failed with an error from Snooze
	Waits    uint64 // times that a message was rejected or shed by the flow, and then waited
	Errors   uint64 // errors from pulls and answers
}

type counts struct{ pulled, done, failed, dead, returned, snoozed, waits, errors atomic.Uint64 }

// Stats returns the figures. Stats never suspends.
func (q *Queue[T]) Stats() Stats {
	c := &q.counts
	return Stats{c.pulled.Load(), c.done.Load(), c.failed.Load(), c.dead.Load(), c.returned.Load(), c.snoozed.Load(), c.waits.Load(), c.errors.Load()}
}

// report calls OnError with err, wrapped with the name of the queue and the failed operation.
func (q *Queue[T]) report(what string, err error) {
	if q.o.OnError != nil {
		q.o.OnError(fmt.Errorf("jetstream: queue %s: %s: %w", q.name, what, err))
	}
}

// meet counts and reports an error from a pull or an answer.
func (q *Queue[T]) meet(what string, err error) {
	q.errors.Add(1)
	q.report(what, err)
}

// Permanent wraps err to say that further tries would fail, too. If a task fails with the wrapped error, its message is dead at
// once. errors.Is and errors.As find err in the result. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// Snooze wraps err, which may be nil, to say that the task has not failed, but must wait: for a backend that is down, or for a time. The
// message is tried again after the given time, which does not count as a try, however often it happens. Meanwhile it uses up no place
// of Options.InFlight. errors.Is and errors.As find err in the result.
func Snooze(after time.Duration, err error) error {
	text := fmt.Sprintf("jetstream: try again after %v", after)
	if err != nil {
		text += ": " + err.Error()
	}
	return &snoozeError{max(after, 0), text, err}
}

type snoozeError struct {
	after time.Duration
	text  string
	error
}

func (e *snoozeError) Error() string { return e.text }
func (e *snoozeError) Unwrap() error { return e.error }

// Retryable reports whether a stage should try again after err, by its Options.Retry: not if err is of Permanent or Snooze, about which
// Serve decides.
func Retryable(err error) bool {
	return !errors.As(err, new(*permanentError)) && !errors.As(err, new(*snoozeError))
}

// Open creates the queue on the servers, or updates it. The name may contain letters, digits, - and _. Values are encoded as JSON.
func Open[T any](ctx context.Context, js jetstream.JetStream, name string, o Options) (*Queue[T], error) {
	if name == "" || strings.ContainsAny(name, " .*>\t\r\n/\\") {
		return nil, fmt.Errorf("jetstream: %q is not a valid name for a queue", name)
	}
	o.Queue, o.InFlight, o.Tries = or(o.Queue, 10_000), or(o.InFlight, 1000), or(o.Tries, 5)
	if o.AckWait == 0 {
		o.AckWait = 30 * time.Second
	}
	q := &Queue[T]{js: js, name: name, subject: "stage." + name, o: o}
	// The bound is that of one subject, so that a message finds room for its next try. Do not set MaxBytes in addition: the server would
	// acknowledge messages that it does not store.
	_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{q.subject, q.againSubject("*"), q.laterSubject("*")}, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: int64(o.Queue),
		Duplicates: time.Minute, Storage: o.Storage, Replicas: o.Replicas,
	})
	if err == nil && o.Dead != "" {
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: name + "-dead", Subjects: []string{o.Dead}, Storage: o.Storage, Replicas: o.Replicas, Duplicates: time.Minute,
		})
	}
	if err == nil {
		q.consumer, err = js.CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
			Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.AckWait, MaxAckPending: o.InFlight,
			FilterSubjects: []string{q.subject, q.againSubject("*")},
		})
	}
	if err == nil {
		q.later, err = js.CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
			Durable: name + "-later", AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.AckWait, MaxAckPending: -1, FilterSubject: q.laterSubject("*"),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("jetstream: queue %s: %w", name, err)
	}
	return q, nil
}

// Each message that waits for its next try has a subject of its own, so that the bound of a subject does not apply to it: delayed until
// its time has come, and again after that.
func (q *Queue[T]) againSubject(id string) string { return q.subject + ".again." + id }
func (q *Queue[T]) laterSubject(id string) string { return q.subject + ".later." + id }

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Submit stores v in the queue, and returns nil once v is stored. If the queue is full, Submit returns an error that wraps
// stage.ErrFull. Messages that wait for another try do not fill the queue. Messages with the same id within a minute are stored once; ""
// means that v has no id. Submit does not retry. After an error other than ErrFull, v may have been stored.
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

// Waiting returns the number of messages in the queue, including messages in progress and messages that wait for their next try.
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
