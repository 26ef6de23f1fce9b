package natsactor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A network is the NATS client, its connection and the server. At each of its waits, other tasks may run.
type network struct {
	up     bool
	room   int      // for messages that the client keeps while it is disconnected
	kept   []packet // the messages that the client keeps
	wire   []packet // messages on the connection, which a crash loses
	server []packet // messages that the server has read and not passed on, which a crash loses
	pings  int      // the number of pings that the server has read
	passed []*nats.Msg
	status chan nats.Status
}

// A packet is a message or a ping.
type packet struct {
	*nats.Msg
	pong *bool
	age  int // the number of pings that were read before
}

func (n *network) IsConnected() bool { return n.up }
func (n *network) IsClosed() bool    { return false }

func (n *network) PublishMsg(m *nats.Msg) error {
	suspend.Yield()
	defer suspend.Yield()
	switch {
	case n.up:
		n.wire = append(n.wire, packet{Msg: m})
	case len(n.kept) == n.room:
		return nats.ErrReconnectBufExceeded
	default:
		n.kept = append(n.kept, packet{Msg: m})
	}
	return nil
}

// FlushTimeout fails if the client is disconnected before the answer.
func (n *network) FlushTimeout(time.Duration) error {
	suspend.Yield()
	pong := false
	ping := packet{pong: &pong}
	if n.up {
		n.wire = append(n.wire, ping)
	} else {
		n.kept = append(n.kept, ping)
	}
	suspend.Yield()
	for ; len(n.wire) > 0 && !pong; n.read() {
		suspend.Yield()
	}
	if !pong {
		return nats.ErrTimeout
	}
	return nil
}

// read lets the server read a packet. When it reads a ping, it has passed on all messages that it read before the last ping.
func (n *network) read() {
	if len(n.wire) == 0 {
		return
	}
	p := n.wire[0]
	n.wire = n.wire[1:]
	if p.pong == nil {
		p.age = n.pings
		n.server = append(n.server, p)
		return
	}
	for len(n.server) > 0 && n.server[0].age < n.pings {
		n.pass()
	}
	n.pings++
	*p.pong = true
}

func (n *network) pass() {
	n.passed = append(n.passed, n.server[0].Msg)
	n.server = n.server[1:]
}

// crash drops the messages of the server and of the connection.
func (n *network) crash() {
	n.up, n.wire, n.server, n.pings = false, nil, nil, 0
	n.status <- nats.RECONNECTING
}

func (n *network) reconnect() {
	n.up, n.wire, n.kept = true, n.kept, nil
	n.status <- nats.CONNECTED
}

type number struct{ N int }

// A server crashes, and loses its messages and those on the connection. The client cannot buffer all the messages that follow.
// Each message is passed on, is a dead letter, or is reported as in doubt, and none is reported twice. A bad message does not
// affect others, and each Ask ends.
func TestExploreAnOutage(t *testing.T) {
	for _, room := range []int{0, 1} {
		for _, o := range []suspendtest.ExploreOptions{{Executions: 10_000}, {Random: 5_000, Depth: 5}} {
			o.Cancellations, o.Waits = -1, true
			suspendtest.Explore(t, func(w *suspendtest.World) { outage(w, room) }, o)
		}
	}
}

func outage(w *suspendtest.World, room int) {
	const lease = time.Hour
	codec := JSON[any](number{}, &question{})
	n := &network{up: true, room: room, status: make(chan nats.Status, 10)}
	dead, doubt, lost := map[any]int{}, 0, 0
	d := &dialled{
		nc: n, subject: "s", id: "me", inbox: "in.", lease: lease, asked: map[string]*asking{},
		wake: make(chan struct{}, 1), flushed: make(chan uint64, 1),
		onLost: func(n int, err error) {
			if lost += n; err == ErrInDoubt {
				doubt += n
			}
		},
	}
	answers := 0
	w.Go("user", func(context.Context) {
		ref := spawn(context.Background(), suspend.Here(), d, codec, DialOptions[any]{Actor: actor.Options[any]{Dead: func(m any) { dead[m]++ }}})
		_ = ref.Send(number{0})
		_ = ref.Send("bad")
		asked := actor.AskLater(ref, &question{})
		_ = ref.Send(number{1})
		ref.Stop()
		_ = ref.Wait(context.Background())
		_ = suspend.Here().Go(func() {
			if _, err := asked.Await(context.Background()); err != nil {
				answers++
			}
		})
		d.examineAsked(time.Now().Add(lease))
	})
	w.Go("tend", func(context.Context) {
		for range 3 {
			suspend.Yield()
			d.breaks(nil, n.status)
			if some, _ := d.examineAsked(time.Now()); some > 0 {
				d.flush(some)
				d.believe(<-d.flushed, nil, n.status)
			}
		}
	})
	w.Go("server", func(context.Context) {
		n.read()
		suspend.Yield()
		n.crash()
		suspend.Yield()
		n.reconnect()
	})
	w.Check(func() error {
		d.breaks(nil, n.status)
		for len(n.wire) > 0 {
			n.read()
		}
		for len(n.server) > 0 {
			n.pass()
		}
		there := map[any]int{}
		for _, m := range n.passed {
			if m.Header == nil && m.Subject == "s" {
				got, err := codec.Decode(m.Data)
				if err != nil {
					return err
				}
				there[got]++
			}
		}
		silent := 0
		for i := range 2 {
			m := number{i}
			if there[m]+dead[m] > 1 {
				return fmt.Errorf("%v: %d times there, %d times dead", m, there[m], dead[m])
			}
			if there[m]+dead[m] == 0 {
				silent++
			}
		}
		switch all := dead["bad"] + dead[number{0}] + dead[number{1}]; {
		case dead["bad"] != 1:
			return fmt.Errorf("the bad message is %d dead letters", dead["bad"])
		case silent > doubt:
			return fmt.Errorf("%d are lost, and %d are said to be in doubt", silent, doubt)
		case lost != all+doubt || lost > 3:
			return fmt.Errorf("%d are lost, of 3: %d dead and %d in doubt", lost, all, doubt)
		case answers != 1:
			return fmt.Errorf("an Ask has %d ends", answers)
		}
		return nil
	})
}
