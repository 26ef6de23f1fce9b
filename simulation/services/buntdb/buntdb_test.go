// Package buntdb tests buntdb with a disk that is full at times. The test of an older version fails: there, the part of a command that
// fitted on the disk remained in the file (https://github.com/tidwall/buntdb/issues/71).
package buntdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/buntdb"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/simulation/services/internal/rig"
)

const keys = 10

// serve checks the first *set keys, and sets the keys after them. It repeats what fails.
func serve(w *simulation.World, set *int) error {
	if err := os.MkdirAll("/data", 0o700); err != nil {
		return err
	}
	db, err := buntdb.Open("/data/keys.db")
	if err != nil {
		return fmt.Errorf("the file cannot be opened: %w", err)
	}
	for i := range *set {
		if err := db.View(func(tx *buntdb.Tx) error { _, err := tx.Get(fmt.Sprint(i)); return err }); err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
	}
	for *set < keys {
		time.Sleep(100 * time.Millisecond)
		err := db.Update(func(tx *buntdb.Tx) error {
			_, _, err := tx.Set(fmt.Sprint(*set), strings.Repeat("-", 700), nil)
			return err
		})
		w.Log("key %d: %v", *set, err)
		if err == nil {
			*set++
		}
	}
	return db.Close()
}

// Each key that was set is in the file after crashes, also if the disk was full.
func TestBuntDB(t *testing.T) {
	rig.Test(t, 20, simulation.Options{Guests: true}, func(_ context.Context, w *simulation.World) error {
		set, end := 0, make(chan error)
		boot := func(n *simulation.Node) {
			n.Start(func(context.Context, *simulation.Host) { end <- serve(w, &set) })
		}
		boot(w.Node("a"))
		calm := nemesis.Start(w, nemesis.Options{Nodes: []string{"a"}, Boot: boot, Kinds: nemesis.FullDisk | nemesis.Crash})
		time.Sleep(3 * time.Second)
		calm()
		err := <-end
		w.Node("a").Crash()
		boot(w.Node("a"))
		return errors.Join(err, <-end)
	})
}

func TestFound(t *testing.T) {
	rig.Found(t, "TestBuntDB", 20, "the file cannot be opened")
}
