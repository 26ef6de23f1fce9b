package simulation_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/simulation"
	"github.com/braidgo/braid/examples/register"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// cluster is a server, three clients with ten requests each, resets and partitions, in two minutes of virtual time.
func cluster(once bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.02})
		server := register.Server{Once: once}
		node := w.Node("server")
		ln, err := node.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		_ = node.Go(func() { _ = server.Serve(ln) })
		all := latch.New(3)
		for i := range 3 {
			name := fmt.Sprintf("client%d", i)
			client := w.Node(name)
			_ = client.Go(func() {
				defer all.CountDown()
				err := register.Add(ctx, name, 10, func(ctx context.Context) (net.Conn, error) { return client.Dial(ctx, "tcp", "server:80") })
				if err != nil {
					w.Log("%v", err)
				}
			})
		}
		_ = w.Go(func() {
			for range 10 {
				_ = suspend.Sleep(ctx, time.Duration(w.Rand().IntN(1000))*time.Millisecond)
				w.Partition([]string{fmt.Sprintf("client%d", w.Rand().IntN(3))})
				_ = suspend.Sleep(ctx, time.Duration(w.Rand().IntN(3000))*time.Millisecond)
				w.Heal()
			}
		})
		if err := all.Wait(ctx); err != nil {
			return err
		}
		if err := suspend.Sleep(ctx, 2*time.Minute-suspend.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))); err != nil {
			return err
		}
		if got := server.Total(); got != 30 {
			return fmt.Errorf("30 were added, and the counter is %d", got)
		}
		return nil
	}
}

func TestOneHash(t *testing.T) {
	var hash uint64
	found, steps := 0, 0
	begin := time.Now()
	const seeds = 1000
	for seed := uint64(1); seed <= seeds; seed++ {
		r := simulation.Run(simulation.Options{Seed: seed}, cluster(false))
		hash = hash*31 + r.Hash
		steps += r.Steps
		if r.Err != nil {
			found++
			if found < 2 {
				t.Log(r.Err)
			}
		}
	}
	t.Logf("%x %d %d steps %v", hash, found, steps/seeds, time.Since(begin)/seeds)
}

func BenchmarkCluster(b *testing.B) {
	for i := range b.N {
		simulation.Run(simulation.Options{Seed: uint64(i + 1)}, cluster(false))
	}
}
