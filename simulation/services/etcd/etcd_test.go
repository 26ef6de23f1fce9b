// Package etcd tests a cluster of three etcd servers on disk, and its client.
package etcd

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var nodes, clients = []string{"a", "b", "c"}, []string{"x", "y"}

// serve is the main function of a member.
func serve(name, dir string) error {
	ips, err := net.LookupHost(name)
	if err != nil {
		return err
	}
	at := func(host, port string) []url.URL { return []url.URL{{Scheme: "http", Host: host + ":" + port}} }
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = name, dir, "a=http://a:2380,b=http://b:2380,c=http://c:2380"
	c.ListenClientUrls, c.AdvertiseClientUrls = at(ips[0], "2379"), at(name, "2379") // etcd binds to addresses only
	c.ListenPeerUrls, c.AdvertisePeerUrls = at(ips[0], "2380"), at(name, "2380")
	c.SnapshotCount, c.AutoCompactionMode, c.AutoCompactionRetention = 20, "revision", "10"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	return <-e.Err()
}

func connect() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"a:2379", "b:2379", "c:2379"}, DialTimeout: time.Second, Logger: zap.NewNop()})
}

// put puts 20 keys, and keeps a key with a lease of three seconds alive.
func put(name string) error {
	c, err := connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range 20 {
		key := fmt.Sprint(name, i)
		if err := rig.Again(key, func(ctx context.Context) error { _, err := c.Put(ctx, key, key); return err }); err != nil {
			return err
		}
		if err := rig.Again("lease", func(ctx context.Context) error {
			l, err := c.Grant(ctx, 3)
			if err == nil {
				_, err = c.Put(ctx, "leased by "+name, key, clientv3.WithLease(l.ID))
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// check checks that all keys are there, and that those with a lease are gone.
func check() error {
	c, err := connect()
	if err != nil {
		return err
	}
	defer c.Close()
	time.Sleep(10 * time.Second)
	for _, name := range clients {
		for i := range 20 {
			key := fmt.Sprint(name, i)
			if err := rig.Again(key, func(ctx context.Context) error {
				r, err := c.Get(ctx, key)
				if err == nil && (len(r.Kvs) != 1 || string(r.Kvs[0].Value) != key) {
					err = fmt.Errorf("%s was acknowledged, and is now %v", key, r.Kvs)
				}
				return err
			}); err != nil {
				return err
			}
		}
	}
	return rig.Again("leases", func(ctx context.Context) error {
		r, err := c.Get(ctx, "leased", clientv3.WithPrefix())
		if err == nil && r.Count != 0 {
			err = fmt.Errorf("%d keys outlive their leases", r.Count)
		}
		return err
	})
}

// All acknowledged keys are there, and no key outlives its lease, although members crash and lose power.
func TestEtcd(t *testing.T) {
	rig.Run(t, 2, rig.Service{
		Nodes: nodes, Main: serve, Clients: clients, Client: put, Check: check, Every: 2 * time.Second, Faults: 30 * time.Second,
	})
}
