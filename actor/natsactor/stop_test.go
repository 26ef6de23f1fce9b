package natsactor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/natsactor"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A server of a queue group is closed, or its connection is drained, while messages arrive. All of them are received, by this
// server or by the other one.
func TestRollingDeployment(t *testing.T) {
	for name, end := range map[string]func(s *natsactor.Server, nc *nats.Conn){
		"close": func(s *natsactor.Server, _ *nats.Conn) { s.Close() },
		"drain": func(_ *natsactor.Server, nc *nats.Conn) { _ = nc.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 30_000
			ncs := network(t, 3)
			var received, lost atomic.Int64
			tell := func(n int, _ error) { lost.Add(int64(n)) }
			var servers []*natsactor.Server
			for _, nc := range ncs[:2] {
				served := actor.Spawn(bg, suspend.Goroutines, func(_ context.Context, self *actor.Self[any]) error {
					return actor.Loop(func() error { return self.React(func(any) error { received.Add(1); return nil }) })
				}, actor.Options[any]{})
				t.Cleanup(served.Stop)
				servers = append(servers, ok(natsactor.Serve(nc, "adder", served, codec(), natsactor.Options{Queue: "q", OnLost: tell})))
			}
			defer servers[1].Close()
			ref := ok(natsactor.Dial(bg, suspend.Goroutines, ncs[2], "adder", codec(), natsactor.DialOptions[any]{OnLost: tell}))
			ended := make(chan struct{})
			for i := range n {
				require.NoError(t, ref.Send(add{i}))
				if i == n/2 {
					go func() { end(servers[0], ncs[0]); close(ended) }()
				}
				if i%500 == 0 {
					time.Sleep(time.Millisecond) // lets messages arrive for a while
				}
			}
			<-ended
			require.Eventually(t, func() bool { return received.Load()+lost.Load() >= n }, short, 5*time.Millisecond)
			require.EqualValues(t, n, received.Load())
			require.Zero(t, lost.Load())
			ref.Stop()
		})
	}
}

// stuck returns a server of an actor that handles nothing until the gate is filled, and a Ref for it.
func stuck(t *testing.T, o natsactor.Options) (s *natsactor.Server, ref, served actor.Ref[any], gate *promise.Promise[int], received *atomic.Int64, arrive func(n uint64)) {
	ncs := network(t, 2)
	gate, received = new(promise.Promise[int]), new(atomic.Int64)
	served = actor.Spawn(bg, suspend.Goroutines, func(ctx context.Context, self *actor.Self[any]) error {
		return actor.Loop(func() error {
			return self.React(func(m any) error {
				_, err := gate.Await(ctx)
				received.Add(1)
				if m, ok := m.(*sum); ok {
					m.Reply(7)
				}
				return err
			})
		})
	}, actor.Options[any]{Cap: 1})
	s = ok(natsactor.Serve(ncs[0], "stuck", served, codec(), o))
	ref = ok(natsactor.Dial(bg, suspend.Goroutines, ncs[1], "stuck", codec(), natsactor.DialOptions[any]{}))
	t.Cleanup(func() { ref.Stop(); served.Kill(nil); s.Close() })
	arrive = func(n uint64) { // waits until the server's process has n messages
		require.Eventually(t, func() bool { return ncs[1].Stats().OutMsgs >= n }, short, time.Millisecond)
		require.NoError(t, ncs[1].Flush())
		require.NoError(t, ncs[0].Flush())
	}
	return s, ref, served, gate, received, arrive
}

// Close does not wait for room in the mailbox, and its error states how many messages were lost for that reason.
func TestCloseAtOnce(t *testing.T) {
	var lost atomic.Int64
	s, ref, served, gate, received, arrive := stuck(t, natsactor.Options{OnLost: func(n int, err error) {
		lost.Add(int64(n))
		if !errors.Is(err, natsactor.ErrUnreachable) {
			t.Error(err)
		}
	}})
	const n = 10
	for i := range n {
		require.NoError(t, ref.Send(add{i}))
	}
	arrive(n)
	err := s.Close()
	require.Positive(t, lost.Load())
	require.EqualError(t, err, fmt.Sprintf("natsactor: closed with %d messages lost: suspend: closed", lost.Load()))
	require.ErrorIs(t, err, suspend.ErrClosed)
	require.Equal(t, lost.Load(), s.Lost())
	require.NoError(t, s.Close(), "nothing more is lost")
	_ = gate.Fill(1)
	served.Stop()
	require.NoError(t, served.Wait(within(t)))
	require.EqualValues(t, n, lost.Load()+received.Load())
}

// Each loss is in the error of one Close, although several wait for the same end.
func TestClosesAtOnce(t *testing.T) {
	const n, closers = 10, 8
	var begun atomic.Int64
	together := make(chan struct{})
	s, ref, _, _, _, arrive := stuck(t, natsactor.Options{OnLost: func(int, error) { <-together }})
	for i := range n {
		require.NoError(t, ref.Send(add{i}))
	}
	arrive(n)
	errs := make(chan error, closers)
	for range closers {
		go func() { begun.Add(1); errs <- s.Close() }()
	}
	require.Eventually(t, func() bool { return begun.Load() == closers && s.Lost() > 0 }, short, time.Millisecond)
	close(together)
	var failed []string
	for range closers {
		if err := <-errs; err != nil {
			failed = append(failed, err.Error())
		}
	}
	require.Equal(t, []string{fmt.Sprintf("natsactor: closed with %d messages lost: suspend: closed", s.Lost())}, failed)
}

// Shutdown waits for room in the mailbox, and loses nothing.
func TestShutdownWaitsForRoom(t *testing.T) {
	s, ref, served, gate, received, arrive := stuck(t, natsactor.Options{})
	asked := actor.AskLater(ref, &sum{})
	const n = 100
	for i := range n {
		require.NoError(t, ref.Send(add{i}))
	}
	arrive(n + 1)
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(bg) }()
	select {
	case <-ended:
		t.Fatal("there is no room yet")
	case <-time.After(200 * time.Millisecond):
	}
	_ = gate.Fill(1)
	require.NoError(t, <-ended)
	require.NoError(t, s.Shutdown(bg)) // for the second time
	require.Equal(t, 7, ok(asked.Await(within(t))))
	served.Stop()
	require.NoError(t, served.Wait(within(t)))
	require.EqualValues(t, n+1, received.Load())
	require.Zero(t, s.Lost())
}

// A Shutdown whose context ends does not wait for room. The messages that it drops are reported before it returns.
func TestShutdownThatGivesUp(t *testing.T) {
	var told atomic.Int64
	s, ref, _, _, _, arrive := stuck(t, natsactor.Options{OnLost: func(n int, err error) {
		require.ErrorIs(t, err, natsactor.ErrUnreachable)
		require.ErrorIs(t, err, actor.ErrFull)
		told.Add(int64(n))
	}})
	const n = 20
	for i := range n {
		require.NoError(t, ref.Send(add{i}))
	}
	asked := actor.AskLater(ref, &sum{})
	arrive(n + 1)
	ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
	require.Eventually(t, func() bool { return told.Load() == n-1 }, short, time.Millisecond) // one message is being handled, and takes up the only place
	_, err := asked.Await(within(t))
	require.ErrorIs(t, err, natsactor.ErrUnreachable)
	require.NotErrorIs(t, err, natsactor.ErrInDoubt)
}

// If nothing is left, Shutdown returns nil, although ctx has ended.
func TestShutdownOfAnEndedServer(t *testing.T) {
	s, _, _, _, _, _ := stuck(t, natsactor.Options{})
	require.NoError(t, s.Shutdown(within(t)))
	over, cancel := context.WithCancel(bg)
	cancel()
	for range 200 {
		require.NoError(t, s.Shutdown(over))
	}
}

// After the end of its ctx, Shutdown does not wait for OnLost. Close does.
func TestShutdownDoesNotWaitForOnLost(t *testing.T) {
	told, tell := make(chan struct{}, 100), make(chan struct{})
	s, ref, _, _, _, arrive := stuck(t, natsactor.Options{OnLost: func(int, error) { told <- struct{}{}; <-tell }})
	for i := range 6 {
		require.NoError(t, ref.Send(add{i}))
	}
	arrive(6)
	over, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, s.Shutdown(over), context.Canceled)
	<-told
	require.ErrorIs(t, s.Shutdown(over), context.Canceled, "OnLost has not returned")
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	time.Sleep(10 * time.Millisecond)
	require.Empty(t, closed)
	close(tell)
	require.ErrorIs(t, <-closed, suspend.ErrClosed)
	require.NoError(t, s.Shutdown(over))
}

// A Drain of the connection waits for the replies, however long the leases of the Asks are.
func TestDrain(t *testing.T) {
	const lease = time.Second
	ncs := network(t, 2)
	served := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	ok(natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{Beat: lease / 20}))
	ref := ok(natsactor.Dial(bg, suspend.Goroutines, ncs[1], "adder", codec(), natsactor.DialOptions[any]{Lease: lease}))
	held := []promise.Future[int]{actor.AskLater(ref, &hold{}), actor.AskLater(ref, &hold{})}
	_, err := actor.Ask(within(t), ref, &sum{})
	require.NoError(t, err)
	require.NoError(t, ncs[0].Drain())
	time.Sleep(5 * lease / 2)
	require.False(t, ncs[0].IsClosed())
	require.NoError(t, served.Send(add{1}))
	for _, f := range held {
		require.Equal(t, 1, ok(f.Await(within(t))))
	}
	require.Eventually(t, ncs[0].IsClosed, 10*time.Second, 5*time.Millisecond) // the Drain has ended before its timeout of 30 s
	_, err = actor.Ask(within(t), ref, &sum{})
	require.ErrorIs(t, err, natsactor.ErrUnreachable)
	served.Stop()
	ref.Stop()
}

// A server ends when its actor stops, and when it is closed while the NATS server is away.
func TestOtherEndsOfAServer(t *testing.T) {
	s := listen(t, -1)
	nc := ok(nats.Connect(s.ClientURL(), nats.MaxReconnects(-1)))
	defer nc.Close()
	served := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	srv := ok(natsactor.Serve(nc, "adder", served, codec(), natsactor.Options{}))
	other := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	ended := ok(natsactor.Serve(nc, "other", other, codec(), natsactor.Options{}))
	other.Stop()
	require.NoError(t, ended.Shutdown(within(t)))
	s.Shutdown()
	s.WaitForShutdown()
	require.Eventually(t, func() bool { return !nc.IsConnected() }, short, time.Millisecond)
	ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.ErrorIs(t, srv.Shutdown(ctx), context.DeadlineExceeded)
	require.NoError(t, srv.Close())
	require.Less(t, time.Since(begun), 9*time.Second, "Close waited for a flush, which takes ten seconds")
	served.Stop()
}

// After their ends, Serve, Dial and Watch leave nothing behind, and neither does a Serve that fails.
func TestSubscriptionsEnd(t *testing.T) {
	ncs := network(t, 2)
	served := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	_, err := natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{Queue: "no name"})
	require.ErrorIs(t, err, nats.ErrBadQueueName)
	require.Zero(t, ncs[0].NumSubscriptions())
	s := ok(natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{}))
	ref := ok(natsactor.Dial(bg, suspend.Goroutines, ncs[1], "adder", codec(), natsactor.DialOptions[any]{}))
	told := make(chan error, 1)
	require.NoError(t, natsactor.Watch(bg, ncs[1], "adder", short, func(err error) { told <- err }))
	_, err = actor.Ask(within(t), ref, &sum{})
	require.NoError(t, err)
	served.Stop()
	require.NoError(t, <-told)
	require.NoError(t, s.Shutdown(within(t)))
	ref.Stop()
	for _, nc := range ncs {
		require.Eventually(t, func() bool { return nc.NumSubscriptions() == 0 }, short, time.Millisecond)
	}
}

// An error that is too large for NATS arrives without its text.
func TestErrorsThatAreTooLarge(t *testing.T) {
	s, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true, MaxPayload: 1024})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	defer s.Shutdown()
	nc := ok(nats.Connect("", nats.InProcessServer(s)))
	defer nc.Close()
	served := actor.Spawn(bg, suspend.Goroutines, func(_ context.Context, self *actor.Self[any]) error {
		return self.React(func(m any) error { m.(*sum).Refuse(errors.New(strings.Repeat("x", 2000))); return nil })
	}, actor.Options[any]{})
	srv := ok(natsactor.Serve(nc, "adder", served, codec(), natsactor.Options{}))
	defer srv.Close()
	ref := ok(natsactor.Dial(bg, suspend.Goroutines, nc, "adder", codec(), natsactor.DialOptions[any]{Lease: -1}))
	defer ref.Stop()
	_, err = actor.Ask(within(t), ref, &sum{})
	require.ErrorAs(t, err, new(*natsactor.RemoteError))
	require.Empty(t, err.Error())
	require.Zero(t, srv.Lost())
}

// A Watch continues as long as there are signs of life, and ends with its connection.
func TestWatchOutlivesItsLease(t *testing.T) {
	const lease = 300 * time.Millisecond
	ncs := network(t, 2)
	served := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	s := ok(natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{Beat: lease / 30}))
	defer s.Close()
	told := make(chan error, 1)
	require.NoError(t, natsactor.Watch(bg, ncs[1], "adder", lease, func(err error) { told <- err }))
	select {
	case err := <-told:
		t.Fatal(err, " for a server that is alive")
	case <-time.After(3 * lease):
	}
	ncs[1].Close()
	require.ErrorIs(t, <-told, natsactor.ErrUnreachable)
	require.NoError(t, natsactor.Watch(bg, ncs[0], "adder", time.Hour, func(err error) { told <- err }))
	ncs[0].Close()
	require.ErrorIs(t, <-told, natsactor.ErrUnreachable)
	served.Stop()
}

// A panickingCodec panics for certain bytes.
type panickingCodec struct{ natsactor.Codec[any] }

func (panickingCodec) Decode([]byte) (any, error)           { panic("strange") }
func (panickingCodec) DecodeReply(data []byte, _ any) error { panic("strange") }

// A codec that panics does not end the process.
func TestCodecsThatPanic(t *testing.T) {
	ncs := network(t, 1)
	served := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	var told sync.WaitGroup
	told.Add(1)
	s := ok(natsactor.Serve(ncs[0], "one", served, panickingCodec{codec()}, natsactor.Options{OnLost: func(int, error) { told.Done() }}))
	defer s.Close()
	require.NoError(t, ncs[0].Publish("one", nil))
	told.Wait()
	other := ok(natsactor.Serve(ncs[0], "two", served, codec(), natsactor.Options{}))
	defer other.Close()
	for _, subject := range []string{"one", "two"} {
		ref := ok(natsactor.Dial(bg, suspend.Goroutines, ncs[0], subject, panickingCodec{codec()}, natsactor.DialOptions[any]{}))
		_, err := actor.Ask(within(t), ref, &sum{})
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorContains(t, err, "strange")
		ref.Stop()
	}
	served.Stop()
}
