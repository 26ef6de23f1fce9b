package natsactor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/suspend"
)

type question struct{ actor.Request[int] }

// asked returns a request for which a goroutine waits, until cancel is called.
func asked(t *testing.T) (q carrier.Carrier, cancel func(), answer <-chan error) {
	in := actor.Open[*question](context.Background(), actor.Options[*question]{})
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() { _, err := actor.Ask(ctx, in.Ref(), &question{}); got <- err }()
	m, err := in.Receive(context.Background())
	require.NoError(t, err)
	q, ok := carrier.Of(m)
	require.True(t, ok)
	t.Cleanup(cancel)
	return q, cancel, got
}

func conn(d *dialled) *nats.Conn { return d.nc.(*nats.Conn) }

func newDialled(t *testing.T, lease time.Duration) (d *dialled, questions *nats.Subscription) {
	s, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	nc, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close(); s.Shutdown(); s.WaitForShutdown() })
	questions, err = nc.SubscribeSync(heldSubject("s"))
	require.NoError(t, err)
	_, err = nc.SubscribeSync("s")
	require.NoError(t, err)
	d = &dialled{nc: nc, subject: "s", id: "me", inbox: "in.", lease: lease, asked: map[string]*asking{}, wake: make(chan struct{}, 1)}
	return d, questions
}

// A request that no server holds fails when its lease is over, not before. A request that is held continues.
func TestLease(t *testing.T) {
	const lease = 3 * time.Second
	d, questions := newDialled(t, lease)
	lost, _, failed := asked(t)
	kept, _, _ := asked(t)
	require.NoError(t, d.ask(nil, lost)) // gets the token "1"
	require.NoError(t, d.ask(nil, kept)) // gets the token "2"
	begun := d.asked["1"].held
	d.asked["2"].held, d.asked["2"].asked = begun, begun

	_, more := d.examineAsked(begun.Add(lease/3 - 1))
	require.True(t, more)
	_, more = d.examineAsked(begun.Add(lease / 3))
	require.True(t, more)
	_, more = d.examineAsked(begun.Add(lease/3 + 1)) // the question was already sent
	require.True(t, more)
	require.NoError(t, conn(d).Flush())
	msg, err := questions.NextMsg(10 * time.Second)
	require.NoError(t, err)
	who, tokens, _ := strings.Cut(string(msg.Data), "\n")
	require.Equal(t, "me", who)
	require.ElementsMatch(t, []string{"1", "2"}, strings.Split(tokens, "\n"))
	require.Equal(t, "in."+heldToken, msg.Reply)
	_, err = questions.NextMsg(time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout)

	d.receive(&nats.Msg{Subject: "in." + heldToken, Data: []byte("2\nnone")}, nil)
	d.asked["2"].held = begun.Add(lease / 3)
	_, _ = d.examineAsked(begun.Add(lease - 1))
	require.True(t, lost.Waited())
	_, more = d.examineAsked(begun.Add(lease))
	require.True(t, more)
	err = <-failed
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorIs(t, err, actor.ErrNoReply)
	require.True(t, kept.Waited())
	_, more = d.examineAsked(begun.Add(lease + lease/3))
	require.False(t, more)
	require.False(t, kept.Waited())

	d.lease = -1 // without a lease
	q, _, _ := asked(t)
	require.NoError(t, d.ask(nil, q))
	_, more = d.examineAsked(begun.Add(1000 * lease))
	require.True(t, more)
	require.True(t, q.Waited())
}

// An answer from the server extends the lease of a request.
func TestHeld(t *testing.T) {
	d, _ := newDialled(t, time.Second)
	q, _, _ := asked(t)
	require.NoError(t, d.ask(nil, q))
	d.asked["1"].held = time.Time{}
	d.receive(&nats.Msg{Subject: "in." + heldToken, Data: []byte("1")}, nil)
	_, more := d.examineAsked(time.Now())
	require.True(t, more)
	require.True(t, q.Waited())
}

// A cancelled Ask is dropped at the next check, with or without a lease.
func TestCancelledAsks(t *testing.T) {
	for _, lease := range []time.Duration{time.Hour, -1} {
		d, _ := newDialled(t, lease)
		const n = 100
		for range n {
			q, cancel, failed := asked(t)
			require.NoError(t, d.ask(nil, q))
			cancel()
			require.ErrorIs(t, <-failed, context.Canceled)
		}
		require.Len(t, d.asked, n)
		_, more := d.examineAsked(time.Now())
		require.False(t, more)
		require.Empty(t, d.asked)
		require.False(t, d.tending)
	}
}

// A message is in doubt until the second flush after it.
func TestDoubt(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	told := 0
	d.onLost = func(n int, err error) { require.ErrorIs(t, err, ErrInDoubt); told += n }
	for range 5 {
		require.NoError(t, d.send(nil))
	}
	n, more := d.examineAsked(time.Now())
	require.EqualValues(t, 5, n)
	require.True(t, more)
	d.recordFlush(n)
	require.NoError(t, d.send(nil))
	d.recordFlush(0) // a failed flush
	n, _ = d.examineAsked(time.Now())
	require.EqualValues(t, 6, n)
	d.recordFlush(n) // five messages are settled
	d.doubt()
	require.Equal(t, 1, told)
	d.recordFlush(6) // a flush of the last connection
	d.doubt()
	require.Equal(t, 1, told)
	_, more = d.examineAsked(time.Now())
	require.False(t, more)
	require.NoError(t, d.send(nil))
	conn(d).Close()
	require.ErrorIs(t, d.send(nil), nats.ErrConnectionClosed) // this loss is reported to the caller
	d.doubt()
	require.Equal(t, 2, told)
}

// The errors of package actor are the same values in another process, and no text is too long or invalid.
func TestRemoteErrors(t *testing.T) {
	for _, c := range registered() {
		err := remoteError(errorMsg("s", fmt.Errorf("first\r\nsecond: %w", c.err)))
		require.ErrorIs(t, err, c.err)
		require.Equal(t, "first\r\nsecond: "+c.err.Error(), err.Error())
		for _, other := range registered() {
			require.Equal(t, c.err == other.err, errors.Is(err, other.err))
		}
	}
	require.NoError(t, remoteError(&nats.Msg{}))
	err := remoteError(errorMsg("s", errors.New("x"+strings.Repeat("ü", longestText))))
	require.Less(t, len(err.Error()), longestText+1)
	require.Equal(t, strings.Repeat("ü", longestText/2-1), err.Error()[1:])
}

// tend ends with its actor, after the fate of the last messages is known.
func TestTendEnds(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	d.flushed = make(chan uint64, 1)
	in := actor.Open[int](context.Background(), actor.Options[int]{})
	ended := make(chan struct{})
	status := make(chan nats.Status)
	require.NoError(t, d.send(nil))
	go func() { d.tend(in.Ref(), false, status); close(ended) }()
	in.Close()
	<-ended
	require.EqualValues(t, 1, d.settled)
}

// A server holds a request from its arrival until the reply.
func TestHeldIsForgotten(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	in := actor.Open[*question](context.Background(), actor.Options[*question]{})
	s, err := Serve(conn(d), "q", in.Ref(), JSON(&question{}), Options{})
	require.NoError(t, err)
	defer s.Close()
	replies, err := conn(d).SubscribeSync("replies.*")
	require.NoError(t, err)
	held := func() string {
		require.NoError(t, conn(d).PublishMsg(&nats.Msg{Subject: heldSubject("q"), Reply: "replies.held", Data: []byte("me\n1\n2\n3")}))
		msg, err := replies.NextMsg(200 * time.Millisecond) // a server that holds none of them does not answer
		if err != nil {
			return ""
		}
		return string(msg.Data)
	}
	require.Empty(t, held())
	for _, token := range []string{"1", "2"} {
		require.NoError(t, conn(d).PublishMsg(&nats.Msg{Subject: "q", Reply: "replies.to", Header: nats.Header{askHeader: {"me." + token}}, Data: []byte(`{"type":"question","message":{}}`)}))
	}
	first, err := in.Receive(context.Background())
	require.NoError(t, err)
	second, err := in.Receive(context.Background())
	require.NoError(t, err)
	require.Equal(t, "1\n2", held())
	require.True(t, first.Reply(1))
	msg, err := replies.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "1", string(msg.Data))
	require.Equal(t, "2", held())
	require.True(t, second.Refuse(errors.New("no")))
	msg, err = replies.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.EqualError(t, remoteError(msg), "no")
	require.Empty(t, held())
}

// A Send to a subject without a server is reported.
func TestNobodyThere(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	told := make(chan error, 10)
	ref, err := Dial(context.Background(), suspend.Goroutines, conn(d), "nobody", JSON(&question{}), DialOptions[*question]{
		OnLost: func(n int, err error) { require.Equal(t, 1, n); told <- err },
	})
	require.NoError(t, err)
	require.NoError(t, ref.Send(&question{}))
	require.ErrorIs(t, <-told, ErrUnreachable)
	ref.Stop()
	require.NoError(t, ref.Wait(context.Background()))
}

func sign(w *watch, id string) (alive, over bool) { return w.sign(&nats.Msg{Data: []byte(id)}) }

func end(id string) *nats.Msg { return &nats.Msg{Header: nats.Header{endHeader: {id}}} }

func nobody(w *watch) (alive, over bool) {
	return w.sign(&nats.Msg{Subject: w.inbox, Header: nats.Header{"Status": {"503"}}})
}

// A Watch knows of one server, which ends. If there are others, the Watch does not end, because it asks again.
func TestWatchAsksAgain(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	asks, err := conn(d).SubscribeSync(askSubject("s"))
	require.NoError(t, err)
	w := &watch{nc: conn(d), subject: "s", inbox: "in", alive: map[string]bool{}}
	_, over := sign(w, "a")
	require.False(t, over)
	_, over = w.sign(end("a"))
	require.False(t, over)
	msg, err := asks.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "in", msg.Reply)
	alive, over := sign(w, "b")
	require.True(t, alive && !over)
	_, over = w.sign(errorMsgOf("b"))
	require.False(t, over)
	_, over = nobody(w)
	require.True(t, over)
	require.EqualError(t, w.result(), "oops")
}

func errorMsgOf(id string) *nats.Msg {
	msg := errorMsg("s", errors.New("oops"))
	msg.Header.Set(endHeader, id)
	return msg
}

// A sign of life that arrives after the end of its server does not count.
func TestWatchKnowsTheDead(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	w := &watch{nc: conn(d), subject: "s", inbox: "in", alive: map[string]bool{}}
	sign(w, "a")
	w.sign(end("a"))
	alive, _ := sign(w, "a")
	require.False(t, alive)
	_, over := nobody(w)
	require.True(t, over)
	require.NoError(t, w.result())

	w = &watch{nc: conn(d), subject: "s", inbox: "in", alive: map[string]bool{}} // one server is missing, and does not answer
	sign(w, "a")
	sign(w, "b")
	w.sign(end("a"))
	_, over = nobody(w)
	require.False(t, over)
	require.ErrorIs(t, w.result(), ErrUnreachable) // after the lease
}

// A server publishes its end both before and after it answers the last question, so that each Watch gets at least one of them.
func TestEndIsToldTwice(t *testing.T) {
	d, _ := newDialled(t, time.Hour)
	signs, err := conn(d).SubscribeSync(lifeSubject("q"))
	require.NoError(t, err)
	ref := actor.Spawn(context.Background(), suspend.Goroutines, func(ctx context.Context, self *actor.Self[*question]) error {
		_, err := self.Receive(ctx)
		return err
	}, actor.Options[*question]{})
	s, err := Serve(conn(d), "q", ref, JSON(&question{}), Options{Beat: time.Hour})
	require.NoError(t, err)
	ref.Stop()
	require.NoError(t, ref.Wait(context.Background()))
	for range 2 {
		msg, err := signs.NextMsg(10 * time.Second)
		require.NoError(t, err)
		require.Equal(t, s.id, msg.Header.Get(endHeader))
	}
}
