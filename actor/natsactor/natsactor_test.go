package natsactor_test

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
	"github.com/braidgo/braid/actor/natsactor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

type (
	add struct{ N int }
	sum struct {
		actor.Request[int]
		Times int
	}
	fail struct{ actor.Request[string] }
	text struct { // the reply has N bytes
		actor.Request[string]
		N int
	}
	ratio struct { // the reply is A / B, which JSON cannot always represent
		actor.Request[float64]
		A, B float64
	}
	hold struct{ actor.Request[int] } // the next add replies to it
	boom struct{ actor.Request[int] }
	note string // a type that the codec does not know
)

func codec() natsactor.Codec[any] {
	return natsactor.JSON[any](add{}, &sum{}, &fail{}, &text{}, &ratio{}, &hold{}, &boom{})
}

const short = 30 * time.Second // the deadline of calls that must not hang

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(bg, short)
	t.Cleanup(cancel)
	return ctx
}

// network starts a server in this process, without a port, and returns connections to it.
func network(t *testing.T, n int, opts ...nats.Option) []*nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	ncs := make([]*nats.Conn, n)
	for i := range ncs {
		ncs[i], err = nats.Connect("", append(opts, nats.InProcessServer(s))...)
		require.NoError(t, err)
		t.Cleanup(ncs[i].Close)
	}
	return ncs
}

func pool(t *testing.T) *workstealing.Pool {
	p := workstealing.New(workstealing.Options{Workers: 2})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// adder checks the order of its messages.
func adder(_ context.Context, self *actor.Self[any]) error {
	total, last := 0, 0
	var held []*hold
	return actor.Loop(func() error {
		return self.React(func(m any) error {
			switch m := m.(type) {
			case add:
				if m.N != last+1 {
					return fmt.Errorf("%d after %d", m.N, last)
				}
				last = m.N
				total += m.N
				for _, h := range held {
					h.Reply(m.N)
				}
				held = nil
			case *text:
				m.Reply(strings.Repeat("x", m.N))
			case *ratio:
				m.Reply(m.A / m.B)
			case *hold:
				held = append(held, m)
			case *boom:
				return errors.New("boom\nand ashes")
			case *sum:
				m.Reply(total * m.Times)
			case *fail:
				m.Refuse(errors.New("refused"))
			}
			return nil
		})
	})
}

func TestMessagesAndAsks(t *testing.T) {
	ncs := network(t, 2)
	p := pool(t)
	served := actor.Spawn(bg, p, adder, actor.Options[any]{})
	s, err := natsactor.Serve(ncs[0], "adder", served, codec(), natsactor.Options{})
	require.NoError(t, err)
	defer s.Close()
	ref := ok(natsactor.Dial(bg, p, ncs[1], "adder", codec(), natsactor.DialOptions[any]{}))

	const n = 10_000
	want := 0
	for i := 1; i <= n; i++ {
		require.NoError(t, ref.Send(add{i}))
		want += i
		if i%100 == 0 {
			require.Equal(t, 2*want, ok(actor.Ask(bg, ref, &sum{Times: 2})))
		}
	}
	for range n / 10 { // the same with many concurrent requests
		answers := make([]promise.Future[int], 10)
		for k := range answers {
			answers[k] = actor.AskLater(ref, &sum{Times: k})
		}
		for k, f := range answers {
			require.Equal(t, k*want, ok(f.Await(bg)))
		}
	}
	_, err = actor.Ask(bg, ref, &fail{})
	var remote *natsactor.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Equal(t, "refused", remote.Text)
	require.Zero(t, s.Lost())

	served.Kill(errors.New("killed")) // whether or not a request is on its way, the Ask ends
	_, err = actor.Ask(bg, ref, &sum{})
	require.Error(t, err)
	ref.Stop()
	require.NoError(t, ref.Wait(bg))
}

// An Ask to a subject without a server fails at once.
func TestUnreachable(t *testing.T) {
	ncs := network(t, 1)
	require.NoError(t, fifo.Run(bg, func(ctx context.Context) error {
		ref := ok(natsactor.Dial(ctx, suspend.Here(), ncs[0], "nobody", codec(), natsactor.DialOptions[any]{}))
		_, err := actor.Ask(ctx, ref, &sum{})
		require.ErrorIs(t, err, natsactor.ErrUnreachable)
		require.ErrorIs(t, err, actor.ErrNoReply)
		lost := actor.AskLater(ref, &sum{})
		ncs[0].Close()
		_, err = lost.Await(ctx)
		require.ErrorIs(t, err, actor.ErrNoReply)
		_, err = actor.Ask(ctx, ref, &sum{}) // fails together with the connection
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorIs(t, ref.Wait(ctx), nats.ErrConnectionClosed)
		return nil
	}))
}

// The losses of a slow consumer are counted and reported. Nothing else is lost.
func TestLosses(t *testing.T) {
	ncs := network(t, 2)
	p := pool(t)
	var gate promise.Promise[int]
	accounted := make(chan int, 2000)
	served := actor.Spawn(bg, p, func(ctx context.Context, self *actor.Self[any]) error {
		return actor.Loop(func() error {
			return self.React(func(any) error {
				_, err := gate.Await(ctx)
				accounted <- 1
				return err
			})
		})
	}, actor.Options[any]{Cap: 10})
	s, err := natsactor.Serve(ncs[0], "slow", served, codec(), natsactor.Options{
		Cap: 20, Beat: 5 * time.Millisecond, OnLost: func(n int, err error) { accounted <- n },
	})
	require.NoError(t, err)
	ref := ok(natsactor.Dial(bg, p, ncs[1], "slow", codec(), natsactor.DialOptions[any]{}))
	const n = 1000
	for i := range n { // ten are in the mailbox, twenty wait, and one or two are on their way
		require.NoError(t, ref.Send(add{i}))
	}
	require.NoError(t, ncs[1].Publish("slow", []byte("nonsense")))
	left := n + 1
	for left > 40 {
		left -= <-accounted
	}
	_ = gate.Fill(1)
	for left > 0 {
		left -= <-accounted
	}
	s.Close()
	served.Stop()
	ref.Stop()
	require.Zero(t, left)
	require.Greater(t, s.Lost(), int64(n/2))
}

// A Watch reports once: the end that the server has published, or that there is no server.
func TestWatch(t *testing.T) {
	ncs := network(t, 3)
	p := pool(t)
	const beat, lease = 5 * time.Millisecond, 10 * time.Second
	told := make(chan error, 10)
	watch := func(subject string, lease time.Duration) {
		require.NoError(t, natsactor.Watch(bg, ncs[1], subject, lease, func(err error) { told <- err }))
	}
	serve := func(nc *nats.Conn, subject string) (actor.Ref[any], *natsactor.Server) {
		r := actor.Spawn(bg, p, adder, actor.Options[any]{})
		s, err := natsactor.Serve(nc, subject, r, codec(), natsactor.Options{Beat: beat})
		require.NoError(t, err)
		return r, s
	}
	killed, s := serve(ncs[0], "killed")
	defer s.Close()
	watch("killed", lease)
	killed.Kill(errors.New("oops"))
	var remote *natsactor.RemoteError
	require.ErrorAs(t, <-told, &remote)
	require.Equal(t, "oops", remote.Text)

	stopped, s := serve(ncs[0], "stopped")
	defer s.Close()
	watch("stopped", lease)
	stopped.Stop()
	require.NoError(t, <-told)

	watch("nobody", lease) // at once
	require.ErrorIs(t, <-told, natsactor.ErrUnreachable)

	lost, s := serve(ncs[2], "lost")
	defer s.Close()
	watch("lost", 200*time.Millisecond)
	ncs[2].Close()
	require.ErrorIs(t, <-told, natsactor.ErrUnreachable) // wrong, because the server still runs
	lost.Stop()
	require.NoError(t, lost.Wait(bg))

	ctx, cancel := context.WithCancel(bg)
	given, s := serve(ncs[0], "given")
	defer s.Close()
	require.NoError(t, natsactor.Watch(ctx, ncs[1], "given", lease, func(err error) { told <- err }))
	cancel()
	given.Stop()
	require.NoError(t, given.Wait(bg))
	require.Empty(t, told)
}

// A sender gets an error for a message of an unknown type.
func TestCodec(t *testing.T) {
	c := codec()
	_, err := c.Encode("no such type")
	require.ErrorContains(t, err, "unknown type string")
	for _, data := range []string{"", "{}", `{"type":"add"}`, `{"type":"sum","message":null}`, `{"type":"other","message":{}}`} {
		_, err := c.Decode([]byte(data))
		require.Error(t, err, data)
	}
	data, err := c.Encode(&sum{Times: 3})
	require.NoError(t, err)
	m := ok(c.Decode(data))
	require.Equal(t, 3, m.(*sum).Times)
	require.Panics(t, func() { natsactor.JSON[any](add{}, add{}) })
}
