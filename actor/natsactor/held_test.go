package natsactor

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/suspend"
)

// A recorder is a client that records what is published.
type recorder struct {
	away, closed bool
	published    []*nats.Msg
	refuse       error
}

func (r *recorder) PublishMsg(m *nats.Msg) error {
	if r.refuse == nil {
		r.published = append(r.published, m)
	}
	return r.refuse
}
func (r *recorder) FlushTimeout(time.Duration) error { return nil }
func (r *recorder) IsConnected() bool                { return !r.away }
func (r *recorder) IsClosed() bool                   { return r.closed }

func recording(lease time.Duration) (*dialled, *recorder) {
	r := &recorder{}
	return &dialled{nc: r, subject: "s", id: "me", inbox: "in.", lease: lease, asked: map[string]*asking{}, wake: make(chan struct{}, 1)}, r
}

// Without a connection, no request and no question is published. With a connection, a request is not published if its Ask was
// cancelled before.
func TestAway(t *testing.T) {
	d, r := recording(time.Minute)
	q, _, _ := asked(t)
	require.NoError(t, d.ask(nil, q))
	require.Len(t, r.published, 1)
	r.away = true
	another, _, _ := asked(t)
	err := d.ask(nil, another)
	require.ErrorIs(t, err, ErrUnreachable)
	require.NotErrorIs(t, err, ErrInDoubt)
	d.examineAsked(time.Now().Add(d.lease / 2))
	require.Len(t, r.published, 1)
	r.away = false
	d.examineAsked(time.Now().Add(d.lease / 2))
	require.Len(t, r.published, 2)

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ref := spawn(t.Context(), suspend.Goroutines, d, blockingCodec{JSON[any](&question{}, number{}), release}, DialOptions[any]{})
		require.NoError(t, ref.Send(number{1})) // the Encode of this message waits
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := make(chan error, 1)
		go func() { _, err := actor.Ask(ctx, ref, &question{}); cancelled <- err }()
		synctest.Wait() // it is in the mailbox
		cancel()
		require.ErrorIs(t, <-cancelled, context.Canceled)
		close(release)
		ref.Stop()
		require.NoError(t, ref.Wait(t.Context()))
		require.Len(t, r.published, 3)
	})
}

type blockingCodec struct {
	Codec[any]
	release chan struct{}
}

func (c blockingCodec) Encode(m any) ([]byte, error) {
	<-c.release
	return c.Codec.Encode(m)
}

// A Send on a closed connection ends the Ref, before the client reports the new status of the connection.
func TestSendToAClosedConnection(t *testing.T) {
	for _, refuse := range []error{nats.ErrConnectionClosed, nats.ErrConnectionDraining} {
		d, r := recording(time.Minute)
		r.refuse = refuse
		ref := spawn(context.Background(), suspend.Goroutines, d, JSON[any](number{}), DialOptions[any]{})
		require.NoError(t, ref.Send(number{1}))
		require.ErrorIs(t, ref.Wait(context.Background()), refuse)
	}
	d, r := recording(time.Minute)
	r.closed = true
	ref := spawn(context.Background(), suspend.Goroutines, d, JSON[any](&question{}), DialOptions[any]{})
	_, err := actor.Ask(context.Background(), ref, &question{})
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	require.ErrorIs(t, ref.Wait(context.Background()), nats.ErrConnectionClosed)
}

// A server is asked about all requests, however many there are.
func TestManyQuestions(t *testing.T) {
	const n = 2*maxTokens + 10
	d, r := recording(time.Minute)
	q, _, _ := asked(t)
	for i := range n {
		d.asked[strconv.Itoa(i)] = &asking{q: q, held: time.Now()}
	}
	_, more := d.examineAsked(time.Now())
	require.True(t, more)
	require.Len(t, r.published, 3)
	all := 0
	for _, m := range r.published {
		all += strings.Count(string(m.Data), "\n")
	}
	require.Equal(t, n, all)
}

// served returns a server on q, whose actor handles nothing while the channel is open, and a subscription to replies.*.
func served(t *testing.T, o Options) (s *Server, in *actor.Inbox[any], replies *nats.Subscription, nc *nats.Conn) {
	d, _ := newDialled(t, time.Hour)
	in = actor.Open[any](context.Background(), actor.Options[any]{Cap: 1})
	s, err := Serve(conn(d), "q", in.Ref(), blobCodec{JSON[any](&question{}, number{})}, o)
	require.NoError(t, err)
	t.Cleanup(func() { in.Close(); s.Close() })
	replies, err = conn(d).SubscribeSync("replies.>")
	require.NoError(t, err)
	return s, in, replies, conn(d)
}

// A blobCodec refuses bytes that begin with a blank.
type blobCodec struct{ Codec[any] }

func (c blobCodec) Decode(data []byte) (any, error) {
	if data[0] == ' ' {
		return number{}, nil
	}
	return c.Codec.Decode(data)
}

func requestMsg(key, chain string) *nats.Msg {
	m := &nats.Msg{Subject: "q", Reply: "replies." + key, Header: nats.Header{askHeader: {key}}, Data: []byte(`{"type":"question","message":{}}`)}
	if chain != "" {
		m.Header[chainHeader] = []string{chain}
	}
	return m
}

// A server queues at most 64 MiB, at any time.
func TestBytes(t *testing.T) {
	s, in, _, _ := served(t, Options{})
	const size = 8 << 20
	data := []byte(strings.Repeat(" ", size))
	for round := range 3 {
		for range 12 {
			s.receive(&nats.Msg{Subject: "q", Data: data})
		}
		lost := s.Lost()
		require.Greater(t, lost, int64(round))
		for range 12 - int(lost) {
			_, err := in.Receive(context.Background())
			require.NoError(t, err)
		}
		s.lost.Store(0)
		require.InDelta(t, 4, lost, 2) // seven wait, one is in the mailbox, and one may be on its way
	}
}

// Messages that the NATS client has dropped are reported once.
func TestDropped(t *testing.T) {
	s, in, _, nc := served(t, Options{Beat: time.Hour})
	require.NoError(t, s.sub.SetPendingLimits(2, -1))
	s.mu.Lock() // makes receive wait
	for range 50 {
		require.NoError(t, nc.Publish("q", []byte(`{"type":"number","message":{}}`)))
	}
	require.NoError(t, nc.Flush())
	dropped, err := s.sub.Dropped()
	s.mu.Unlock()
	require.NoError(t, err)
	require.Greater(t, dropped, 40)
	for range 3 {
		s.loseDropped()
	}
	require.EqualValues(t, dropped, s.Lost())
	for range 50 - dropped {
		_, err := in.Receive(context.Background())
		require.NoError(t, err)
	}
}

// A closed server accepts nothing, holds requests until they have a reply, and then leaves nothing behind.
func TestClosedServer(t *testing.T) {
	s, in, replies, nc := served(t, Options{})
	next := func() *nats.Msg {
		for {
			msg, err := replies.NextMsg(10 * time.Second)
			require.NoError(t, err)
			if !strings.HasSuffix(msg.Subject, heldToken) { // a closed server also reports without being asked what it holds
				return msg
			}
		}
	}
	held := func() string {
		require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: heldSubject("q"), Reply: "replies.held", Data: []byte("me\n1\n2\n3")}))
		return string(next().Data)
	}
	var questions []*question
	for _, key := range []string{"me.1", "me.2"} {
		s.receive(requestMsg(key, ""))
		m, err := in.Receive(context.Background())
		require.NoError(t, err)
		questions = append(questions, m.(*question))
	}
	no := &nats.Msg{Subject: "q", Reply: "replies.3", Header: nats.Header{askHeader: {"me.3"}}, Data: []byte(`{"type":"number","message":{}}`)}
	s.receive(no) // a request to which the actor cannot reply
	_, err := in.Receive(context.Background())
	require.NoError(t, err)
	require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.requests) == 2 }, 10*time.Second, time.Millisecond)
	s.Close()
	s.receive(&nats.Msg{Subject: "q"})
	require.EqualValues(t, 1, s.Lost())
	require.Equal(t, "1\n2", held())
	require.True(t, questions[0].Reply(1))
	require.Equal(t, "1", string(next().Data))
	require.Equal(t, "2", held())
	require.Contains(t, serving.all, s)
	_, err = s.hold.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.True(t, questions[1].Reply(2))
	require.True(t, s.hold.IsValid()) // the Reply has not waited for another message
	require.Equal(t, "2", string(next().Data))
	require.Eventually(t, func() bool { return nc.NumSubscriptions() == 3 }, 10*time.Second, time.Millisecond) // the subscriptions of this test
	require.NotContains(t, serving.all, s)
}

// Two Asks that were sent at the same time are a cycle, which a probe finds. A cancelled Ask does not count as a wait.
func TestProbe(t *testing.T) {
	s, _, replies, nc := served(t, Options{})
	q, cancel, _ := asked(t)
	s.receive(requestMsg("you.7", "you.7 b")) // the actor at b waits for the actor here
	by := &asker{at: []*Server{s}, key: "me.1", q: q}
	s.asking = by // the actor here waits for the actor at b
	require.ElementsMatch(t, []string{"me.1 q", "you.7 b me.1 q"}, by.chains())
	probe := func(key, chain string) {
		require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: heldSubject("q"), Header: nats.Header{askHeader: {key}, chainHeader: {chain}}}))
		require.NoError(t, nc.Flush())
	}
	nothing := func() {
		_, err := replies.NextMsg(50 * time.Millisecond)
		require.ErrorIs(t, err, nats.ErrTimeout)
	}
	probe("you.8", "me.1 q you.8 b") // is not held here
	probe("you.7", "me.2 q you.7 b") // comes from another Ask of the actor
	nothing()
	require.ElementsMatch(t, []string{"me.1 q", "me.2 q you.7 b me.1 q"}, by.chains())
	probe("you.7", "x.1 x me.1 q you.7 b")
	msg, err := replies.NextMsg(10 * time.Second)
	require.NoError(t, err)
	err = remoteError(msg)
	require.ErrorIs(t, err, ErrCycle)
	require.ErrorIs(t, err, ErrInDoubt) // the actor has the request
	require.ErrorContains(t, err, ": q -> b -> q,")

	s.receive(requestMsg("you.9", "me.1 q you.9 b")) // when the request arrives
	msg, err = replies.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.ErrorIs(t, remoteError(msg), ErrCycle)
	require.NotErrorIs(t, remoteError(msg), ErrInDoubt)
	cancel()
	require.Eventually(t, func() bool { return !q.Waited() }, 10*time.Second, time.Millisecond)
	s.receive(requestMsg("you.10", "me.1 q you.10 b"))
	nothing()
	by.done()
	require.Nil(t, s.asking)
}

// A request that the actor has passed to another actor does not wait for it.
func TestPassedOn(t *testing.T) {
	s, in, replies, _ := served(t, Options{})
	helper := actor.Open[any](context.Background(), actor.Options[any]{})
	defer helper.Close()
	q, _, _ := asked(t)
	by := &asker{at: []*Server{s}, key: "me.1", q: q}
	s.receive(requestMsg("you.7", "you.7 b"))
	m, err := in.Receive(context.Background())
	require.NoError(t, err)
	s.asking = by
	require.Len(t, by.chains(), 2)
	require.NoError(t, helper.Ref().Send(m))
	require.Equal(t, []string{"me.1 q"}, by.chains())
	s.probe(&nats.Msg{Header: nats.Header{askHeader: {"you.7"}, chainHeader: {"me.1 q you.7 b"}}})
	require.True(t, m.(*question).Reply(1))
	msg, err := replies.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "1", string(msg.Data))

	s.receive(requestMsg("you.8", "you.8 b"))
	m, err = in.Receive(context.Background())
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.True(t, s.owes(s.requests["you.8"]))
	require.NoError(t, helper.Ref().Send(m))
	require.False(t, s.owes(s.requests["you.8"]))
	require.NoError(t, in.Ref().Send(m))
	require.True(t, s.owes(s.requests["you.8"])) // the request is back
}

// A lateAsk is an Ask that is cancelled after the Dial has found out which actor asks.
type lateAsk struct {
	carrier.Carrier
	by actor.Actor
}

func (a lateAsk) Asker() int64 { return carrier.Goroutine(a.by) }
func (lateAsk) Waited() bool   { return false }

// A cancelled Ask that is published late does not replace the one in which the actor waits now.
func TestLateAsker(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	begun := make(chan struct{})
	a := actor.Spawn(context.Background(), suspend.Goroutines, func(ctx context.Context, self *actor.Self[*question]) error {
		close(begun)
		<-ctx.Done()
		return nil
	}, actor.Options[*question]{})
	defer a.Kill(nil)
	<-begun
	s, err := Serve(conn(d), "q", a, JSON(&question{}), Options{})
	require.NoError(t, err)
	defer s.Close()
	now := &asker{key: "me.2"}
	s.asking = now
	require.NotNil(t, askerOf(lateAsk{by: a}, &nats.Msg{Header: nats.Header{askHeader: {"me.1"}}}))
	require.Same(t, now, s.asking)
}

// Probes are sent with the questions, with the chains at that time. Long chains, and too many chains, are not sent.
func TestProbesAreSent(t *testing.T) {
	s, _, _, _ := served(t, Options{})
	d, r := recording(time.Minute)
	q, _, _ := asked(t)
	by := &asker{at: []*Server{s}, key: "me.1", q: q}
	d.asked["1"] = &asking{q: q, by: by, held: time.Now()}
	s.receive(requestMsg("you.1", strings.TrimSpace(strings.Repeat("x.1 x ", longestChain))))
	s.receive(requestMsg("you.2", strings.TrimSpace(strings.Repeat("x.1 x ", longestChain-1))))
	d.examineAsked(time.Now())
	require.Len(t, r.published, 2)
	require.Equal(t, heldSubject("s"), r.published[1].Subject)
	require.Equal(t, "me.1", r.published[1].Header.Get(askHeader))
	require.Equal(t, []string{"me.1 q", strings.Repeat("x.1 x ", longestChain-1) + "me.1 q"}, r.published[1].Header[chainHeader])
	for i := range 2 * mostChains {
		s.receive(requestMsg("you."+strconv.Itoa(i+3), "x.1 x"))
	}
	require.Len(t, by.chains(), mostChains)
	d.refuseAll()
	require.Nil(t, s.asking)
	require.False(t, q.Waited())
	require.True(t, errors.Is(noReply(ErrInDoubt), actor.ErrNoReply))
}

// The start of a lease that began while the process was still waking up from a stop is not moved into the future.
func TestProlong(t *testing.T) {
	now := time.Now()
	d := &dialled{asked: map[string]*asking{"before": {held: now.Add(-time.Hour - time.Second)}, "after": {held: now.Add(-time.Millisecond)}}}
	d.prolong(time.Hour, now)
	require.Equal(t, now.Add(-time.Second), d.asked["before"].held)
	require.Equal(t, now, d.asked["after"].held)
}
