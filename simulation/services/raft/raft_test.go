// Package raft tests hashicorp/raft with its TCP transport, raft-boltdb and snapshots in files, behind HTTP.
package raft

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var nodes, clients = []string{"a", "b", "c"}, []string{"x", "y"}

// A set is an FSM of ids.
type set struct {
	mu  sync.Mutex
	IDs []string
}

func (s *set) Apply(l *raft.Log) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.IDs = append(s.IDs, string(l.Data))
	return nil
}

func (s *set) Snapshot() (raft.FSMSnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &set{IDs: append([]string(nil), s.IDs...)}, nil
}

func (s *set) Restore(r io.ReadCloser) error { return json.NewDecoder(r).Decode(s) }
func (s *set) Release()                      {}
func (s *set) Persist(k raft.SnapshotSink) error {
	if err := json.NewEncoder(k).Encode(s); err != nil {
		_ = k.Cancel()
		return err
	}
	return k.Close()
}

// serve is the main function of a node. A POST adds an id, and a GET shows all, if the node leads.
func serve(name, dir string) error {
	store, err := raftboltdb.NewBoltStore(filepath.Join(dir, "raft.db"))
	if err != nil {
		return err
	}
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(name), hclog.NewNullLogger()
	conf.SnapshotThreshold, conf.SnapshotInterval, conf.TrailingLogs = 20, 2*time.Second, 10
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, conf.Logger)
	if err != nil {
		return err
	}
	trans, err := raft.NewTCPTransportWithLogger(name+":7000", nil, 3, time.Second, conf.Logger)
	if err != nil {
		return err
	}
	if was, err := raft.HasExistingState(store, store, snaps); err != nil {
		return err
	} else if !was {
		var all raft.Configuration
		for _, n := range nodes {
			all.Servers = append(all.Servers, raft.Server{ID: raft.ServerID(n), Address: raft.ServerAddress(n + ":7000")})
		}
		if err := raft.BootstrapCluster(conf, store, store, snaps, trans, all); err != nil {
			return err
		}
	}
	ids := &set{}
	r, err := raft.NewRaft(conf, ids, store, store, snaps, trans)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{id}", func(rw http.ResponseWriter, q *http.Request) {
		if err := r.Apply([]byte(q.PathValue("id")), time.Second).Error(); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /", func(rw http.ResponseWriter, _ *http.Request) {
		if err := r.Barrier(time.Second).Error(); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
			return
		}
		ids.mu.Lock()
		defer ids.mu.Unlock()
		for _, id := range ids.IDs {
			fmt.Fprintln(rw, id)
		}
	})
	return http.ListenAndServe(name+":80", mux)
}

// No acknowledged id is lost.
func TestRaft(t *testing.T) {
	rig.Run(t, 3, rig.Service{
		Nodes: nodes, Main: serve, Clients: clients, Client: func(name string) error { return rig.Post(nodes, name, 30) },
		Check: func() error { return rig.All(nodes, clients, 30) }, Every: time.Second, Faults: 20 * time.Second,
	})
}
