// Package bbolt tests a bank in a bbolt file.
package bbolt

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var nodes, clients = []string{"a"}, []string{"x", "y"}

const accounts, each = 10, 100

// serve is the main function of the bank. A POST moves money and records its id, in one transaction.
func serve(name, dir string) error {
	db, err := bbolt.Open(filepath.Join(dir, "bank.db"), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("ids"))
		if err != nil {
			return err
		}
		bank, err := tx.CreateBucketIfNotExists([]byte("bank"))
		for i := 0; i < accounts && err == nil && bank.Get([]byte{byte(i)}) == nil; i++ {
			err = bank.Put([]byte{byte(i)}, binary.BigEndian.AppendUint64(nil, each))
		}
		return err
	}); err != nil {
		return err
	}
	if err := db.View(audit); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{id}", func(rw http.ResponseWriter, q *http.Request) {
		if err := db.Update(func(tx *bbolt.Tx) error { return move(tx, q.PathValue("id")) }); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /", func(rw http.ResponseWriter, _ *http.Request) {
		if err := db.View(func(tx *bbolt.Tx) error {
			if err := audit(tx); err != nil {
				return err
			}
			return tx.Bucket([]byte("ids")).ForEach(func(id, _ []byte) error { _, err := fmt.Fprintf(rw, "%s\n", id); return err })
		}); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	})
	return http.ListenAndServe(name+":80", mux)
}

func move(tx *bbolt.Tx, id string) error {
	bank := tx.Bucket([]byte("bank"))
	add := func(i int, n uint64) error {
		key := []byte{byte(i)}
		return bank.Put(key, binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(bank.Get(key))+n))
	}
	from, to := rand.IntN(accounts), rand.IntN(accounts)
	if err := add(from, ^uint64(0)); err != nil {
		return err
	}
	if err := add(to, 1); err != nil {
		return err
	}
	return tx.Bucket([]byte("ids")).Put([]byte(id), make([]byte, 1000))
}

// audit checks the sum of all accounts, and the pages of the file.
func audit(tx *bbolt.Tx) error {
	sum := uint64(0)
	_ = tx.Bucket([]byte("bank")).ForEach(func(_, v []byte) error { sum += binary.BigEndian.Uint64(v); return nil })
	if sum != accounts*each {
		return fmt.Errorf("the bank has %d", sum)
	}
	var first error
	for err := range tx.Check() {
		if first == nil {
			first = err
		}
	}
	return first
}

// No acknowledged transfer is lost, no money either, and the file is sound after each crash.
func TestBbolt(t *testing.T) {
	rig.Run(t, 5, rig.Service{
		Nodes: nodes, Main: serve, Clients: clients, Client: func(name string) error { return rig.Post(nodes, name, 30) },
		Check: func() error { return rig.All(nodes, clients, 30) }, Faults: 5 * time.Second,
	})
}
