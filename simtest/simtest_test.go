// Package simtest runs stock programs as guests of a World, each as its module has it: net/http, grpc-go, go-redis, pgx, hashicorp/raft and
// pebble. Each seed runs twice, and both runs must have the same trace.
//
//	go test .                        20 seeds of each
//	BRAID_SEEDS=1000 go test -v .    more, with seeds per second
package simtest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/simulation"
)

type world = simulation.World

// run runs main as a guest under seeds from 1, each twice if it is to pass.
func run(t *testing.T, seeds int, main func(ctx context.Context, w *world) error) {
	t.Helper()
	simulation.Test(t, simulation.TestOptions{Seeds: seeds, Twice: !fails(), Options: simulation.Options{Guests: true, MaxTime: 24 * time.Hour}}, main)
}

// found runs the test named Fails in processes of their own, which must fail, and returns the line of the first seed that does. A busy machine
// may decide an order, so the line counts that two processes have.
func found(t *testing.T, name string) string {
	seen, lines := map[string]int{}, regexp.MustCompile(`seed \d+: .*`)
	for range 6 {
		c := exec.Command(os.Args[0], "-test.run=^"+name+"$")
		c.Env = append(os.Environ(), "BRAID_FAILS=1", "BRAID_SEEDS=300", "BRAID_RANDOM=1")
		out, err := c.CombinedOutput()
		line := lines.FindString(string(out))
		if err == nil || line == "" {
			t.Fatalf("%v: %s", err, out)
		}
		if seen[line]++; seen[line] == 2 {
			return line
		}
	}
	t.Fatal(seen)
	return ""
}

// fails reports whether this process is one of found.
func fails() bool { return os.Getenv("BRAID_FAILS") != "" }

// all waits for n guests.
func all(n int, errs <-chan error) (err error) {
	for range n {
		if e := <-errs; err == nil {
			err = e
		}
	}
	return err
}
