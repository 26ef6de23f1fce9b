package simulation_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/linear"
	"github.com/stretchr/testify/require"
)

// counted is the model of a counter whose "add" returns the number before the addition.
var counted = linear.Model[int, string, int]{
	Step: func(n int, op string, out int) (after int, possible bool) { return n + 1, out == n },
	Lost: func(n int, op string) (after int) { return n + 1 },
}

// counts serves a counter.
func counts(ln net.Listener) {
	n := byte(0)
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_ = suspend.Here().Go(func() {
			defer c.Close()
			for op := make([]byte, 1); ; n++ {
				if _, err := c.Read(op); err != nil {
					return
				}
				if _, err := c.Write([]byte{n}); err != nil {
					n++
					return
				}
			}
		})
	}
}

// add sends one request to add. It may be counted even if it fails.
func add(ctx context.Context, n *simulation.Node) (int, error) {
	c, err := n.Dial(ctx, "tcp", "server:80")
	if err != nil {
		return 0, err
	}
	defer c.Close()
	p := []byte{'a'}
	if _, err := c.Write(p); err != nil {
		return 0, err
	}
	_ = c.SetReadDeadline(suspend.Now().Add(time.Second))
	_, err = c.Read(p)
	return int(p[0]), err
}

// history records what three clients see of the counter, over a network that breaks connections. A client gives up, or repeats an
// addition that may have been counted already.
func history(m *linear.Model[int, string, int], repeats bool) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Reset: 0.1})
		server, h := w.Node("server"), m.New()
		ln, err := server.Listen("tcp", ":80")
		if err == nil {
			err = server.Go(func() { counts(ln) })
		}
		if err != nil {
			return err
		}
		if err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for i := range 3 {
				n := w.Node(fmt.Sprint("client", i))
				s.Go(n, func(ctx context.Context) error {
					for range 4 {
						_, _ = h.Do(i, "add", func() (int, error) {
							out, err := add(ctx, n)
							for repeats && err != nil {
								out, err = add(ctx, n)
							}
							return out, err
						})
					}
					return nil
				})
			}
			return nil
		}); err != nil {
			return err
		}
		return h.Check()
	}
}

// The history of a World is that of a correct counter, if operations without a result count as lost.
func TestHistory(t *testing.T) {
	failed := func(m *linear.Model[int, string, int], repeats bool) (n int) {
		for seed := range uint64(50) {
			if simulation.Run(history(m, repeats), simulation.Options{Seed: seed + 1}).Err != nil {
				n++
			}
		}
		return n
	}
	require.Zero(t, failed(&counted, false))
	require.NotZero(t, failed(&counted, true), "an addition is counted twice")
	require.NotZero(t, failed(&linear.Model[int, string, int]{Step: counted.Step}, false), "a failed addition was counted")
}

// The addition of a client that has crashed may have been counted.
func TestHistoryOfACrash(t *testing.T) {
	err := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n, h, client := 0, counted.New(), w.Node("client")
		_ = client.Go(func() {
			_, _ = h.Do(1, "add", func() (int, error) { n++; return 0, suspend.Sleep(ctx, time.Hour) })
		})
		_ = suspend.Sleep(ctx, time.Second)
		client.Crash()
		_, _ = h.Do(2, "add", func() (int, error) { return n, nil })
		return h.Check()
	}, simulation.Options{Seed: 1}).Err
	require.NoError(t, err)
}
