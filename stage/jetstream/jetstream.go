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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
)

// Options are the choices of Open. The zero value is a bound of 10,000 messages.
type Options struct {
	Queue    int           // messages stored, those in progress included; zero is 10,000
	InFlight int           // messages in progress in all replicas together: the sum of their widths; zero is 1000
	Tries    int           // deliveries, after which a message that fails is dead; zero is 5
	AckWait  time.Duration // after which the message of a process that died is delivered again; zero is 30 s
	Dead     string        // the subject for dead messages, stored in a stream of its own; "": they are dropped
	Storage  jetstream.StorageType
	Replicas int // of the stream, in a cluster of servers

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
	Pulled   uint64 // messages that have come
	Done     uint64 // acknowledged
	Failed   uint64 // tries that failed and were not the last
	Dead     uint64 // stored as dead, or dropped if Options.Dead is ""
	Returned uint64 // given back, as the flow was closed or Serve ended
	Waits    uint64 // times that the stages of the flow rejected or shed a message, which then waited
	Errors   uint64 // of pulls and answers: calls of OnError that are not of a try
}

type counts struct{ pulled, done, failed, dead, returned, waits, errors atomic.Uint64 }

// Stats returns the figures. It never suspends.
func (q *Queue[T]) Stats() Stats {
	c := &q.counts
	return Stats{c.pulled.Load(), c.done.Load(), c.failed.Load(), c.dead.Load(), c.returned.Load(), c.waits.Load(), c.errors.Load()}
}

// tell gives an error to OnError.
func (q *Queue[T]) tell(what string, err error) {
	if q.o.OnError != nil {
		q.o.OnError(fmt.Errorf("jetstream: queue %s: %s: %w", q.name, what, err))
	}
}

// meet tells of an error that is not of a try.
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

// pullFor is how long a request for messages waits on the server. It is also how long Serve takes to end when idle.
const pullFor = time.Second

// A pull costs as much as some messages, so it waits a little until there are enough free workers.
const (
	enough = 8
	gather = 300 * time.Microsecond
)

// Serve pulls messages, at most width at a time, and begins a task of f with each. When the task is done, and all that it
// has begun, the message is acknowledged. If it fails, the message is delivered again after a while, and after Tries
// deliveries it is dead. A message that is not a T, and one that fails with an error of Permanent, is dead at once.
//
// An overload is not a failure: if a stage of f rejects or sheds a message, or a handler returns an ErrOverload, the message waits
// here and begins again.
//
// When ctx is done, Serve pulls no more, finishes the tasks in progress, and returns the error of the cancellation. Messages that
// wait for a stage go back to the queue. Serve returns early if a stage of f is closed, with its stage.ErrClosed; messages in hand go
// back to the queue. A message that goes back counts as delivered. The ErrClosed of any other stage is an error of a try. While the
// servers are away, or the queue is gone, Serve tries again, and tells Options.OnError. It returns nats.ErrConnectionClosed if the
// connection is closed for good.
func Serve[T, Out any](ctx context.Context, q *Queue[T], f stage.Flow[T, Out], width int) error {
	if width < 1 {
		panic("jetstream: Serve without a width")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &serving[T, Out]{q: q, f: f, width: width, work: make(chan jetstream.Msg, width), free: make(chan struct{}, width), hand: make([]jetstream.Msg, width)}
	var workers, beats sync.WaitGroup
	for i := range width {
		s.free <- struct{}{}
		workers.Go(func() {
			for m := range s.work {
				s.put(i, m)
				err := s.do(ctx, m)
				s.put(i, nil)
				s.free <- struct{}{}
				if err != nil {
					stop(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	beats.Go(func() { s.beat(ended) })
	for ctx.Err() == nil {
		if err := s.pull(ctx); errors.Is(err, nats.ErrConnectionClosed) {
			stop(err)
		} else if err != nil {
			q.meet("pull", err)
			pause(ctx, pullFor/4)
		}
	}
	close(s.work)
	workers.Wait()
	close(ended)
	beats.Wait()
	return context.Cause(ctx)
}

// A serving is one Serve. A worker is free, or has a message in hand, or is promised to a pull.
type serving[T, Out any] struct {
	q     *Queue[T]
	f     stage.Flow[T, Out]
	width int
	work  chan jetstream.Msg
	free  chan struct{}

	mu   sync.Mutex
	hand []jetstream.Msg // of each worker; nil: none
}

func (s *serving[T, Out]) put(i int, m jetstream.Msg) {
	s.mu.Lock()
	s.hand[i] = m
	s.mu.Unlock()
}

// pull waits for a free worker, and asks for a message for each free worker. It returns when they have come, or pullFor is over.
func (s *serving[T, Out]) pull(ctx context.Context) error {
	q := s.q
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil
	}
	n := 1
	late := time.NewTimer(gather)
	defer late.Stop()
	for n < min(enough, s.width) {
		select {
		case <-s.free:
			n++
			continue
		case <-late.C:
		}
		break
	}
	for more := true; more && n < s.width; {
		select {
		case <-s.free:
			n++
		default:
			more = false
		}
	}
	defer func() {
		for range n {
			s.free <- struct{}{}
		}
	}()
	begun := time.Now()
	batch, err := q.consumer.Fetch(n, jetstream.FetchMaxWait(pullFor))
	if err != nil {
		return err
	}
	came := false
	for m := range batch.Messages() {
		came = true
		n--
		q.pulled.Add(1)
		s.work <- m // there is room: a worker is promised
	}
	err = batch.Error()
	if err == nil && !came && time.Since(begun) > pullFor+pullFor/2 {
		err = nats.ErrTimeout // the servers have not even said that there is no message
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// beat tells the servers which messages are in progress, so that they are not delivered again.
func (s *serving[T, Out]) beat(ended <-chan struct{}) {
	tick := time.NewTicker(s.q.o.AckWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			s.mu.Lock()
			hand := slices.Clone(s.hand)
			s.mu.Unlock()
			for _, m := range hand {
				if m == nil {
					continue
				}
				if err := m.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
					s.q.meet("in progress", err)
				}
			}
		}
	}
}

// do begins a task with a message, and answers the message when it is done. It returns an error if f is closed.
func (s *serving[T, Out]) do(serve context.Context, m jetstream.Msg) error {
	q, ctx := s.q, context.WithoutCancel(serve)
	err := s.perform(serve, ctx, m)
	var closed *closedError
	switch {
	case err == nil:
		q.confirm(ctx, m)
	case errors.As(err, &closed), errors.Is(err, errGiveBack):
		q.returned.Add(1)
		q.answer("give back", m.NakWithDelay(pullFor)) // when the pulls of this Serve are over
		if closed != nil {
			return closed.error
		}
	case errors.As(err, new(*permanentError)), delivered(m) >= q.o.Tries:
		q.bury(ctx, m, err)
	default:
		q.failed.Add(1)
		q.tell("a try", err)
		q.answer("try again", m.NakWithDelay(min(100*time.Millisecond<<min(delivered(m), 10), 10*time.Second)))
	}
	return nil
}

// A closedError says that f is closed.
type closedError struct{ error }

// errGiveBack says that Serve ends before f has had room.
var errGiveBack = errors.New("jetstream: Serve ends")

// The waits of a message: for room, and after an overload further on, where a try costs more.
const (
	roomWait    = 10 * time.Millisecond
	longestWait = 200 * time.Millisecond
)

// perform has a message done by f, as often as f is overloaded.
func (s *serving[T, Out]) perform(serve, ctx context.Context, m jetstream.Msg) error {
	var v T
	if err := json.Unmarshal(m.Data(), &v); err != nil {
		return Permanent(err)
	}
	for wait := roomWait; ; {
		answer, err := s.f.Begin(ctx, v)
		if err == nil {
			_, err = answer.Await(ctx)
			wait = min(2*wait, longestWait)
		} else if errors.Is(err, stage.ErrClosed) {
			return &closedError{err}
		}
		switch {
		case errors.Is(err, stage.ErrClosed) && s.closed():
			return &closedError{err}
		case !errors.Is(err, stage.ErrOverload), errors.As(err, new(*permanentError)):
			return err
		}
		s.q.waits.Add(1)
		if pause(serve, wait); serve.Err() != nil {
			return errGiveBack
		}
	}
}

// closed reports whether a stage of f is closed.
func (s *serving[T, Out]) closed() bool {
	return slices.ContainsFunc(stage.Stages(s.f), func(o stage.Observed) bool { return o.Stats().Closed })
}

// answer notes whether an answer has reached the client. If it is lost behind it, the message comes again.
func (q *Queue[T]) answer(what string, err error) {
	if err != nil {
		q.meet(what, err)
	}
}

// confirm acknowledges m, and tries again while the servers are away: a message whose acknowledgement is lost comes again.
func (q *Queue[T]) confirm(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(ctx, q.o.AckWait)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := m.DoubleAck(try)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			q.done.Add(1)
			return
		}
		q.meet("acknowledge", err)
		if errors.Is(err, nats.ErrConnectionClosed) {
			return
		}
		if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
}

// bury stores a dead message, with the reason, and takes it out of the queue.
func (q *Queue[T]) bury(ctx context.Context, m jetstream.Msg, reason error) {
	if q.o.Dead != "" {
		dead := &nats.Msg{Subject: q.o.Dead, Data: m.Data(), Header: nats.Header{"Reason": {reason.Error()}}}
		var opts []jetstream.PublishOpt
		if meta, err := m.Metadata(); err == nil {
			opts = append(opts, jetstream.WithMsgID(fmt.Sprintf("%s-%d-%d", q.name, meta.Sequence.Stream, meta.Timestamp.UnixNano())))
		}
		if _, err := q.js.PublishMsg(ctx, dead, opts...); err != nil {
			q.meet("bury", err)
			q.answer("bury later", m.NakWithDelay(time.Second)) // it must not be lost
			return
		}
	}
	q.dead.Add(1)
	q.tell("dead", reason)
	q.answer("bury", m.TermWithReason(reason.Error()))
}

func delivered(m jetstream.Msg) int {
	meta, err := m.Metadata()
	if err != nil {
		return 1
	}
	return int(meta.NumDelivered)
}
