package stocktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
)

// transfers commits commands on three nodes whose links fail, while leaders transfer their leadership. After the faults, every
// leader must accept commands. However, a leader that loses its leadership during a transfer keeps the mark of the transfer
// permanently. When it leads again, it refuses all commands: https://github.com/hashicorp/raft/issues/696.
func transfers(_ context.Context, w *world) error {
	w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 40 * time.Millisecond, Tail: 0.05, Reset: 0.001, MaxSync: 5 * time.Millisecond})
	c := &cluster{w: w, applied: map[uint64]string{}, leaders: map[uint64]string{}, members: map[string]member{}}
	for _, n := range names {
		c.start(w.Node(n))
	}
	calm := nemesis.Start(w, nemesis.Options{Nodes: names, Every: 500 * time.Millisecond, Kinds: nemesis.Partition | nemesis.OneWay | nemesis.Cut})
	draw := w.Rand()
	for i := range 600 {
		if m := c.leader(); m.Raft != nil {
			m.Apply(fmt.Append(nil, "x", i), time.Second)
			if draw.IntN(12) == 0 {
				if to := names[draw.IntN(len(names))]; to != m.fsm.name {
					w.Log("%s transfers to %s", m.fsm.name, to)
					go func() {
						err := m.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(to+":7000")).Error()
						w.Log("%s has transferred to %s: %v", m.fsm.name, to, err)
					}()
				}
			}
		}
		time.Sleep(time.Duration(20+draw.IntN(80)) * time.Millisecond)
		if err := c.failed(); err != nil {
			return err
		}
	}
	calm()
	time.Sleep(20 * time.Second)
	refused := 0
	for i := range 30 {
		if err := c.failed(); err != nil {
			return err
		}
		if m := c.leader(); m.Raft != nil {
			err := m.Apply(fmt.Append(nil, "calm", i), time.Second).Error()
			if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
				if refused++; refused == 10 {
					return fmt.Errorf("a leader refuses every command, long after the faults: %w", err)
				}
			}
		}
		time.Sleep(time.Second)
	}
	for _, n := range names {
		go c.member(n).Shutdown()
	}
	return nil
}

// leader returns a node that leads, or the zero member.
func (c *cluster) leader() member {
	for _, n := range names {
		if m := c.member(n); m.Raft != nil && m.State() == raft.Leader {
			return m
		}
	}
	return member{}
}

// TestTransferFails fails. TestTransferIsLost runs it in another process. Seeds 1 to 53 pass, so it skips most of them.
func TestTransferFails(t *testing.T) {
	if fails() {
		simulation.Test(t, transfers, simulation.TestOptions{InProcess: true, Seeds: 100, Options: simulation.Options{Seed: 51, Guests: true, MaxTime: 24 * time.Hour}})
	}
}

// The stock raft never ends a lost leadership transfer.
func TestTransferIsLost(t *testing.T) {
	if line := found(t, "TestTransferFails"); !strings.Contains(line, "a leader refuses every command") {
		t.Fatal(line)
	}
}
