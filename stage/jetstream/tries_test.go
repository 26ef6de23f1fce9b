package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

// servers stands for the NATS servers: it stores messages, unless refuse returns an error for them.
type servers struct {
	jetstream.JetStream
	stored []*nats.Msg
	refuse func(m *nats.Msg) error
}

func (s *servers) PublishMsg(_ context.Context, m *nats.Msg, _ ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if s.refuse != nil {
		if err := s.refuse(m); err != nil {
			return nil, err
		}
	}
	s.stored = append(s.stored, m)
	return &jetstream.PubAck{}, nil
}

// A message is a delivery that records its acknowledgements.
type message struct {
	jetstream.Msg
	meta    jetstream.MsgMetadata
	header  nats.Header
	data    string
	ack     func() error
	term    error
	answers []string
}

// delivery returns the nth delivery of a message with the number seq.
func delivery(seq, n uint64, header nats.Header) *message {
	return &message{
		meta:   jetstream.MsgMetadata{Stream: "work", Sequence: jetstream.SequencePair{Stream: seq}, NumDelivered: n, Timestamp: time.Unix(0, 9)},
		header: header, data: "1", ack: func() error { return nil },
	}
}

func (m *message) Metadata() (*jetstream.MsgMetadata, error) { return &m.meta, nil }
func (m *message) Headers() nats.Header                      { return m.header }
func (m *message) Data() []byte                              { return []byte(m.data) }

func (m *message) answer(format string, args ...any) error {
	m.answers = append(m.answers, fmt.Sprintf(format, args...))
	return nil
}
func (m *message) NakWithDelay(d time.Duration) error { return m.answer("nak %v", d) }
func (m *message) TermWithReason(why string) error    { _ = m.answer("term %s", why); return m.term }
func (m *message) DoubleAck(context.Context) error {
	_ = m.answer("ack")
	return m.ack()
}

// queueOn returns a queue with three tries on s, and a call of Serve whose handler is f.
func queueOn(s *servers, f func(context.Context, int) (int, error)) (*Queue[int], *serving[int, int], func()) {
	q := &Queue[int]{js: s, name: "work", subject: "stage.work", o: Options{Tries: 3, AckWait: 30 * time.Second, Dead: "graveyard"}}
	st := stage.New("s", f, stage.Options{})
	return q, &serving[int, int]{q: q, f: st, width: 2, hand: make([]jetstream.Msg, 2)}, func() { _ = st.Shutdown(bg) }
}

// told returns the messages that s has stored, one on each line, with their headers.
func (s *servers) told() string {
	var lines []string
	for _, m := range s.stored {
		line := m.Subject
		for _, key := range []string{triesHeader, delayHeader, deadHeader, "Reason", "Size", "Mine", "Nats-Msg-Id"} {
			if v := m.Header.Get(key); v != "" {
				line += fmt.Sprintf(" %s=%.40s", strings.TrimPrefix(key, "Braid-"), v)
			}
		}
		lines = append(lines, line+" data="+string(m.Data))
	}
	return strings.Join(lines, "\n")
}

// The table has the fate of each delivery: whether its task runs, which messages are stored, and how the delivery is
// acknowledged.
func TestTries(t *testing.T) {
	full := func(*nats.Msg) error { return errors.New("no room") }
	noDead := func(m *nats.Msg) error {
		if m.Subject == "graveyard" {
			return errors.New("no room")
		}
		return nil
	}
	tooLarge := func(err error) func(m *nats.Msg) error {
		return func(m *nats.Msg) error {
			if m.Subject == "graveyard" && len(m.Data) > 0 {
				return err
			}
			return nil
		}
	}
	failed := func(n string) nats.Header { return nats.Header{triesHeader: {n}} }
	for _, c := range []struct {
		what   string
		n      uint64
		header nats.Header
		err    error
		refuse func(*nats.Msg) error
		ended  bool // Serve has ended
		ran    bool
		stored string
		answer string
		stats  Stats
	}{
		{what: "done", n: 1, ran: true, answer: "ack", stats: Stats{Done: 1}},
		{what: "the first failure", n: 1, err: errOops, ran: true, answer: "ack", stats: Stats{Failed: 1},
			stored: "stage.work.later.7-9 Tries=1 Delay=200ms data=1"},
		{what: "the second failure, after a copy", n: 1, header: failed("1"), err: errOops, ran: true, answer: "ack", stats: Stats{Failed: 1},
			stored: "stage.work.later.7-9 Tries=2 Delay=400ms data=1"},
		{what: "the first failure, after a process that died", n: 2, err: errOops, ran: true, answer: "ack", stats: Stats{Failed: 1},
			stored: "stage.work.later.7-9 Tries=2 Delay=400ms data=1"},
		{what: "the last failure", n: 1, header: failed("2"), err: errOops, ran: true, answer: "term oops", stats: Stats{Dead: 1},
			stored: "graveyard Tries=2 Reason=oops data=1"},
		{what: "one try a process that died, one failure", n: 2, header: failed("1"), err: errOops, ran: true, answer: "term oops", stats: Stats{Dead: 1},
			stored: "graveyard Tries=1 Reason=oops data=1"},
		{what: "three processes have died", n: 4, answer: "term jetstream: 3 tries: a process has died with the message, or has lost its connection", stats: Stats{Dead: 1},
			stored: "graveyard Reason=jetstream: 3 tries: a process has died w data=1"},
		{what: "two failures, and a process has died", n: 2, header: failed("2"), answer: "term jetstream: 3 tries: a process has died with the message, or has lost its connection", stats: Stats{Dead: 1},
			stored: "graveyard Tries=2 Reason=jetstream: 3 tries: a process has died w data=1"},
		{what: "permanent", n: 1, err: Permanent(errOops), ran: true, answer: "term oops", stats: Stats{Dead: 1}, stored: "graveyard Reason=oops data=1"},
		{what: "permanent and snoozed", n: 1, err: Permanent(Snooze(time.Minute, errOops)), ran: true, answer: "term jetstream: try again after 1m0s: oops",
			stats: Stats{Dead: 1}, stored: "graveyard Reason=jetstream: try again after 1m0s: oops data=1"},
		{what: "snoozed", n: 2, header: failed("1"), err: fmt.Errorf("the backend: %w", Snooze(time.Minute, stage.ErrFull)), ran: true, answer: "ack", stats: Stats{Snoozed: 1},
			stored: "stage.work.later.7-9 Tries=2 Delay=1m0s data=1"},
		{what: "snoozed for no time, at the last try", n: 3, err: Snooze(-1, nil), ran: true, answer: "ack", stats: Stats{Snoozed: 1},
			stored: "stage.work.again.7-9 Tries=2 Delay=0s data=1"},
		{what: "after the end of Serve", n: 3, ended: true, answer: "ack", stats: Stats{Returned: 1},
			stored: "stage.work.later.7-9 Tries=2 Delay=1s data=1"},
		{what: "headers", n: 1, header: nats.Header{"Nats-Msg-Id": {"id"}, "Mine": {"x"}}, err: errOops, ran: true, answer: "ack", stats: Stats{Failed: 1},
			stored: "stage.work.later.7-9 Tries=1 Delay=200ms Mine=x data=1"},
		{what: "the copy is refused", n: 1, err: errOops, refuse: full, ran: true, answer: "nak 1s", stats: Stats{Failed: 1, Errors: 1}},
		{what: "the copy of a snoozed one is refused", n: 1, err: Snooze(time.Minute, nil), refuse: full, ran: true, answer: "nak 1m0s", stats: Stats{Snoozed: 1, Errors: 1}},
		{what: "the dead letter is too large for the client", n: 3, err: errOops, refuse: tooLarge(nats.ErrMaxPayload), ran: true, answer: "term oops", stats: Stats{Dead: 1},
			stored: "graveyard Reason=oops Size=1 data="},
		{what: "the dead letter is too large for the stream", n: 3, err: errOops, refuse: tooLarge(&jetstream.APIError{ErrorCode: 10054}), ran: true, answer: "term oops", stats: Stats{Dead: 1},
			stored: "graveyard Reason=oops Size=1 data="},
		{what: "the header of the dead letter is too large", n: 3, err: errOops, refuse: tooLarge(&jetstream.APIError{ErrorCode: 10097}), ran: true, answer: "term oops", stats: Stats{Dead: 1},
			stored: "graveyard Reason=oops Size=1 data="},
		{what: "the dead letter is refused", n: 1, err: Permanent(errOops), refuse: noDead, ran: true, answer: "ack", stats: Stats{Errors: 1},
			stored: "stage.work.later.7-9 Tries=3 Delay=1s Dead=oops data=1"},
		{what: "the decision is in the message", n: 1, header: nats.Header{deadHeader: {"oops"}, triesHeader: {"3"}}, answer: "term oops", stats: Stats{Dead: 1},
			stored: "graveyard Tries=3 Reason=oops data=1"},
		{what: "the dead letter and the copy are refused", n: 3, err: errOops, refuse: full, ran: true, answer: "nak 1s", stats: Stats{Errors: 2}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := false
				s := &servers{refuse: c.refuse}
				q, serving, end := queueOn(s, func(context.Context, int) (int, error) { ran = true; return 0, c.err })
				defer end()
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				if c.ended {
					cancel()
				}
				m := delivery(7, c.n, c.header)
				require.NoError(t, serving.take(ctx, 0, m))
				require.Equal(t, c.ran, ran)
				require.Equal(t, c.stored, s.told())
				require.Equal(t, c.answer, strings.Join(m.answers, ", "))
				require.Equal(t, c.stats, q.Stats())
				require.Equal(t, make([]jetstream.Msg, 2), serving.hand)
			})
		})
	}
}

// A stage leaves the decisions that belong to Serve to it.
func TestRetryable(t *testing.T) {
	require.True(t, Retryable(errOops))
	require.True(t, Retryable(stage.ErrFull))
	require.False(t, Retryable(fmt.Errorf("x: %w", Permanent(stage.ErrFull))))
	require.False(t, Retryable(fmt.Errorf("x: %w", Snooze(0, nil))))
	require.ErrorIs(t, Snooze(0, errOops), errOops)
	require.EqualError(t, Snooze(time.Second, nil), "jetstream: try again after 1s")
}

// A reason of any length, with any characters, fits into a header.
func TestReasons(t *testing.T) {
	require.Equal(t, "one two", short(errors.Join(errors.New("one"), errors.New("two"))))
	require.Equal(t, "a    b", short(errors.New("a\r\n\x00\tb")))
	require.Len(t, short(errors.New(strings.Repeat("x", 1<<20))), longestText)
	require.Equal(t, "x"+strings.Repeat("ü", longestText/2-1), short(errors.New("x"+strings.Repeat("ü", longestText))))
}

// A message that is accepted and then shed waits twice as long each time, up to a fifth of a second. All its deliveries count as one try.
func TestWaitsOfAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		q, serving, end := queueOn(&servers{}, func(context.Context, int) (int, error) {
			if at = append(at, time.Since(begun)); len(at) < 8 {
				return 0, stage.ErrLate
			}
			return 0, nil
		})
		defer end()
		require.NoError(t, serving.take(bg, 0, delivery(1, 1, nil)))
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 20 * ms, 60 * ms, 140 * ms, 300 * ms, 500 * ms, 700 * ms, 900 * ms}, at)
		require.Equal(t, Stats{Done: 1, Waits: 7}, q.Stats())
	})
}

// If the servers deliver a message again while a worker handles it, it is not begun again. A message with the same number in
// another stream is begun.
func TestTwiceInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, let := 0, make(chan struct{})
		q, serving, end := queueOn(&servers{}, func(context.Context, int) (int, error) { runs++; <-let; return 0, nil })
		defer end()
		first, again, other := delivery(1, 1, nil), delivery(1, 2, nil), delivery(1, 1, nil)
		other.meta.Timestamp = time.Unix(1, 0)
		go func() { _ = serving.take(bg, 0, first) }()
		synctest.Wait()
		require.NoError(t, serving.take(bg, 1, again))
		require.Empty(t, again.answers)
		go func() { _ = serving.take(bg, 1, other) }()
		synctest.Wait()
		require.Equal(t, 1, runs) // the width of the stage is one
		close(let)
		synctest.Wait()
		require.Equal(t, 2, runs)
		require.EqualValues(t, 2, q.Stats().Done)
	})
}

// A message whose termination fails is delivered again, and counts as dead only then.
func TestTermsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, serving, end := queueOn(&servers{}, func(context.Context, int) (int, error) { return 0, nil })
		defer end()
		q.o.Dead = ""
		m := delivery(1, 4, nil)
		m.term = nats.ErrConnectionClosed
		require.NoError(t, serving.take(bg, 0, m))
		require.Equal(t, Stats{Errors: 1}, q.Stats())
		m.term = nil
		require.NoError(t, serving.take(bg, 0, m))
		require.Equal(t, Stats{Errors: 1, Dead: 1}, q.Stats())
	})
}

// An acknowledgement is repeated until the servers have it, but at most for AckWait. After that, they deliver the message again.
func TestAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _, end := queueOn(&servers{}, func(context.Context, int) (int, error) { return 0, nil })
		defer end()
		m, failures := delivery(1, 1, nil), 3
		m.ack = func() error {
			if failures--; failures >= 0 {
				return nats.ErrTimeout
			}
			return nil
		}
		q.confirm(bg, m)
		require.Len(t, m.answers, 4)
		require.Equal(t, Stats{Done: 1, Errors: 3}, q.Stats())

		begun := time.Now()
		m.ack = func() error { time.Sleep(time.Second); return nats.ErrTimeout }
		q.confirm(bg, m)
		require.InDelta(t, q.o.AckWait, time.Since(begun), float64(2*time.Second))
		require.EqualValues(t, 1, q.Stats().Done)
	})
}

// A puller ends each pull after some time. Only the first pull gets messages.
type puller struct {
	jetstream.Consumer
	after time.Duration
	left  []jetstream.Msg
}

func (p *puller) Fetch(int, ...jetstream.FetchOpt) (jetstream.MessageBatch, error) {
	c := make(chan jetstream.Msg, len(p.left))
	for _, m := range p.left {
		c <- m
	}
	p.left = nil
	time.AfterFunc(p.after, func() { close(c) })
	return batch(c), nil
}

type batch chan jetstream.Msg

func (b batch) Messages() <-chan jetstream.Msg { return b }
func (b batch) Error() error                   { return nil }

// If the servers do not answer a pull within one and a half times its duration, they are unreachable, which is an error.
func TestPullsWithoutServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, serving, end := queueOn(&servers{}, func(context.Context, int) (int, error) { return 0, nil })
		defer end()
		serving.free = make(chan struct{}, 2)
		serving.free <- struct{}{}
		q.consumer = &puller{after: pullFor}
		require.NoError(t, serving.pull(bg))
		q.consumer = &puller{after: 2 * pullFor}
		require.ErrorIs(t, serving.pull(bg), nats.ErrTimeout)
		require.Len(t, serving.free, 1)
	})
}

// A delayed message is delayed at its first delivery, and moved to the queue with its history at the next one. If that delivery
// is early, for example after a lost answer, the message waits for the rest.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{}
		q, _, end := queueOn(s, func(context.Context, int) (int, error) { return 0, nil })
		defer end()
		header := nats.Header{triesHeader: {"2"}, delayHeader: {"3s"}, "Nats-Msg-Id": {"id"}}
		first, second, third := delivery(5, 1, header), delivery(5, 2, header), delivery(6, 2, header)
		ctx, cancel := context.WithCancel(bg)
		q.later = &puller{after: pullFor, left: []jetstream.Msg{first, second}}
		go func() { time.Sleep(pullFor / 2); cancel() }()
		q.wake(ctx)
		require.Equal(t, []string{"nak 3s"}, first.answers)
		require.Equal(t, []string{"ack"}, second.answers)
		require.Equal(t, "stage.work.again.5-9 Tries=2 Delay=3s data=1", s.told())
		for _, c := range []struct {
			n     uint64
			delay string
			since time.Duration // between the storing and this delivery, by the clock of this process
			want  string
		}{
			{1, "3s", time.Hour, "nak 3s"}, {2, "3s", -time.Hour, "ack"}, {2, "30s", time.Second, "ack"}, // AckWait is 30 s
			{1, "40s", time.Hour, "nak 40s"}, {2, "40s", 30 * time.Second, "nak 10s"}, {3, "40s", 39 * time.Second, "nak 1s"},
			{2, "40s", -time.Hour, "nak 40s"}, {3, "40s", 40 * time.Second, "ack"},
		} {
			early := delivery(7, c.n, nats.Header{delayHeader: {c.delay}})
			early.meta.Timestamp = time.Now().Add(-c.since)
			q.wakeOne(bg, early)
			require.Equal(t, []string{c.want}, early.answers, "%v", c)
		}
		s.refuse = func(*nats.Msg) error { return errOops }
		q.wakeOne(bg, third)
		require.Equal(t, []string{"nak 1s"}, third.answers)
		require.Equal(t, Stats{Errors: 1}, q.Stats())
	})
}
