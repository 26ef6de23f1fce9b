package stocktest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// badgerDB is a program for cuts, which commits keys from 1 on. badger maps its logs into memory, and makes them durable by
// msync. The program first removes logs of length 0, which have no entries.
func badgerDB(syncs bool) func(first int, there func(n int), acknowledge func(n int)) error {
	return func(_ int, there func(n int), acknowledge func(n int)) error {
		if err := os.MkdirAll("/data", 0o700); err != nil {
			return err
		}
		logs, _ := filepath.Glob("/data/badger/*.mem")
		more, _ := filepath.Glob("/data/badger/*.vlog")
		for _, name := range append(logs, more...) {
			if info, err := os.Stat(name); err == nil && info.Size() == 0 {
				_ = os.Remove(name)
			}
		}
		o := badger.DefaultOptions("/data/badger").WithSyncWrites(syncs).WithLogger(nil).WithMetricsEnabled(false)
		db, err := badger.Open(o.WithMemTableSize(1 << 20).WithValueLogFileSize(4 << 20).WithNumCompactors(2).WithValueThreshold(1 << 10))
		if err != nil {
			return err
		}
		last := 0
		err = db.View(func(tx *badger.Txn) error {
			all := tx.NewIterator(badger.DefaultIteratorOptions)
			defer all.Close()
			for all.Rewind(); all.Valid(); all.Next() {
				if last++; string(all.Item().Key()) != fmt.Sprintf("%08d", last) {
					return fmt.Errorf("%s instead of %d", all.Item().Key(), last)
				}
				if err := all.Item().Value(func([]byte) error { return nil }); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		there(last)
		for {
			time.Sleep(time.Millisecond)
			last++
			err := db.Update(func(tx *badger.Txn) error { return tx.Set(fmt.Appendf(nil, "%08d", last), make([]byte, 300)) })
			if err != nil {
				return err
			}
			acknowledge(last)
		}
	}
}

// badger on disk loses its power, but never a transaction.
func TestBadger(t *testing.T) {
	onDisk(t, 2, true, func(_ context.Context, w *world) error { return cuts(w, 10, true, badgerDB(true)) })
}

// A badger that does not sync loses transactions.
func TestBadgerForgets(t *testing.T) {
	if os.Getenv("BRAID_OVERLAID") != "" {
		require.Contains(t, found(t, "TestBadgerWithoutSyncs"), "transactions were acknowledged")
	}
}

func TestBadgerWithoutSyncs(t *testing.T) {
	if fails() {
		onDisk(t, 300, true, func(_ context.Context, w *world) error { return cuts(w, 10, true, badgerDB(false)) })
	}
}
