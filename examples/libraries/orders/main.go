// Orders takes 600 orders in three processes and their replacements. One process is killed, one is replaced as in a deployment, and still
// each order is either confirmed, and has its goods, or is a dead letter, and has none.
//
//	go run .
//
// The orders wait in a JetStream queue, which the shops serve with a pipe of two stages. The first asks the warehouse, an actor in a process
// of its own, to reserve the goods. The second charges the customer. Both may happen twice, so both are harmless the second time: the
// warehouse knows its reservations by the order's number. An order that cannot be carried out becomes a dead letter, whose reader releases
// its goods.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/natsactor"
	"github.com/braidgo/braid/stage"
	queue "github.com/braidgo/braid/stage/jetstream"
	"github.com/braidgo/braid/suspend"
)

// An Order is what waits in the queue.
type Order struct {
	ID   int
	Item string
	N    int
}

// The messages of the warehouse, and its error, which keeps its identity on the way.
type (
	Reserve struct {
		actor.Request[int] // the number of pieces left
		Order
	}
	Release struct {
		actor.Request[bool]
		ID int
	}
	Balance struct{ actor.Request[Stock] }
	Stock   struct {
		Left   map[string]int
		Orders map[int]Order // those that have their goods
	}
)

var (
	errSoldOut  = errors.New("sold out")
	errDeclined = errors.New("card declined")
	codec       = natsactor.JSON[any](&Reserve{}, &Release{}, &Balance{})
)

func init() { natsactor.RegisterError("sold-out", errSoldOut) }

const orders = 600

// stock returns what the warehouse has at the beginning: too little for all.
func stock() map[string]int { return map[string]int{"chair": orders * 4 / 5, "table": orders * 2 / 5} }

func order(i int) Order {
	if i%2 == 0 {
		return Order{i, "chair", 2}
	}
	return Order{i, "table", 1}
}

// keeper is the actor of the warehouse.
func keeper(_ context.Context, self *actor.Self[any]) error {
	s, released := Stock{stock(), map[int]Order{}}, map[int]bool{}
	return actor.Loop(func() error {
		return self.React(func(m any) error {
			switch m := m.(type) {
			case *Reserve:
				if _, again := s.Orders[m.ID]; again {
					m.Reply(s.Left[m.Item])
				} else if s.Left[m.Item] < m.N || released[m.ID] { // a dead order comes again, if its shop has died with it
					m.Refuse(fmt.Errorf("%s: %w", m.Item, errSoldOut))
				} else {
					s.Left[m.Item] -= m.N
					s.Orders[m.ID] = m.Order
					m.Reply(s.Left[m.Item])
				}
			case *Release:
				released[m.ID] = true
				o, held := s.Orders[m.ID]
				if delete(s.Orders, m.ID); held {
					s.Left[o.Item] += o.N
				}
				m.Reply(held)
			case *Balance:
				m.Reply(s)
			}
			return nil
		})
	})
}

// warehouse serves its actor until a SIGTERM, and then ends in this order: first no new messages, then the mail, then the connection.
func warehouse(ctx context.Context, nc *nats.Conn) error {
	ref := actor.Spawn(context.Background(), suspend.Goroutines, keeper, actor.Options[any]{})
	served, err := natsactor.Serve(nc, "warehouse", ref, codec, natsactor.Options{
		OnLost: func(n int, err error) { log.Printf("warehouse: %d messages are lost: %v", n, err) },
	})
	if err != nil {
		return err
	}
	<-ctx.Done()

	last, cancel := context.WithTimeout(context.Background(), 10*time.Second) // as long as the platform waits after a SIGTERM
	defer cancel()
	_ = served.Shutdown(last)                      // others get the new messages; the mailbox gets all that have come
	ref.Stop()                                     // the actor handles its mail, and replies
	return errors.Join(ref.Wait(last), nc.Drain()) // the replies leave
}

// shop serves the queue until a SIGTERM.
func shop(ctx context.Context, nc *nats.Conn) error {
	q, _, err := open(ctx, nc)
	if err != nil {
		return err
	}
	keeper, err := natsactor.Dial(context.Background(), suspend.Goroutines, nc, "warehouse", codec, natsactor.DialOptions[any]{Lease: time.Second})
	if err != nil {
		return err
	}
	reserve := stage.New("reserve", func(ctx context.Context, o Order) (Order, error) {
		_, err := actor.Ask(ctx, keeper, &Reserve{Order: o})
		switch {
		case errors.Is(err, errSoldOut):
			err = queue.Permanent(err) // no other try would succeed
		case errors.Is(err, natsactor.ErrUnreachable):
			err = queue.Snooze(300*time.Millisecond, err) // the warehouse is away, so the order is not at fault
		}
		return o, err
	}, stage.Options{Width: 8})
	charge := stage.New("charge", func(_ context.Context, o Order) (Order, error) {
		switch {
		case o.ID%20 == 7:
			return o, queue.Permanent(errDeclined)
		case rand.IntN(10) == 0:
			return o, errors.New("the bank does not answer") // another try
		}
		return o, nil
	}, stage.Options{Width: 8})

	err = queue.Serve(ctx, q, stage.Pipe(reserve, charge), 8) // ends when its tasks are done
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = stage.Shutdown(last, reserve, charge) // nobody uses them any more
	keeper.Stop()
	_ = keeper.Wait(last)
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return nc.Drain()
}

func open(ctx context.Context, nc *nats.Conn) (*queue.Queue[Order], jetstream.JetStream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, err
	}
	q, err := queue.Open[Order](ctx, js, "orders", queue.Options{Queue: 100, InFlight: 32, Tries: 10, AckWait: 2 * time.Second, Dead: "orders-dead"})
	return q, js, err
}

// compensate releases the goods of the orders that are dead, and sends their reasons.
func compensate(ctx context.Context, letters jetstream.Consumer, keeper actor.Ref[any], reasons chan<- string) (jetstream.ConsumeContext, error) {
	return letters.Consume(func(m jetstream.Msg) {
		var o Order
		_ = json.Unmarshal(m.Data(), &o) // it is an Order that Submit has stored
		if _, err := actor.Ask(ctx, keeper, &Release{ID: o.ID}); err != nil {
			_ = m.NakWithDelay(time.Second)
			return
		}
		reasons <- m.Headers().Get("Reason")
		_ = m.Ack()
	})
}

// run takes the orders, and returns the balance and the reasons of the dead letters. Meanwhile it kills one shop, and replaces the other.
func run(dir string) (b Stock, why map[string]int, err error) {
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		return b, nil, err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(20 * time.Second) {
		return b, nil, errors.New("the NATS server does not start")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		return b, nil, err
	}
	defer nc.Close()
	q, js, err := open(ctx, nc)
	if err != nil {
		return b, nil, err
	}
	var all []*exec.Cmd
	process := func(role string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Env = append(os.Environ(), "ORDERS_ROLE="+role, "ORDERS_URL="+s.ClientURL())
		cmd.Stderr = os.Stderr
		err = errors.Join(err, cmd.Start())
		all = append(all, cmd)
		return cmd
	}
	defer func() {
		cancel()
		for _, cmd := range all {
			_ = cmd.Wait()
		}
	}()
	process("warehouse")
	first, second := process("shop"), process("shop")
	keeper, err2 := natsactor.Dial(ctx, suspend.Goroutines, nc, "warehouse", codec, natsactor.DialOptions[any]{})
	letters, err3 := js.CreateOrUpdateConsumer(ctx, "orders-dead", jetstream.ConsumerConfig{Durable: "compensate", AckPolicy: jetstream.AckExplicitPolicy})
	if err = errors.Join(err, err2, err3); err != nil {
		return b, nil, err
	}
	reasons := make(chan string, orders)
	consuming, err := compensate(ctx, letters, keeper, reasons)
	if err != nil {
		return b, nil, err
	}
	defer consuming.Stop()

	for i := 0; i < orders; {
		switch i {
		case orders / 3:
			_ = first.Process.Kill() // kill -9
			process("shop")
		case orders / 2:
			_ = second.Process.Signal(syscall.SIGTERM) // a deployment
			process("shop")
		}
		switch err := q.Submit(ctx, order(i), fmt.Sprint("order-", i)); {
		case err == nil:
			i++
		case errors.Is(err, stage.ErrFull): // a web server would answer with 503
			time.Sleep(10 * time.Millisecond)
		default:
			return b, nil, err
		}
	}
	for left, unread := 1, uint64(1); left > 0 || unread > 0; time.Sleep(50 * time.Millisecond) {
		if left, err = q.Waiting(ctx); err != nil { // if none is left, the last dead letter is stored
			return b, nil, err
		}
		dead, err := js.Stream(ctx, "orders-dead")
		info, err2 := letters.Info(ctx)
		if err = errors.Join(err, err2); err != nil {
			return b, nil, err
		}
		unread = dead.CachedInfo().State.LastSeq - info.AckFloor.Stream
	}
	why = map[string]int{}
	for len(reasons) > 0 {
		why[<-reasons]++
	}
	b, err = actor.Ask(ctx, keeper, &Balance{})
	return b, why, err
}

// play runs a role in a process of its own.
func play(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	closed := make(chan struct{})
	nc, err := nats.Connect(os.Getenv("ORDERS_URL"), nats.MaxReconnects(-1), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		return err
	}
	if role == "warehouse" {
		err = warehouse(ctx, nc)
	} else {
		err = shop(ctx, nc)
	}
	if err == nil {
		<-closed // the Drain has ended
	}
	return err
}

func main() {
	if role := os.Getenv("ORDERS_ROLE"); role != "" {
		if err := play(role); err != nil {
			log.Fatal(role, ": ", err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, why, err := run(dir)
	fmt.Printf("%d orders are confirmed; left in the warehouse: %v; dead: %v\n", len(b.Orders), b.Left, why)
	if err != nil {
		log.Print(err)
	}
}
