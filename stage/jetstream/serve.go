package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
)

// pullFor is how long a request for messages waits on the server. An idle Serve needs up to pullFor to end.
const pullFor = time.Second

// A pull costs as much as several messages. It therefore first waits for several free workers (enough), but not for long (gather).
const (
	enough = 8
	gather = 300 * time.Microsecond
)

// Serve pulls messages, and runs a task of f with each, at most width at the same time. When the task and all its children are done,
// Serve acknowledges the message. If the task fails, the message is delivered again after a delay; after Options.Tries tries it is
// dead, and its task does not begin again. A message is dead at once if it is not the JSON encoding of a T, or if its task fails with an
// error from Permanent.
//
// An overload is not a failure: if a stage of f rejects or sheds the message, or a handler returns an ErrOverload, Serve waits and
// then begins the task again.
//
// When ctx is done, Serve begins no more tasks, finishes the tasks in progress, and returns the cancellation error. Messages that wait
// because of an overload, and messages that arrive later, go back to the queue. If a stage of f is closed, Serve returns early with
// stage.ErrClosed, and the messages in hand go back to the queue. No try is counted for a message that goes back, unless the servers
// cannot be reached or it is as large as they permit. An ErrClosed from any other stage fails only the try.
// While the servers are down, or if the queue was deleted, Serve keeps trying and calls Options.OnError. If the connection is closed
// for good, Serve returns nats.ErrConnectionClosed.
func Serve[T, Out any](ctx context.Context, q *Queue[T], f stage.Flow[T, Out], width int) error {
	if width < 1 {
		panic("jetstream: Serve with a width less than one")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &serving[T, Out]{q: q, f: f, width: width, work: make(chan jetstream.Msg, width), free: make(chan struct{}, width), hand: make([]jetstream.Msg, width)}
	var workers, beats sync.WaitGroup
	for i := range width {
		s.free <- struct{}{}
		workers.Go(func() {
			for m := range s.work {
				err := s.take(ctx, i, m)
				s.free <- struct{}{}
				if err != nil {
					stop(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	beats.Go(func() { s.beat(ended) })
	workers.Go(func() { q.wake(ctx) })
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

// A serving is one call of Serve. Each worker is free, has a message in hand, or is reserved for a pull.
type serving[T, Out any] struct {
	q     *Queue[T]
	f     stage.Flow[T, Out]
	width int
	work  chan jetstream.Msg
	free  chan struct{}

	mu   sync.Mutex
	hand []jetstream.Msg // the message of each worker, or nil
}

// take passes m to the function do in worker i. If another worker has the message in hand, m is the same message, which the servers
// have delivered again because the answer did not reach them, as after an outage: that worker answers it, and m is dropped.
func (s *serving[T, Out]) take(ctx context.Context, i int, m jetstream.Msg) error {
	same := func(other jetstream.Msg) bool { return other != nil && nameOf(other) == nameOf(m) }
	s.mu.Lock()
	twice := delivered(m) > 1 && slices.ContainsFunc(s.hand, same)
	if !twice {
		s.hand[i] = m
	}
	s.mu.Unlock()
	if twice {
		return nil
	}
	defer func() {
		s.mu.Lock()
		s.hand[i] = nil
		s.mu.Unlock()
	}()
	return s.do(ctx, m)
}

// pull waits for a free worker, and requests one message for each free worker. pull returns when all these messages have arrived, or
// after pullFor.
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
		s.work <- m // does not block, because a worker is reserved for the message
	}
	err = batch.Error()
	if err == nil && !came && time.Since(begun) > pullFor+pullFor/2 {
		err = nats.ErrTimeout // a reachable server would have answered that there is no message
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// beat reports the messages in progress to the servers, which would otherwise deliver them again.
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

// do runs a task with a message, and answers the message when the task is done. The result is nil, unless f is closed.
func (s *serving[T, Out]) do(serve context.Context, m jetstream.Msg) error {
	q, ctx, try := s.q, context.WithoutCancel(serve), tries(m)
	if verdict := m.Headers().Get(deadHeader); verdict != "" {
		q.bury(ctx, m, errors.New(verdict))
		return nil
	}
	if try > q.o.Tries {
		q.bury(ctx, m, fmt.Errorf("jetstream: %d tries: a process has died with the message, or has lost its connection", try-1))
		return nil
	}
	err := s.perform(serve, ctx, m)
	var closed *closedError
	var snooze *snoozeError
	switch {
	case err == nil:
		q.confirm(ctx, m)
	case errors.As(err, &closed), errors.Is(err, errGiveBack):
		q.returned.Add(1)
		q.putBack(ctx, m, "give back", history{tries: try - 1, delay: pullFor}) // when the delay ends, the pulls of this Serve have ended
		if closed != nil {
			return closed.error
		}
	case errors.As(err, new(*permanentError)):
		q.bury(ctx, m, err)
	case errors.As(err, &snooze):
		q.snoozed.Add(1)
		q.putBack(ctx, m, "snooze", history{tries: try - 1, delay: snooze.after})
	case try >= q.o.Tries:
		q.bury(ctx, m, err)
	default:
		q.failed.Add(1)
		q.report("a try", err)
		q.putBack(ctx, m, "try again", history{tries: try, delay: min(100*time.Millisecond<<min(try, 10), 10*time.Second)})
	}
	return nil
}

// A closedError says that f is closed.
type closedError struct{ error }

// errGiveBack says that Serve has ended before the task began, or while the message waited because of an overload.
var errGiveBack = errors.New("jetstream: Serve is ending")

// A message that finds no room waits for roomWait. If it was accepted and then shed, the wait doubles up to longestWait, because
// such a try costs more.
const (
	roomWait    = 10 * time.Millisecond
	longestWait = 200 * time.Millisecond
)

// perform passes a message to f, and tries again while f is overloaded.
func (s *serving[T, Out]) perform(serve, ctx context.Context, m jetstream.Msg) error {
	var v T
	if err := json.Unmarshal(m.Data(), &v); err != nil {
		return Permanent(err)
	}
	for wait := roomWait; serve.Err() == nil; pause(serve, wait) {
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
		case !errors.Is(err, stage.ErrOverload), !Retryable(err):
			return err
		}
		s.q.waits.Add(1)
	}
	return errGiveBack
}

// closed reports whether a stage of f is closed.
func (s *serving[T, Out]) closed() bool {
	return slices.ContainsFunc(stage.Stages(s.f), func(o stage.Observed) bool { return o.Stats().Closed })
}

// answer reports err, the error from sending an answer, unless err is nil. If an answer is lost later, the message is delivered
// again.
func (q *Queue[T]) answer(what string, err error) {
	if err != nil {
		q.meet(what, err)
	}
}

// confirm acknowledges m. confirm retries while the servers are down, because an unacknowledged message would be delivered again.
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
