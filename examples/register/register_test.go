package register_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/examples/register"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// start serves s on a node.
func start(ctx context.Context, n *simulation.Node, s *register.Server) error {
	ln, err := n.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	return n.Go(func() { _ = s.Serve(ctx, ln) })
}

// dialer connects from a node to another.
func dialer(from *simulation.Node, to string) register.Dialer {
	return func(ctx context.Context) (net.Conn, error) { return from.Dial(ctx, "tcp", to+":80") }
}

// clients adds 30 in total, from three nodes.
func clients(ctx context.Context, w *simulation.World) error {
	return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		for _, name := range []string{"alice", "bob", "carol"} {
			client := register.Client{Dial: dialer(w.Node(name), "primary")}
			s.Go(w.Node(name), func(ctx context.Context) error {
				for i := range 10 {
					if err := client.Add(ctx, fmt.Sprint(name, i)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
}

// count runs a replicated counter, on a network in which two of a hundred segments break their connection.
func count(forgets bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond, Reset: 0.02})
		primary := &register.Server{Forgets: forgets, Backup: dialer(w.Node("primary"), "backup")}
		backup := &register.Server{Forgets: forgets}
		if err := start(ctx, w.Node("primary"), primary); err != nil {
			return err
		}
		if err := start(ctx, w.Node("backup"), backup); err != nil {
			return err
		}
		if err := clients(ctx, w); err != nil {
			return err
		}
		_ = suspend.Sleep(ctx, time.Minute) // waits for late repetitions
		if primary.Total != 30 || backup.Total != 30 {
			return fmt.Errorf("30 were added, and the servers have counted %d and %d", primary.Total, backup.Total)
		}
		return nil
	}
}

func TestRegister(t *testing.T) {
	simulation.Test(t, count(false), simulation.TestOptions{})
}

// Most seeds find the mistake of the server that forgets. A seed that finds it does so again.
func TestTheBugIsFound(t *testing.T) {
	found := 0
	for seed := uint64(1); seed <= 100; seed++ {
		first := simulation.Run(count(true), simulation.Options{Seed: seed})
		if first.Err == nil {
			continue
		}
		found++
		var trace strings.Builder
		second := simulation.Run(count(true), simulation.Options{Seed: seed, Trace: &trace})
		require.Equal(t, first, second)
		require.Contains(t, trace.String(), "connection reset by peer")
	}
	require.Greater(t, found, 50)
}

// The page quotes the failure of seed 1 and lines of its trace. This test compares them with the output.
func TestThePageQuotesTheTrace(t *testing.T) {
	page, err := os.ReadFile("../../simulation/README.md")
	require.NoError(t, err)
	_, quoted, _ := strings.Cut(string(page), "## A seed that fails")
	quoted, _, _ = strings.Cut(quoted, "\n## ")
	var trace strings.Builder
	report := simulation.Run(count(true), simulation.Options{Seed: 1, Preempt: true, Trace: &trace})
	require.ErrorContains(t, report.Err, "the servers have counted")
	require.Contains(t, quoted, report.Err.Error())
	n := 0
	for line := range strings.Lines(quoted) {
		if at := strings.TrimSpace(line); regexp.MustCompile(`^[0-9.]+m?s  `).MatchString(at) {
			require.Contains(t, trace.String(), at)
			n++
		}
	}
	require.Greater(t, n, 5)
}
