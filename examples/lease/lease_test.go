package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
)

// borrow asks for the lease until the server grants it, and returns when the lease ends.
func borrow(name string, trusting bool) time.Time {
	for {
		until := time.Now().Add(length)
		resp, err := http.Post("http://server/lease?by="+name, "", nil)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK && (trusting || time.Until(until) > 0) {
				return until
			}
		}
		time.Sleep(time.Second)
	}
}

// alone checks that no two clients have the lease, while the server crashes and the network is partitioned.
func alone(trusting bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.02})
		boot := func(n *simulation.Node) {
			n.Start(func(context.Context, *simulation.Host) { main() })
		}
		boot(w.Node("server"))
		clients := []string{"ann", "bob"}
		nemesis.Start(w, nemesis.Options{Nodes: []string{"server"}, Clients: clients, Boot: boot, Every: 5 * time.Second})
		var holders atomic.Int32
		failed := make(chan error, len(clients))
		for _, name := range clients {
			w.Node(name).Start(func(context.Context, *simulation.Host) {
				for {
					until := borrow(name, trusting)
					w.Log("%s has the lease", name)
					if holders.Add(1) > 1 {
						failed <- fmt.Errorf("%s has the lease, and so has another client", name)
					}
					time.Sleep(time.Until(until))
					holders.Add(-1)
				}
			})
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(3 * time.Minute):
			return nil
		}
	}
}

func TestLease(t *testing.T) {
	simulation.Test(t, alone(false), simulation.TestOptions{Options: simulation.Options{Guests: true}})
}

// TestTrusting shows the failure of clients that trust each answer, however late it is.
func TestTrusting(t *testing.T) {
	if os.Getenv("BRAID_TRUSTING") != "" {
		simulation.Test(t, alone(true), simulation.TestOptions{Options: simulation.Options{Guests: true}})
		return
	}
	c := exec.Command(os.Args[0], "-test.v", "-test.run=^TestTrusting$")
	c.Env = append(os.Environ(), "BRAID_TRUSTING=1", "BRAID_SEEDS=100")
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "has the lease, and so has another client")
	t.Logf("%s", out)
}
