// Package rig runs a service, as it is, in a World: its nodes crash and lose power while clients use it, and links fail.
//
//	go test ./...                     a few seeds of each service
//	BRAID_SEEDS=200 go test ./raft    more
//	BRAID_FIRST=201 go test ./raft    from another seed on
//	BRAID_QUIET=1 go test ./raft      without faults
package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
)

// A Service has a main function for each node and for each client. They use package net and package os.
type Service struct {
	Nodes   []string
	Main    func(name, dir string) error // runs at each boot of a node, and has failed if it returns
	Clients []string
	Client  func(name string) error
	Check   func() error // runs on the first client after all clients, without faults

	Strict bool          // a sync of a file does not keep its name, unlike on ext4 and XFS
	Kinds  nemesis.Kind  // 0 means all kinds
	Every  time.Duration // see nemesis.Options
	Faults time.Duration // when the faults end
}

// Run runs s with n seeds. Each runs twice.
func Run(t *testing.T, n int, s Service) {
	t.Helper()
	Test(t, n, simulation.Options{MaxTime: time.Hour, KeepsNames: !s.Strict}, func(_ context.Context, w *simulation.World) error { return s.run(w) })
}

// Test runs main, which is a guest, with n seeds. Each runs twice.
func Test(t *testing.T, n int, o simulation.Options, main func(ctx context.Context, w *simulation.World) error) {
	t.Helper()
	begun := processor.UsedWithChildren()
	o.Guests = true
	o.Seed, _ = strconv.ParseUint(os.Getenv("BRAID_FIRST"), 10, 64)
	simulation.Test(t, main, simulation.TestOptions{Seeds: n, Twice: true, Options: o})
	t.Logf("%.1f s of processor", (processor.UsedWithChildren() - begun).Seconds())
}

func (s Service) run(w *simulation.World) error {
	ends := make(chan error, len(s.Clients)+1)
	boot := func(n *simulation.Node) {
		n.Start(func(context.Context, *simulation.Host) {
			ends <- fmt.Errorf("main of %s ended: %w", n.Name(), s.main(n.Name(), "/data"))
		})
	}
	for _, name := range s.Nodes {
		boot(w.Node(name))
	}
	if os.Getenv("BRAID_QUIET") == "" {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Reset: 0.001, MaxSync: 5 * time.Millisecond})
		calm := nemesis.Start(w, nemesis.Options{Nodes: s.Nodes, Clients: s.Clients, Boot: boot, Every: s.Every, Kinds: s.Kinds})
		go func() { time.Sleep(s.Faults); calm() }()
	}
	for _, name := range s.Clients {
		w.Node(name).Start(func(context.Context, *simulation.Host) { ends <- s.Client(name) })
	}
	for range s.Clients {
		if err := <-ends; err != nil {
			return err
		}
	}
	time.Sleep(s.Faults) // the faults are over
	w.Node(s.Clients[0]).Start(func(context.Context, *simulation.Host) { ends <- s.Check() })
	return <-ends
}

// main runs Main with a folder that a crash leaves there.
func (s Service) main(name, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if err := parent.Sync(); err != nil {
		return err
	}
	_ = parent.Close()
	return s.Main(name, dir)
}
