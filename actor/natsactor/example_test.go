package natsactor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/natsactor"
	"github.com/braidgo/braid/suspend"
)

// The types of the messages for an account must be known in both processes.
type (
	deposit struct{ Cents int }
	balance struct{ actor.Request[int] }
)

var accountCodec = natsactor.JSON[any](deposit{}, &balance{})

func account(_ context.Context, self *actor.Self[any]) error {
	cents := 0
	return actor.Loop(func() error {
		return self.React(func(m any) error {
			switch m := m.(type) {
			case deposit:
				cents += m.Cents
			case *balance:
				m.Reply(cents)
			}
			return nil
		})
	})
}

// One process serves an account, and another one sends messages to it. In this example both are the same process, with two
// connections.
func Example() {
	ctx := context.Background()
	s, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	connect := func() *nats.Conn { // in a program: nats.Connect(url, nats.MaxReconnects(-1))
		nc, err := nats.Connect("", nats.InProcessServer(s))
		if err != nil {
			log.Fatal(err)
		}
		return nc
	}

	// The first process.
	there := connect()
	defer there.Close()
	alice := actor.Spawn(ctx, suspend.Goroutines, account, actor.Options[any]{})
	served, err := natsactor.Serve(there, "accounts.alice", alice, accountCodec, natsactor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := served.Shutdown(within); err != nil { // some messages are lost
			log.Print(err)
		}
	}()

	// The second process.
	here := connect()
	defer here.Close()
	ref, err := natsactor.Dial(ctx, suspend.Goroutines, here, "accounts.alice", accountCodec, natsactor.DialOptions[any]{
		Actor:  actor.Options[any]{Dead: func(m any) { log.Printf("not sent: %v", m) }},
		OnLost: func(n int, err error) { log.Printf("%d messages may be lost: %v", n, err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		_ = ref.Send(deposit{100})
	}
	fmt.Println(actor.Ask(ctx, ref, &balance{}))

	ended := make(chan error)
	err = natsactor.Watch(ctx, here, "accounts.alice", 5*time.Second, func(err error) { ended <- err })
	if err != nil {
		log.Fatal(err)
	}
	alice.Stop()
	fmt.Println("ended:", <-ended)
	_, err = actor.Ask(ctx, ref, &balance{})
	fmt.Println(errors.Is(err, actor.ErrNoReply))
	// Output:
	// 300 <nil>
	// ended: <nil>
	// true
}
