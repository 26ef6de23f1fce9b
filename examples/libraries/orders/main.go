// Orders takes 600 orders in three processes and their replacements. One process is killed, one is replaced as in a deployment, and still
// each order is either confirmed, and has its goods, or is a dead letter, and has none.
//
//	go run .              everything: the NATS server, the warehouse, two shops, a kill -9, a SIGTERM, and the balance at the end
//	go run . -orders 6000
//
// The orders wait in a JetStream queue, which the shops serve with a pipe of two stages. The first stage asks the warehouse, an actor in a
// process of its own, to reserve the goods. The second charges the customer. Both may happen twice, so both are harmless the second time:
// the warehouse knows its reservations by the order's number. An order that cannot be carried out becomes a dead letter. A reader of the
// dead letters releases its goods.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
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

// stock returns what the warehouse has at the beginning: too little for all.
func stock(orders int) map[string]int {
	return map[string]int{"chair": orders * 4 / 5, "table": orders * 2 / 5}
}

func order(i int) Order {
	if i%2 == 0 {
		return Order{i, "chair", 2}
	}
	return Order{i, "table", 1}
}

// keeper is the actor of the warehouse.
func keeper(orders int) func(context.Context, *actor.Self[any]) error {
	return func(_ context.Context, self *actor.Self[any]) error {
		s := Stock{stock(orders), map[int]Order{}}
		return actor.Loop(func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case *Reserve:
					if _, again := s.Orders[m.ID]; !again && s.Left[m.Item] < m.N {
						m.Refuse(fmt.Errorf("%s: %w", m.Item, errSoldOut))
						break
					} else if !again {
						s.Left[m.Item] -= m.N
						s.Orders[m.ID] = m.Order
					}
					m.Reply(s.Left[m.Item])
				case *Release:
					o, held := s.Orders[m.ID]
					s.Left[o.Item] += o.N
					delete(s.Orders, m.ID)
					m.Reply(held)
				case *Balance:
					delete(s.Left, "") // of an order that was released before it was reserved
					m.Reply(s)
				}
				return nil
			})
		})
	}
}

// warehouse serves its actor until a SIGTERM, and then ends in this order: first no new messages, then the mail, then the connection.
func warehouse(ctx context.Context, nc *nats.Conn, orders int) error {
	ref := actor.Spawn(context.Background(), suspend.Goroutines, keeper(orders))
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
	q, err := open(ctx, nc)
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
			err = queue.Snooze(300*time.Millisecond, err) // the warehouse is away, which is no fault of the order's
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
	_ = stage.Close(last, reserve, charge) // nobody uses them any more
	keeper.Stop()
	_ = keeper.Wait(last)
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return nc.Drain()
}

func open(ctx context.Context, nc *nats.Conn) (*queue.Queue[Order], error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return queue.Open[Order](ctx, js, "orders", queue.Options{Queue: 100, InFlight: 32, Tries: 10, AckWait: 2 * time.Second, Dead: "orders-dead"})
}

// compensate releases the goods of the orders that are dead, and sends their reasons.
func compensate(ctx context.Context, nc *nats.Conn, keeper actor.Ref[any], reasons chan<- string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	letters, err := js.CreateOrUpdateConsumer(ctx, "orders-dead", jetstream.ConsumerConfig{Durable: "compensate", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		return err
	}
	consuming, err := letters.Consume(func(m jetstream.Msg) {
		var o Order
		if err := json.Unmarshal(m.Data(), &o); err != nil {
			log.Print(err)
		} else if _, err := actor.Ask(ctx, keeper, &Release{ID: o.ID}); err != nil {
			_ = m.NakWithDelay(time.Second)
			return
		}
		reasons <- m.Headers().Get("Reason")
		_ = m.Ack()
	})
	if err != nil {
		return err
	}
	defer consuming.Stop()
	<-ctx.Done()
	return nil
}

// A Result is the balance at the end.
type Result struct {
	Stock
	Reasons map[string]int // of the dead letters
}

// run takes n orders, and returns the balance. Meanwhile it kills one shop, and replaces the other.
func run(dir string, n int, out io.Writer) (r Result, err error) {
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		return r, err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(20 * time.Second) {
		return r, errors.New("the NATS server does not start")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		return r, err
	}
	defer nc.Close()
	q, err := open(ctx, nc)
	if err != nil {
		return r, err
	}
	var all []*exec.Cmd
	process := func(role string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ORDERS_ROLE="+role, "ORDERS_URL="+s.ClientURL(), fmt.Sprint("ORDERS_N=", n))
		cmd.Stderr = os.Stderr
		err = errors.Join(err, cmd.Start())
		all = append(all, cmd)
		return cmd
	}
	defer func() {
		for _, cmd := range all {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	}()
	process("warehouse")
	first, second := process("shop"), process("shop")
	if err != nil {
		return r, err
	}
	keeper, err := natsactor.Dial(ctx, suspend.Goroutines, nc, "warehouse", codec)
	if err != nil {
		return r, err
	}
	reasons := make(chan string, n)
	go func() { _ = compensate(ctx, nc, keeper, reasons) }()

	for i := 0; i < n; {
		switch i {
		case n / 3:
			_ = first.Process.Kill() // kill -9
			process("shop")
		case n / 2:
			_ = second.Process.Signal(syscall.SIGTERM) // a deployment
			process("shop")
		}
		switch err := q.Submit(ctx, order(i), fmt.Sprint("order-", i)); {
		case err == nil:
			i++
		case errors.Is(err, stage.ErrFull): // a web server would answer with 503
			time.Sleep(10 * time.Millisecond)
		default:
			return r, err
		}
	}
	r.Reasons = map[string]int{}
	for dead := 0; ; time.Sleep(50 * time.Millisecond) {
		for len(reasons) > 0 {
			r.Reasons[<-reasons]++
			dead++
		}
		if left, err := q.Waiting(ctx); err != nil || left > 0 {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			continue
		}
		if r.Stock, err = actor.Ask(ctx, keeper, &Balance{}); err == nil && len(r.Orders)+dead == n {
			break
		}
		if ctx.Err() != nil {
			return r, fmt.Errorf("%d orders are confirmed and %d dead, of %d", len(r.Orders), dead, n)
		}
	}
	fmt.Fprintf(out, "%d orders are confirmed; left in the warehouse: %v; dead: %v\n", len(r.Orders), r.Left, r.Reasons)
	return r, nil
}

// play runs a role in a process of its own.
func play(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	nc, err := nats.Connect(os.Getenv("ORDERS_URL"), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if role == "warehouse" {
		var n int
		_, _ = fmt.Sscan(os.Getenv("ORDERS_N"), &n)
		err = warehouse(ctx, nc, n)
	} else {
		err = shop(ctx, nc)
	}
	if err == nil {
		<-closed // the Drain has ended
	}
	return err
}

func main() {
	n := flag.Int("orders", 600, "the number of orders")
	if role := os.Getenv("ORDERS_ROLE"); role != "" {
		if err := play(role); err != nil {
			log.Fatal(role, ": ", err)
		}
		return
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "orders")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		_, err = run(dir, *n, os.Stdout)
	}
	if err != nil {
		log.Print(err)
	}
}
