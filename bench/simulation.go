package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net"
	"sync"
	"time"

	"github.com/braidgo/braid/examples/register"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

const adders, adds = 3, 10

// simulatedSeeds runs n simulations. Each simulation has a server, three clients with ten requests each, connection resets and network
// partitions, and lasts two minutes of virtual time.
func simulatedSeeds(n int) {
	upTo(n, func(seed int) { ok(simulation.Run(simulatedCluster, simulation.Options{Seed: uint64(seed) + 1}).Err) })
}

func simulatedCluster(ctx context.Context, w *simulation.World) error {
	w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.02})
	server, node := new(register.Server), w.Node("server")
	ln := must(node.Listen("tcp", ":80"))
	ok(node.Go(func() { _ = server.Serve(ctx, ln) }))
	all := latch.New(adders)
	for i := range adders {
		name := fmt.Sprint("client", i)
		client := w.Node(name)
		to := register.Client{Dial: func(ctx context.Context) (net.Conn, error) { return client.Dial(ctx, "tcp", "server:80") }}
		ok(client.Go(func() { add(ctx, &to, name); all.CountDown() }))
	}
	ok(w.Go(func() {
		for range 10 {
			_ = suspend.Sleep(ctx, time.Duration(w.Rand().IntN(1000))*time.Millisecond)
			w.Partition([]string{fmt.Sprint("client", w.Rand().IntN(adders))})
			_ = suspend.Sleep(ctx, time.Duration(w.Rand().IntN(3000))*time.Millisecond)
			w.Heal()
		}
	}))
	ok(all.Wait(ctx))
	if server.Total != adders*adds {
		return fmt.Errorf("the server counted %d", server.Total)
	}
	return suspend.Sleep(ctx, 2*time.Minute)
}

func add(ctx context.Context, to *register.Client, name string) {
	upTo(adds, func(i int) { _ = to.Add(ctx, fmt.Sprintf("%s/%d", name, i)) })
	to.Close()
}

// overLoopback runs the same program on goroutines over the loopback interface, without faults. This is the test that a simulation
// replaces. Each connection has its own register.Server.
func overLoopback(n int) {
	for range n {
		b := new(bench)
		addr := onNet(b, func(ctx context.Context, c net.Conn) { new(register.Server).ServeConn(ctx, c) }).String()
		var all sync.WaitGroup
		for i := range adders {
			to := register.Client{Dial: func(context.Context) (net.Conn, error) { return net.Dial("tcp", addr) }}
			all.Go(func() { add(bg, &to, fmt.Sprint("client", i)) })
		}
		all.Wait()
		b.end()
	}
}

// simulatedSteps runs a simulation of n steps, with two tasks that yield.
func simulatedSteps(n int) {
	simulation.Run(func(ctx context.Context, w *simulation.World) error {
		ok(w.Go(func() {
			for {
				suspend.Yield()
			}
		}))
		times(n/2, suspend.Yield)
		return nil
	}, simulation.Options{Seed: 1, MaxSteps: math.MaxInt})
}

// switches pulls n values from an iter.Pull. Each value takes two coroutine switches.
func switches(n int) {
	next, end := iter.Pull(func(yield func(int) bool) {
		for yield(0) {
		}
	})
	defer end()
	times(n, func() { next() })
}
