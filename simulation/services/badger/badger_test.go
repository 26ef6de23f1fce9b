// Package badger tests badger on disk.
package badger

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var nodes, clients = []string{"a"}, []string{"x", "y"}

// serve is the main function of a set of ids in badger, with values that go to the value log.
func serve(name, dir string) error {
	o := badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil).WithValueThreshold(1 << 10)
	o = o.WithMemTableSize(1 << 16).WithValueLogFileSize(1 << 20).WithNumMemtables(2).WithNumCompactors(2).WithBlockCacheSize(1 << 20)
	db, err := badger.Open(o)
	if err != nil {
		return err
	}
	go func() {
		for range time.Tick(2 * time.Second) {
			_ = db.RunValueLogGC(0.5)
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{id}", func(rw http.ResponseWriter, q *http.Request) {
		id := q.PathValue("id")
		value := bytes.Repeat([]byte(id), 1+len(id)%3*500)
		if err := db.Update(func(tx *badger.Txn) error {
			return errors.Join(tx.Set([]byte(id), value), tx.Set([]byte("twin of "+id), value))
		}); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /", func(rw http.ResponseWriter, _ *http.Request) {
		if err := db.View(func(tx *badger.Txn) error {
			it := tx.NewIterator(badger.DefaultIteratorOptions)
			defer it.Close()
			for it.Seek([]byte("x")); it.Valid(); it.Next() {
				id := it.Item().KeyCopy(nil)
				twin, err := tx.Get(append([]byte("twin of "), id...))
				if err != nil {
					return err
				}
				a, err := it.Item().ValueCopy(nil)
				b, err2 := twin.ValueCopy(nil)
				if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) || !bytes.HasPrefix(a, id) {
					return fmt.Errorf("%s is %.20q, and its twin %.20q: %w", id, a, b, err)
				}
				fmt.Fprintf(rw, "%s\n", id)
			}
			return nil
		}); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	})
	return http.ListenAndServe(name+":80", mux)
}

// No acknowledged id is lost if badger is killed. After a loss of power badger may not open: it truncates the file of an old memtable before
// it removes the name, and an empty file is an error.
func TestBadger(t *testing.T) {
	rig.Run(t, 3, rig.Service{
		Nodes: nodes, Main: serve, Clients: clients, Client: func(name string) error { return rig.Post(nodes, name, 40) },
		Check: func() error { return rig.All(nodes, clients, 40) },
		Kinds: nemesis.Partition | nemesis.OneWay | nemesis.Cut | nemesis.Crash | nemesis.SlowDisk, Faults: 5 * time.Second,
	})
}
