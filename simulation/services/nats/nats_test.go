// Package nats tests a cluster of three nats-servers with JetStream on files.
package nats

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var nodes, clients = []string{"a", "b", "c"}, []string{"x", "y"}

// serve is the main function of a server. Its log shows why a server cannot start.
func serve(name, dir string) error {
	o := &server.Options{
		ServerName: name, Host: name, Port: 4222, JetStream: true, StoreDir: dir, SyncAlways: true, NoSigs: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 64 << 20,
		Cluster: server.ClusterOpts{Name: "cluster", Host: name, Port: 6222},
	}
	for _, n := range nodes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: n + ":6222"})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return nil
}

func connect(name string) (jetstream.JetStream, func(), error) {
	nc, err := nats.Connect("nats://a:4222,nats://b:4222,nats://c:4222", nats.Name(name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.Timeout(time.Second), nats.PingInterval(2*time.Second))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	return js, nc.Close, err
}

// publish publishes 20 messages, each until it is acknowledged.
func publish(name string) error {
	js, stop, err := connect(name)
	if err != nil {
		return err
	}
	defer stop()
	if err := rig.Again("no stream", func(ctx context.Context) error {
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}, Replicas: 3, Duplicates: 10 * time.Minute})
		return err
	}); err != nil {
		return err
	}
	for i := range 20 {
		id := fmt.Sprint(name, i)
		if err := rig.Again(id, func(ctx context.Context) error {
			_, err := js.Publish(ctx, "s."+name, []byte(id), jetstream.WithMsgID(id))
			return err
		}); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// read checks that each acknowledged message is in the stream once.
func read() error {
	js, stop, err := connect("reader")
	if err != nil {
		return err
	}
	defer stop()
	return rig.Again("read", func(ctx context.Context) error {
		c, err := js.OrderedConsumer(ctx, "S", jetstream.OrderedConsumerConfig{})
		if err != nil {
			return err
		}
		seen := map[string]int{}
		for n := -1; n < len(seen); {
			n = len(seen)
			b, err := c.Fetch(100, jetstream.FetchMaxWait(time.Second))
			if err != nil {
				return err
			}
			for m := range b.Messages() {
				seen[string(m.Data())]++
			}
		}
		for _, name := range clients {
			for i := range 20 {
				if id := fmt.Sprint(name, i); seen[id] != 1 {
					return fmt.Errorf("%s was acknowledged, and is there %d times: %v", id, seen[id], seen)
				}
			}
		}
		return nil
	})
}

// Each acknowledged message is in the stream once, although servers crash and lose power.
func TestJetStream(t *testing.T) {
	rig.Run(t, 2, rig.Service{
		Nodes: nodes, Main: serve, Clients: clients, Client: publish, Check: read, Every: 2 * time.Second, Faults: 30 * time.Second,
	})
}
