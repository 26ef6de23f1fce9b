package stocktest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/braidgo/braid/simulation"
)

// The tests of programs that use package os need the overlay. BRAID_OVERLAID says whether it is there. Without it they do nothing.

// onDisk runs main with seeds, each twice unless it should fail. A sync of a file keeps its name if keeps is set.
func onDisk(t *testing.T, seeds int, keeps bool, main func(ctx context.Context, w *world) error) {
	if os.Getenv("BRAID_OVERLAID") == "" {
		return
	}
	o := simulation.Options{Guests: true, MaxTime: 24 * time.Hour, KeepsNames: keeps}
	simulation.Test(t, main, simulation.TestOptions{Seeds: seeds, Twice: !fails(), Options: o})
}

// cuts starts the program of a node, and takes its power away, in each round. With kills, every second time is a kill -9 instead. The program acknowledges transactions, which get the numbers 1, 2
// and so on. After each restart the program says how many of them are there: no fewer than were acknowledged, and at most one more.
func cuts(w *world, rounds int, kills bool, program func(first int, there func(n int), acknowledge func(n int)) error) error {
	w.SetFaults(simulation.Faults{MaxSync: 5 * time.Millisecond})
	n, rand := w.Node("db"), w.Rand()
	acknowledged, failed := 0, error(nil)
	for round := range rounds {
		n.Start(func(context.Context, *simulation.Host) {
			err := program(acknowledged+1, func(k int) {
				if k < acknowledged || k > acknowledged+1 {
					failed = fmt.Errorf("%d transactions were acknowledged, and %d are there", acknowledged, k)
				}
				acknowledged = max(k, acknowledged)
			}, func(k int) { acknowledged = k })
			if failed == nil && err != nil {
				failed = fmt.Errorf("round %d: %w", round, err)
			}
		})
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		if failed != nil {
			return failed
		}
		if kills && round%2 == 0 {
			n.Crash()
		} else {
			n.PowerOff()
		}
	}
	if acknowledged < rounds {
		return fmt.Errorf("only %d transactions in %d rounds", acknowledged, rounds)
	}
	return nil
}

// boltDB is a program for cuts, which commits keys from 1 on. With syncs, the program syncs the file that it has opened: the
// bytes that a killed program has written may not be durable.
func boltDB(noSync, syncs bool) func(first int, there func(n int), acknowledge func(n int)) error {
	return func(_ int, there func(n int), acknowledge func(n int)) error {
		if err := os.MkdirAll("/data", 0o700); err != nil {
			return err
		}
		db, err := bbolt.Open("/data/db", 0o600, &bbolt.Options{Timeout: time.Second, NoSync: noSync})
		if err != nil {
			return err
		}
		if syncs {
			if err := db.Sync(); err != nil {
				return err
			}
		}
		last := 0
		err = db.Update(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				return err
			}
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return b.ForEach(func(k, _ []byte) error {
				if last++; int(binary.BigEndian.Uint64(k)) != last {
					return fmt.Errorf("%x instead of %d", k, last)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		there(last)
		for {
			time.Sleep(time.Millisecond)
			last++
			err := db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("b")).Put(binary.BigEndian.AppendUint64(nil, uint64(last)), make([]byte, 300))
			})
			if err != nil {
				return err
			}
			acknowledge(last)
		}
	}
}

// bbolt loses its power 50 times, but never a transaction. Its file is there if a sync of a file keeps the name.
func TestBolt(t *testing.T) {
	onDisk(t, 4, true, func(_ context.Context, w *world) error { return cuts(w, 50, false, boltDB(false, false)) })
}

// A bbolt that is also killed keeps its transactions.
func TestBoltIsKilled(t *testing.T) {
	onDisk(t, 4, true, func(_ context.Context, w *world) error { return cuts(w, 50, true, boltDB(false, true)) })
}

// A bbolt that does not sync loses transactions, and so does a program that never syncs the folder of its file, on a disk that does not keep names.
func TestBoltForgets(t *testing.T) {
	if os.Getenv("BRAID_OVERLAID") == "" {
		return
	}
	for _, name := range []string{"TestBoltWithoutSyncs", "TestBoltWithoutItsName"} {
		line := found(t, name)
		t.Log(name, line)
		require.Regexp(t, "transactions were acknowledged|round [0-9]+: ", line)
	}
}

func TestBoltWithoutSyncs(t *testing.T) {
	if fails() {
		onDisk(t, 300, true, func(_ context.Context, w *world) error { return cuts(w, 50, false, boltDB(true, false)) })
	}
}

func TestBoltWithoutItsName(t *testing.T) {
	if fails() {
		onDisk(t, 300, false, func(_ context.Context, w *world) error { return cuts(w, 50, false, boltDB(false, false)) })
	}
}

// The lock of a bbolt that a kill -9 has ended is free.
func TestBoltIsLocked(t *testing.T) {
	onDisk(t, 1, true, func(_ context.Context, w *world) error {
		n, errs := w.Node("db"), make(chan error, 2)
		open := func(context.Context, *simulation.Host) {
			_, err := bbolt.Open("/db", 0o600, &bbolt.Options{Timeout: time.Second})
			errs <- err
		}
		n.Start(open)
		require.NoError(t, <-errs)
		n.Start(open)
		if err := <-errs; !errors.Is(err, bbolt.ErrTimeout) {
			return fmt.Errorf("a second bbolt has the error %v", err)
		}
		n.Crash()
		n.Start(open)
		return <-errs
	})
}
