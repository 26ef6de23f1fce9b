// Package stocktest runs unchanged stock programs as guests of a World: net/http, grpc-go, go-redis, pgx, hashicorp/raft and pebble. With
// the overlay, bbolt and badger run on disk. Each seed runs twice, and both runs must have the same trace.
//
//	go test .                        20 seeds of each, 5 where each run is a process
//	BRAID_SEEDS=1000 go test -v .    more, with seeds per second
//	BRAID_FIRST=1001 go test .       from another seed on
//	BRAID_SUMS=x go test -run X .    writes into file x a sum of the trace of each seed of a test, to compare processes with BRAID_RANDOM=1
//
// With the overlay of level C: BRAID_OVERLAID=stocktest go test ./simulation/overlay
package stocktest

import (
	"bytes"
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/simulation"
)

type world = simulation.World

// run runs main as a guest in this process, with the seeds from 1 on, each twice if it should pass.
func run(t *testing.T, seeds int, main func(ctx context.Context, w *world) error) {
	t.Helper()
	perform(t, seeds, main, true)
}

// apart is run with a process for each run.
func apart(t *testing.T, seeds int, main func(ctx context.Context, w *world) error) {
	t.Helper()
	perform(t, seeds, main, false)
}

func perform(t *testing.T, seeds int, main func(ctx context.Context, w *world) error, inProcess bool) {
	t.Helper()
	first, _ := strconv.ParseUint(os.Getenv("BRAID_FIRST"), 10, 64)
	o := simulation.Options{Seed: first, Guests: true, MaxTime: 24 * time.Hour}
	if name := os.Getenv("BRAID_SUMS"); name != "" {
		s := &sums{Hash64: fnv.New64a()}
		o.Trace = s
		test := main
		main = func(ctx context.Context, w *world) error { s.startSeed(w.Seed()); return test(ctx, w) }
		defer func() {
			s.startSeed(0)
			if err := os.WriteFile(name, s.text.Bytes(), 0o600); err != nil {
				t.Error(err)
			}
		}()
	}
	begun := processor.Used()
	simulation.Test(t, main, simulation.TestOptions{InProcess: inProcess || o.Trace != nil, Seeds: seeds, Twice: !fails(), Options: o})
	t.Logf("%.1f s of processor", (processor.Used() - begun).Seconds())
}

// sums holds the sums of the traces. Only the first of two runs of a seed has one.
type sums struct {
	hash.Hash64
	seed uint64
	text bytes.Buffer
}

func (s *sums) startSeed(seed uint64) {
	if s.seed != seed {
		if s.seed != 0 {
			fmt.Fprintf(&s.text, "%d %016x\n", s.seed, s.Sum64())
		}
		s.Reset()
		s.seed = seed
	}
}

// found runs the named test in other processes, where it must fail, and returns the line of the first seed that fails. A busy
// machine may decide an order, so a line counts only if two processes have it.
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

// fails reports whether found has started this process.
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
