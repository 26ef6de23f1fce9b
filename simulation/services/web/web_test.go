// Package web tests a plain service: http.ListenAndServe, a file and a ticker.
package web

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

// serve is the main function of a set of ids. A POST adds its id to the file "log". Once a second the set is written to a new file "ids",
// and the log begins again.
func serve(addr, dir string) error {
	ids := map[string]bool{}
	for _, name := range []string{"ids", "log"} {
		if f, err := os.Open(filepath.Join(dir, name)); err == nil {
			for s := bufio.NewScanner(f); s.Scan(); {
				ids[s.Text()] = true
			}
			_ = f.Close()
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	var mu sync.Mutex
	go func() {
		for range time.Tick(time.Second) {
			mu.Lock()
			if err := replace(dir, ids); err == nil {
				_ = log.Truncate(0)
			}
			mu.Unlock()
		}
	}()
	http.HandleFunc("POST /{id}", func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Fprintf(log, "\n%s\n", r.PathValue("id")); err != nil {
			http.Error(rw, err.Error(), 500)
		} else if err := log.Sync(); err != nil {
			http.Error(rw, err.Error(), 500)
		} else {
			ids[r.PathValue("id")] = true
		}
	})
	http.HandleFunc("GET /", func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for id := range ids {
			fmt.Fprintln(rw, id)
		}
	})
	return http.ListenAndServe(addr, nil)
}

// replace replaces the file "ids".
func replace(dir string, ids map[string]bool) error {
	f, err := os.CreateTemp(dir, "new")
	if err != nil {
		return err
	}
	for id := range ids {
		fmt.Fprintln(f, id)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, "ids")); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

var clients = []string{"a", "b", "c"}

// At the end, the set contains each acknowledged id.
func TestWeb(t *testing.T) {
	nodes := []string{"server"}
	rig.Run(t, 5, rig.Service{
		Nodes: nodes, Main: func(name, dir string) error { return serve(name+":80", dir) },
		Clients: clients, Client: func(name string) error { return rig.Post(nodes, name, 20) },
		Check: func() error { return rig.All(nodes, clients, 20) }, Strict: true, Faults: 5 * time.Second,
	})
}
