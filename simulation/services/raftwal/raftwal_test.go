// Package raftwal tests a write-ahead log of hashicorp/raft-wal whose disk fails at times. The test of an older version fails: there, an
// append that had failed left its entries in a buffer (https://github.com/hashicorp/raft-wal/pull/32).
package raftwal

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/services/internal/rig"
)

const entries = 20

// write appends entries, and repeats an append that fails. It returns after the log has been opened again.
func write(w *simulation.World) error {
	if err := os.MkdirAll("/data", 0o700); err != nil {
		return err
	}
	log, err := wal.Open("/data")
	if err != nil {
		return err
	}
	w.SetFaults(simulation.Faults{Write: 0.05, Sync: 0.05, MaxSync: 5 * time.Millisecond})
	for i := uint64(1); i <= entries; i++ {
		for k := 0; ; k++ {
			err := log.StoreLog(&raft.Log{Index: i, Data: fmt.Append(nil, "entry ", i)})
			w.Log("append %d: %v", i, err)
			if err == nil {
				break
			}
			if k == 2 {
				return fmt.Errorf("append %d: %w", i, err)
			}
		}
	}
	w.SetFaults(simulation.Faults{})
	if err := log.Close(); err != nil {
		return err
	}
	if log, err = wal.Open("/data"); err != nil {
		return fmt.Errorf("the log cannot be opened again: %w", err)
	}
	for i := uint64(1); i <= entries; i++ {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil || string(l.Data) != fmt.Sprint("entry ", i) {
			return fmt.Errorf("entry %d reads as %q, %w", i, l.Data, err)
		}
	}
	return log.Close()
}

// A log in which all appends have succeeded in the end has all entries.
func TestRaftWAL(t *testing.T) {
	rig.Test(t, 10, simulation.Options{Guests: true}, func(_ context.Context, w *simulation.World) error {
		end := make(chan error)
		w.Node("a").Start(func(context.Context, *simulation.Host) { end <- write(w) })
		return <-end
	})
}

func TestFound(t *testing.T) {
	rig.Found(t, "TestRaftWAL", 10, "append 0: non-monotonic append")
}
