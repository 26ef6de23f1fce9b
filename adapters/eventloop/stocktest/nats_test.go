package stocktest

import (
	"context"
	"errors"
	"net"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

var natsRows = []row{
	{name: "nats.go, requests of 50 tasks", held: deadlock, run: func(ctx context.Context, e *env) error {
		return overNATS(ctx, e, func(c *nats.Conn) error {
			if _, err := c.Subscribe("greet", func(m *nats.Msg) { _ = m.Respond([]byte(greeting)) }); err != nil {
				return err
			}
			return e.tasks(50, 5, func(int) error {
				m, err := c.RequestWithContext(ctx, "greet", nil)
				if err != nil {
					return err
				}
				return is(m.Data, nil)
			})
		})
	}},
	{name: "nats.go, a subscriber and a publisher", held: deadlock, run: func(ctx context.Context, e *env) error {
		return overNATS(ctx, e, func(c *nats.Conn) error {
			s, err := c.SubscribeSync("greetings")
			if err != nil {
				return err
			}
			return e.tasks(2, 100, func(task int) error {
				if task == 0 {
					return c.Publish("greetings", []byte(greeting))
				}
				m, err := s.NextMsgWithContext(ctx)
				if err != nil {
					return err
				}
				return is(m.Data, nil)
			})
		})
	}},
}

// overNATS starts a server on goroutines, and connects to it in a task of e.
func overNATS(ctx context.Context, e *env, f func(c *nats.Conn) error) error {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(limit) {
		return errors.New("no server")
	}
	var c *nats.Conn
	if err := e.tasks(1, 1, func(int) (err error) {
		c, err = nats.Connect(s.ClientURL(), nats.SetCustomDialer(dialerOf(func(network, address string) (net.Conn, error) {
			return e.dial(ctx, network, address)
		})))
		return err
	}); err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

type dialerOf func(network, address string) (net.Conn, error)

func (d dialerOf) Dial(network, address string) (net.Conn, error) { return d(network, address) }
