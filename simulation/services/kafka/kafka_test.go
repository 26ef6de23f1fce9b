// Package kafka tests franz-go with its kfake, a Kafka of three brokers in one process, on disk.
package kafka

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var clients = []string{"x", "y"}

// serve is the main function of the brokers.
func serve(name, dir string) error {
	here := func(network, addr string) (net.Listener, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return net.Listen(network, name+":"+port)
	}
	c, err := kfake.NewCluster(kfake.Ports(9092, 9093, 9094), kfake.SeedTopics(3, "t"), kfake.DataDir(dir), kfake.SyncWrites(),
		kfake.ListenFn(here))
	if err != nil {
		return err
	}
	defer c.Close()
	select {}
}

var brokers = kgo.SeedBrokers("kafka:9092", "kafka:9093", "kafka:9094")

// produce produces 25 records, each until it is acknowledged.
func produce(name string) error {
	cl, err := kgo.NewClient(brokers, kgo.DefaultProduceTopic("t"), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for i := range 25 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		err := cl.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(name, i))).FirstErr()
		cancel()
		if err != nil {
			return fmt.Errorf("%s%d: %w", name, i, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// consume checks that a group reads all records.
func consume() error {
	cl, err := kgo.NewClient(brokers, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	missing := map[string]bool{}
	for _, name := range clients {
		for i := range 25 {
			missing[fmt.Sprint(name, i)] = true
		}
	}
	for len(missing) > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { delete(missing, string(r.Value)) })
	}
	if len(missing) > 0 {
		return fmt.Errorf("acknowledged, but cannot be read: %v", missing)
	}
	return nil
}

// All acknowledged records can be read, although the brokers crash and lose power.
func TestKafka(t *testing.T) {
	rig.Run(t, 3, rig.Service{
		Nodes: []string{"kafka"}, Main: serve, Clients: clients, Client: produce, Check: consume, Every: time.Second, Faults: 20 * time.Second,
	})
}
