package natsactor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
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

// TestMain is also the main function of a process that serves.
func TestMain(m *testing.M) {
	if url := os.Getenv("BRAID_SERVE"); url != "" {
		serveProcess(url)
		return
	}
	if url := os.Getenv("BRAID_ASK"); url != "" {
		askProcess(url)
		return
	}
	os.Exit(m.Run())
}

// ok returns v, and panics if err is not nil.
func ok[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// connected returns an actor that is served with o, and a Ref for it.
func connected(t *testing.T, o natsactor.Options, d natsactor.DialOptions[any]) (served, ref actor.Ref[any], s *natsactor.Server) {
	ncs := network(t, 2)
	p := pool(t)
	served = actor.Spawn(bg, p, adder, actor.Options[any]{})
	s = ok(natsactor.Serve(ncs[0], "adder", served, codec(), o))
	t.Cleanup(func() { _ = s.Close() })
	ref = ok(natsactor.Dial(bg, p, ncs[1], "adder", codec(), d))
	t.Cleanup(func() { ref.Stop(); served.Stop() })
	return served, ref, s
}

// If NATS cannot carry a reply, or the codec does not know it, the Ask fails.
func TestRepliesThatAreLost(t *testing.T) {
	_, ref, s := connected(t, natsactor.Options{}, natsactor.DialOptions[any]{Lease: -1})
	for name, ask := range map[string]func() error{
		"too large":  func() error { _, err := actor.Ask(within(t), ref, &text{N: 2 << 20}); return err },
		"not a JSON": func() error { _, err := actor.Ask(within(t), ref, &ratio{A: 1}); return err },
		"later":      func() error { _, err := actor.AskLater(ref, &text{N: 2 << 20}).Await(within(t)); return err },
	} {
		err := ask()
		require.ErrorIs(t, err, actor.ErrNoReply, name)
		require.ErrorAs(t, err, new(*natsactor.RemoteError), name)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
	}
	require.Equal(t, "xxx", ok(actor.Ask(within(t), ref, &text{N: 3})))
	require.Zero(t, s.Lost())
}

// A bad message does not affect others.
func TestMessagesThatAreLost(t *testing.T) {
	dead, lost := make(chan any, 10), make(chan error, 10)
	_, ref, _ := connected(t, natsactor.Options{}, natsactor.DialOptions[any]{
		Actor: actor.Options[any]{Dead: func(m any) { dead <- m }},
		OnLost: func(_ int, err error) {
			if !errors.Is(err, natsactor.ErrInDoubt) { // this error comes when the test closes the connection
				lost <- err
			}
		},
	})
	require.NoError(t, ref.Send(note("no codec knows it")))
	require.Equal(t, note("no codec knows it"), <-dead)
	require.ErrorContains(t, <-lost, "unknown type")

	large := &struct {
		actor.Request[int]
		Text string
	}{Text: "no codec accepts it either"}
	_, err := actor.Ask(within(t), ref, large)
	require.ErrorIs(t, err, actor.ErrNoReply)
	require.ErrorContains(t, err, "unknown type")

	for i := 1; i <= 10; i++ {
		require.NoError(t, ref.Send(add{i}))
	}
	require.Equal(t, 55, ok(actor.Ask(within(t), ref, &sum{Times: 1})))
	require.Empty(t, dead)
	require.Empty(t, lost)
}

// If a message is larger than the server allows, a Send makes it a dead letter, and an Ask fails.
func TestTooLarge(t *testing.T) {
	type essay struct{ Text string }
	type review struct {
		actor.Request[int]
		Text string
	}
	ncs := network(t, 1)
	dead := make(chan any, 10)
	ref, err := natsactor.Dial(bg, pool(t), ncs[0], "essays", natsactor.JSON[any](essay{}, &review{}), natsactor.DialOptions[any]{
		Actor: actor.Options[any]{Dead: func(m any) { dead <- m }},
	})
	require.NoError(t, err)
	sub := ok(ncs[0].SubscribeSync("essays"))
	large := strings.Repeat("x", 2<<20)
	require.NoError(t, ref.Send(essay{large}))
	require.Equal(t, essay{large}, <-dead)
	_, err = actor.Ask(within(t), ref, &review{Text: large})
	require.ErrorIs(t, err, actor.ErrNoReply)
	require.ErrorIs(t, err, nats.ErrMaxPayload)
	require.NoError(t, ref.Send(essay{"short"}))
	m := ok(sub.NextMsg(short))
	require.Contains(t, string(m.Data), "short")
	ref.Stop()
	require.NoError(t, ref.Wait(within(t)))
}

// An Ask has the same errors as in one process.
func TestErrorsOfAnAsk(t *testing.T) {
	served, ref, _ := connected(t, natsactor.Options{}, natsactor.DialOptions[any]{Lease: -1})
	_, err := actor.Ask(within(t), ref, &fail{}) // the actor refuses it, and continues
	require.NotErrorIs(t, err, actor.ErrNoReply)
	_, here := actor.Ask(within(t), served, &fail{})
	require.Equal(t, here.Error(), err.Error())

	held := actor.AskLater(ref, &hold{})
	_, err = actor.Ask(within(t), ref, &boom{})
	require.ErrorIs(t, err, actor.ErrNoReply)
	var remote *natsactor.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Contains(t, remote.Text, "boom\nand ashes")
	_, err = held.Await(within(t))
	require.ErrorIs(t, err, actor.ErrNoReply)
	_, err = actor.Ask(within(t), ref, &sum{}) // the actor has ended
	require.ErrorIs(t, err, actor.ErrNoReply)
}

// Asks of a server whose queue is full fail at once.
func TestFull(t *testing.T) {
	ncs := network(t, 2)
	p := pool(t)
	var gate promise.Promise[int]
	served := actor.Spawn(bg, p, func(ctx context.Context, self *actor.Self[any]) error {
		_, _ = gate.Await(ctx)
		return adder(ctx, self)
	}, actor.Options[any]{Cap: 1})
	s, err := natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{Cap: 2})
	require.NoError(t, err)
	defer s.Close()
	ref := ok(natsactor.Dial(bg, p, ncs[1], "adder", codec(), natsactor.DialOptions[any]{}))
	answers := make(chan error, 10)
	for range 10 { // one is in the mailbox, one on its way, two wait
		f := actor.AskLater(ref, &sum{Times: 1})
		go func() { _, err := f.Await(bg); answers <- err }()
	}
	for range 6 {
		require.ErrorIs(t, <-answers, actor.ErrFull)
	}
	_ = gate.Fill(1)
	for range 4 {
		err := <-answers
		require.True(t, err == nil || errors.Is(err, actor.ErrFull), err)
	}
	require.Zero(t, s.Lost())
	served.Stop()
	ref.Stop()
}

// When a connection is closed, its Ref and the Asks through it fail, even if nothing is sent.
func TestClosedConnection(t *testing.T) {
	ncs := network(t, 2)
	p := pool(t)
	served := actor.Spawn(bg, p, adder, actor.Options[any]{})
	s, err := natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{})
	require.NoError(t, err)
	defer s.Close()
	ref, err := natsactor.Dial(bg, p, ncs[1], "adder", codec(), natsactor.DialOptions[any]{Lease: -1})
	require.NoError(t, err)
	held := actor.AskLater(ref, &hold{})
	_, err = actor.Ask(within(t), ref, &sum{}) // so the other request is published
	require.NoError(t, err)
	ncs[1].Close()
	_, err = held.Await(within(t))
	require.ErrorIs(t, err, actor.ErrNoReply)
	require.ErrorIs(t, ref.Wait(within(t)), nats.ErrConnectionClosed)
	served.Stop()
}

// A closed server still sends the replies of its actor. When it is asked about a request, it answers that it is closed.
func TestRepliesAfterClose(t *testing.T) {
	const lease = 200 * time.Millisecond
	served, ref, s := connected(t, natsactor.Options{}, natsactor.DialOptions[any]{Lease: lease})
	held := actor.AskLater(ref, &hold{})
	_, err := actor.Ask(within(t), ref, &sum{}) // so the other request has arrived
	require.NoError(t, err)
	s.Close()
	select {
	case <-held.Done():
		t.Fatal("the lease has ended")
	case <-time.After(5 * lease):
	}
	require.NoError(t, served.Send(add{1}))
	require.Equal(t, 1, ok(held.Await(within(t))))
	_, err = actor.Ask(within(t), ref, &sum{})
	require.ErrorIs(t, err, natsactor.ErrUnreachable)
}

// An Ask whose server has died fails after the lease. An Ask of another server of the queue continues.
func TestAskOfAServerThatIsGone(t *testing.T) {
	const lease = time.Second
	ncs := network(t, 3)
	p := pool(t)
	var adders []actor.Ref[any]
	for _, nc := range ncs[:2] {
		a := actor.Spawn(bg, p, adder, actor.Options[any]{})
		s, err := natsactor.Serve(nc, "adder", a, codec(), natsactor.Options{Queue: "q"})
		require.NoError(t, err)
		defer s.Close()
		adders = append(adders, a)
	}
	ref, err := natsactor.Dial(bg, p, ncs[2], "adder", codec(), natsactor.DialOptions[any]{Lease: lease})
	require.NoError(t, err)
	var held []promise.Future[int]
	const n = 200 // each server has some: the probability that one has none is 2^-199
	for range n {
		held = append(held, actor.AskLater(ref, &hold{}))
	}
	_, err = actor.Ask(within(t), ref, &sum{Times: 1})
	require.NoError(t, err)
	begun := time.Now()
	ncs[0].Close()
	gone := 0
	failed := make(chan error, n)
	for _, f := range held {
		go func() { _, err := f.Await(bg); failed <- err }()
	}
	require.ErrorIs(t, <-failed, natsactor.ErrUnreachable)
	gone++
	t.Logf("the first has failed after %v, with a lease of %v", time.Since(begun), lease)
	time.Sleep(5 * lease / 2) // those of the other are held, however long that takes
	for ; len(failed) > 0; gone++ {
		err := <-failed
		require.ErrorIs(t, err, natsactor.ErrUnreachable)
		require.ErrorIs(t, err, actor.ErrNoReply)
	}
	require.Less(t, gone, n)
	require.NoError(t, adders[1].Send(add{1}))
	for range n - gone {
		require.NoError(t, <-failed)
	}
	for _, a := range adders {
		a.Stop()
	}
	ref.Stop()
}

// A Watch of a queue reports the end of its last server.
func TestWatchOfAQueue(t *testing.T) {
	ncs := network(t, 4)
	p := pool(t)
	told := make(chan error, 10)
	serve := func(nc *nats.Conn, subject string) actor.Ref[any] {
		a := actor.Spawn(bg, p, adder, actor.Options[any]{})
		s, err := natsactor.Serve(nc, subject, a, codec(), natsactor.Options{Queue: "q", Beat: 5 * time.Millisecond})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return a
	}
	watch := func(subject string, lease time.Duration) {
		require.NoError(t, natsactor.Watch(bg, ncs[3], subject, lease, func(err error) { told <- err }))
	}
	quiet := func() { // waits until the Watch has seen everything that was published
		for range 3 {
			for _, nc := range ncs {
				if !nc.IsClosed() {
					require.NoError(t, nc.Flush())
				}
			}
		}
		require.Never(t, func() bool { return len(told) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
	}
	a, b, c := serve(ncs[0], "one"), serve(ncs[1], "one"), serve(ncs[2], "one")
	watch("one", 20*time.Second)
	a.Kill(errors.New("oops"))
	require.Error(t, a.Wait(within(t)))
	quiet()
	b.Stop()
	require.NoError(t, b.Wait(within(t)))
	quiet()
	c.Stop()
	require.NoError(t, <-told)

	d, e := serve(ncs[0], "two"), serve(ncs[1], "two") // the last server is lost
	watch("two", 300*time.Millisecond)
	d.Stop()
	require.NoError(t, d.Wait(within(t)))
	quiet()
	ncs[1].Close()
	require.ErrorIs(t, <-told, natsactor.ErrUnreachable)
	e.Stop()

	f := serve(ncs[0], "three") // a single server, which ends with an error
	watch("three", 20*time.Second)
	f.Kill(errors.New("oops"))
	require.ErrorContains(t, <-told, "oops")
}

// A heldConn is a connection whose writes wait until they are released.
type heldConn struct {
	net.Conn
	hold *atomic.Bool
	gate chan struct{}
}

func (c heldConn) Write(b []byte) (int, error) {
	if c.hold.Load() && bytes.Contains(b, []byte("SUB ")) {
		<-c.gate
	}
	return c.Conn.Write(b)
}

type heldDialer struct {
	inner nats.InProcessConnProvider
	hold  atomic.Bool
	gate  chan struct{}
}

func (d *heldDialer) InProcessConn() (net.Conn, error) {
	c, err := d.inner.InProcessConn()
	return heldConn{c, &d.hold, d.gate}, err
}

// When Serve returns, the NATS server has the subscription.
func TestServeIsServed(t *testing.T) {
	s, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	defer s.Shutdown()
	d := &heldDialer{inner: s, gate: make(chan struct{})}
	nc := ok(nats.Connect("", nats.InProcessServer(d)))
	defer nc.Close()
	d.hold.Store(true)
	a := actor.Spawn(bg, pool(t), adder, actor.Options[any]{})
	served := make(chan error, 1)
	go func() {
		s, err := natsactor.Serve(nc, "adder", a, codec(), natsactor.Options{})
		served <- err
		if err == nil {
			s.Close()
		}
	}()
	select {
	case <-served:
		t.Fatal("its subscription has not left the process")
	case <-time.After(300 * time.Millisecond): // long enough to notice a Serve that does not wait; correct code does not depend on it
	}
	close(d.gate)
	require.NoError(t, <-served)
	a.Stop()
}

// listen starts a server in this process, at the given port; -1 stands for any port.
func listen(t *testing.T, port int) *server.Server {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(20*time.Second))
	return s
}

// The Ref of Dial works again after an outage that was too long for the client's buffer. All losses are reported.
func TestOutage(t *testing.T) {
	s := listen(t, -1)
	port := s.Addr().(*net.TCPAddr).Port
	connect := func(opts ...nats.Option) *nats.Conn {
		nc := ok(nats.Connect(s.ClientURL(), append(opts, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))...))
		t.Cleanup(nc.Close)
		return nc
	}
	p := pool(t)
	var mu sync.Mutex
	got := map[int]bool{}
	served := actor.Spawn(bg, p, func(_ context.Context, self *actor.Self[any]) error {
		return actor.Loop(func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case add:
					mu.Lock()
					got[m.N] = true
					mu.Unlock()
				case *sum:
					m.Reply(m.Times)
				}
				return nil
			})
		})
	}, actor.Options[any]{})
	there := connect()
	serving, err := natsactor.Serve(there, "adder", served, codec(), natsactor.Options{})
	require.NoError(t, err)
	defer serving.Close()
	var dead, doubtful, refused, unreachable atomic.Int64
	rounds, buffer := 3, 8<<10
	over := func(refused int64, _ time.Time) bool { return refused > 500 }
	if long, err := time.ParseDuration(os.Getenv("BRAID_OUTAGE")); err == nil {
		rounds, buffer = 1, nats.DefaultReconnectBufSize
		over = func(_ int64, begun time.Time) bool { return time.Since(begun) > long }
	}
	here := connect(nats.ReconnectBufSize(buffer))
	ref, err := natsactor.Dial(bg, p, here, "adder", codec(), natsactor.DialOptions[any]{
		Lease: time.Second,
		Actor: actor.Options[any]{Dead: func(any) { dead.Add(1) }},
		OnLost: func(n int, err error) {
			switch {
			case errors.Is(err, natsactor.ErrInDoubt):
				doubtful.Add(int64(n))
			case errors.Is(err, nats.ErrReconnectBufExceeded):
				refused.Add(int64(n))
			case errors.Is(err, natsactor.ErrUnreachable): // the other side has not reconnected yet
				unreachable.Add(int64(n))
			default:
				t.Error(err)
			}
		},
	})
	require.NoError(t, err)
	sent := 0
	send := func(until func() bool) {
		for !until() {
			for range 20 {
				require.NoError(t, ref.Send(add{sent}))
				sent++
			}
			time.Sleep(time.Millisecond)
		}
	}
	arrive := func() { // until the other side has subscribed again, messages are lost
		for {
			if _, err := actor.Ask(within(t), ref, &sum{}); err == nil {
				return
			}
		}
	}
	for range rounds {
		before, begun := refused.Load(), time.Now()
		send(func() bool { return sent%1000 == 0 })
		arrive()
		send(func() bool { return sent%100 == 0 })
		s.Shutdown()
		s.WaitForShutdown()
		asked := actor.AskLater(ref, &sum{Times: 7})
		send(func() bool { return over(refused.Load()-before, begun) })
		s = listen(t, port)
		send(func() bool { return here.IsConnected() && there.IsConnected() })
		if v, err := asked.Await(within(t)); err != nil { // whatever the result, the Ask ends
			require.ErrorIs(t, err, actor.ErrNoReply)
		} else {
			require.Equal(t, 7, v)
		}
		arrive()
	}
	ref.Stop()
	require.NoError(t, ref.Wait(within(t)))
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d sent, %d arrived, %d dead, %d unreachable, %d in doubt", sent, len(got), dead.Load(), unreachable.Load(), doubtful.Load())
	require.Equal(t, dead.Load(), refused.Load())
	known := len(got) + int(dead.Load()+unreachable.Load())
	require.LessOrEqual(t, known, sent)
	require.LessOrEqual(t, sent-known, int(doubtful.Load()))
	served.Stop()
	s.Shutdown()
}

func serveProcess(url string) {
	nc, err := nats.Connect(url)
	if err != nil {
		panic(err)
	}
	a := actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
	if _, err := natsactor.Serve(nc, "adder", a, codec(), natsactor.Options{Beat: 100 * time.Millisecond}); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	select {}
}

// askProcess sends an Ask to the adder, watches it, and prints the results.
func askProcess(url string) {
	lease := ok(time.ParseDuration(os.Getenv("BRAID_LEASE")))
	nc := ok(nats.Connect(url))
	ref := ok(natsactor.Dial(bg, suspend.Goroutines, nc, "adder", codec(), natsactor.DialOptions[any]{Lease: lease}))
	ended := make(chan error, 1)
	if err := natsactor.Watch(bg, nc, "adder", lease, func(err error) { ended <- err }); err != nil {
		panic(err)
	}
	held := actor.AskLater(ref, &hold{})
	ok(actor.Ask(bg, ref, &sum{})) // behind the other
	fmt.Println("asked")
	n, err := held.Await(bg)
	select {
	case end := <-ended:
		fmt.Println(n, err, "the Watch has ended:", end)
	default:
		fmt.Println(n, err)
	}
}

// If a process is killed, an Ask of it fails at most half a second after the lease.
func TestKill9(t *testing.T) {
	const lease = time.Second
	var all []time.Duration
	for range 3 { // repeats, because the machine may be busy
		if all = append(all, kill9(t, lease)); all[len(all)-1] <= lease+time.Second/2 {
			t.Log("failed after", all)
			return
		}
	}
	t.Errorf("failed after %v, with a lease of %v", all, lease)
}

// kill9 returns the time from the kill to the failure of the Ask.
func kill9(t *testing.T, lease time.Duration) time.Duration {
	s := listen(t, -1)
	defer s.Shutdown()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BRAID_SERVE="+s.ClientURL())
	cmd.Stderr = os.Stderr
	out := ok(cmd.StdoutPipe())
	require.NoError(t, cmd.Start())
	ok(out.Read(make([]byte, 1)))
	nc := ok(nats.Connect(s.ClientURL()))
	defer nc.Close()
	ref, err := natsactor.Dial(bg, pool(t), nc, "adder", codec(), natsactor.DialOptions[any]{Lease: lease})
	require.NoError(t, err)
	held := actor.AskLater(ref, &hold{})
	v, err := actor.Ask(within(t), ref, &sum{Times: 1})
	require.NoError(t, err)
	require.Zero(t, v)
	select {
	case <-held.Done():
		t.Fatal("a live process holds it")
	case <-time.After(3 * lease):
	}
	begun := time.Now()
	require.NoError(t, cmd.Process.Kill())
	_, err = held.Await(within(t))
	took := time.Since(begun)
	require.ErrorIs(t, err, natsactor.ErrUnreachable)
	require.ErrorIs(t, err, actor.ErrNoReply)
	_ = cmd.Wait()
	ref.Stop()
	return took
}

// A Close of the connection ends the Ref, the Asks through it, and everything that Dial has started, whether or not messages are
// on their way.
func TestCloseOfTheConnection(t *testing.T) {
	for round := range 20 {
		nc := network(t, 1)[0]
		silent := ok(nc.Subscribe("silent", func(*nats.Msg) {}))
		p := pool(t)
		ref := ok(natsactor.Dial(bg, p, nc, "silent", codec(), natsactor.DialOptions[any]{Lease: -1}))
		for range round {
			require.NoError(t, ref.Send(&text{}))
		}
		asked := actor.AskLater(ref, &text{})
		for n := int64(0); n <= int64(round); n = ok(silent.Delivered()) { // waits until the server has the request
			time.Sleep(time.Millisecond)
		}
		nc.Close()
		_, err := asked.Await(within(t))
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorIs(t, err, nats.ErrConnectionClosed)
		require.ErrorIs(t, ref.Wait(within(t)), nats.ErrConnectionClosed)
		require.Eventually(t, func() bool {
			stacks := make([]byte, 1<<20)
			return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "natsactor.Dial")
		}, 10*time.Second, 10*time.Millisecond)
	}
}
