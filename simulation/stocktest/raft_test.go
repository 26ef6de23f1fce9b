package stocktest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
	"github.com/braidgo/braid/simulation/nemesis"
)

// A store is a raft.LogStore and a raft.StableStore in a file: records with a checksum, each synced.
type store struct {
	mu      sync.Mutex
	f       disk.File
	off     int64
	logs    map[uint64]*raft.Log
	lo, hi  uint64
	values  map[string][]byte
	forgets bool // the mistake: the term and the vote are kept only in memory
}

type record struct {
	Logs     []*raft.Log
	Min, Max uint64 // the range of deleted entries
	Key      string
	Value    []byte
}

func openStore(fs disk.FS, forgets bool) (*store, error) {
	f, err := fs.Open("store")
	if err != nil {
		if f, err = fs.Create("store"); err == nil {
			err = fs.Sync()
		}
	}
	s := &store{f: f, logs: map[uint64]*raft.Log{}, values: map[string][]byte{}, forgets: forgets}
	for err == nil {
		var head [8]byte
		if _, err := f.ReadAt(head[:], s.off); err != nil {
			break
		}
		text := make([]byte, min(binary.LittleEndian.Uint32(head[:]), 1<<20))
		var r record
		if n, _ := f.ReadAt(text, s.off+8); n < len(text) || crc32.ChecksumIEEE(text) != binary.LittleEndian.Uint32(head[4:]) || json.Unmarshal(text, &r) != nil {
			break // a crash has torn this record
		}
		s.apply(&r)
		s.off += 8 + int64(len(text))
	}
	if err != nil {
		return nil, err
	}
	return s, f.Truncate(s.off)
}

func (s *store) apply(r *record) {
	for _, l := range r.Logs {
		if s.lo == 0 {
			s.lo = l.Index
		}
		s.logs[l.Index], s.hi = l, max(s.hi, l.Index)
	}
	if r.Max > 0 {
		for i := r.Min; i <= r.Max; i++ {
			delete(s.logs, i)
		}
		if r.Min <= s.lo {
			s.lo = r.Max + 1
		}
		if r.Max >= s.hi {
			s.hi = r.Min - 1
		}
		if s.lo > s.hi {
			s.lo, s.hi = 0, 0
		}
	}
	if r.Key != "" {
		s.values[r.Key] = r.Value
	}
}

func (s *store) put(r *record) error {
	s.mu.Lock()
	defer s.mu.Unlock() // unlocks after the sync, like many stores
	if s.forgets && r.Key != "" {
		s.apply(r)
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p := append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), crc32.ChecksumIEEE(text)), text...)
	if _, err := s.f.WriteAt(p, s.off); err != nil {
		return err
	}
	s.off += int64(len(p))
	if err := s.f.Sync(); err != nil {
		return err
	}
	s.apply(r)
	return nil
}

func (s *store) GetLog(i uint64, l *raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[i] == nil {
		return raft.ErrLogNotFound
	}
	*l = *s.logs[i]
	return nil
}

func (s *store) Get(k []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.values[string(k)]; v != nil {
		return v, nil
	}
	return nil, errors.New("not found")
}

func (s *store) GetUint64(k []byte) (uint64, error) {
	v, err := s.Get(k)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

func (s *store) FirstIndex() (uint64, error)       { s.mu.Lock(); defer s.mu.Unlock(); return s.lo, nil }
func (s *store) LastIndex() (uint64, error)        { s.mu.Lock(); defer s.mu.Unlock(); return s.hi, nil }
func (s *store) StoreLog(l *raft.Log) error        { return s.put(&record{Logs: []*raft.Log{l}}) }
func (s *store) StoreLogs(ls []*raft.Log) error    { return s.put(&record{Logs: ls}) }
func (s *store) DeleteRange(min, max uint64) error { return s.put(&record{Min: min, Max: max}) }
func (s *store) Set(k, v []byte) error             { return s.put(&record{Key: string(k), Value: v}) }
func (s *store) SetUint64(k []byte, v uint64) error {
	return s.Set(k, binary.BigEndian.AppendUint64(nil, v))
}

// A stream is a raft.StreamLayer.
type stream struct {
	net.Listener
	h *simulation.Host
}

func (s stream) Dial(a raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.h.Dial(ctx, "tcp", string(a))
}

// A cluster has three nodes, and records their history.
type cluster struct {
	w       *world
	forgets bool

	mu      sync.Mutex
	applied map[uint64]string // by index
	leaders map[uint64]string // by term
	members map[string]member
	err     error // the first violation of safety
}

type member struct {
	*raft.Raft
	fsm *fsm
}

func (c *cluster) wrong(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// An fsm holds the commands that were applied on a node.
type fsm struct {
	c    *cluster
	name string
	has  map[string]bool
}

func (f *fsm) Apply(l *raft.Log) any {
	command := fmt.Sprintf("%s of term %d", l.Data, l.Term)
	f.c.w.Log("%s applies %d: %s", f.name, l.Index, command)
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if was := f.c.applied[l.Index]; was != "" && was != command {
		f.c.wrong("%s applies %s at index %d, and another has applied %s", f.name, command, l.Index, was)
	}
	f.c.applied[l.Index], f.has[string(l.Data)] = command, true
	return nil
}

func (f *fsm) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("none") }
func (f *fsm) Restore(io.ReadCloser) error         { return errors.New("none") }

var names = []string{"a", "b", "c"}

// boot starts raft on a node.
func (c *cluster) boot(ctx context.Context, h *simulation.Host) error {
	s, err := openStore(h.FS(), c.forgets)
	if err != nil {
		return err
	}
	ln, err := h.Listen("tcp", ":7000")
	if err != nil {
		return err
	}
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger, conf.PreVoteDisabled = raft.ServerID(h.Name()), hclog.NewNullLogger(), true
	tr, snapshots := raft.NewNetworkTransportWithLogger(stream{ln, h}, 3, time.Second, conf.Logger), raft.NewDiscardSnapshotStore()
	if was, err := raft.HasExistingState(s, s, snapshots); err != nil {
		return err
	} else if !was {
		var servers raft.Configuration
		for _, n := range names {
			servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(n), Address: raft.ServerAddress(n + ":7000")})
		}
		if err := raft.BootstrapCluster(conf, s, s, snapshots, tr, servers); err != nil {
			return err
		}
	}
	f := &fsm{c, h.Name(), map[string]bool{}}
	r, err := raft.NewRaft(conf, f, s, s, snapshots, tr)
	if err != nil {
		return err
	}
	states := make(chan raft.Observation, 100)
	r.RegisterObserver(raft.NewObserver(states, false, func(o *raft.Observation) bool { _, ok := o.Data.(raft.RaftState); return ok }))
	go func() {
		for {
			select {
			case <-states:
			case <-ctx.Done():
				return
			}
			if term := r.CurrentTerm(); r.State() == raft.Leader { // the state is read after the term, because it changes first
				c.w.Log("%s leads term %d", f.name, term)
				c.mu.Lock()
				if was := c.leaders[term]; was != "" && was != f.name {
					c.wrong("term %d has two leaders, %s and %s", term, was, f.name)
				}
				c.leaders[term] = f.name
				c.mu.Unlock()
			}
		}
	}()
	c.mu.Lock()
	c.members[f.name] = member{r, f}
	c.mu.Unlock()
	<-ctx.Done() // after a crash
	return r.Shutdown().Error()
}

// start boots a node.
func (c *cluster) start(n *simulation.Node) {
	n.Start(func(ctx context.Context, h *simulation.Host) {
		if err := c.boot(ctx, h); ctx.Err() == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.wrong("%s does not begin: %v", h.Name(), err)
		}
	})
}

func (c *cluster) member(name string) member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[name]
}

func (c *cluster) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// commit applies a command, until a leader acknowledges it.
func (c *cluster) commit(command string) error {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := c.failed(); err != nil {
			return err
		}
		for _, n := range names {
			if m := c.member(n); m.Raft != nil && m.State() == raft.Leader && !c.w.Node(n).Crashed() && m.Apply([]byte(command), time.Second).Error() == nil {
				return nil
			}
		}
	}
	return errors.New("no progress")
}

// replicates commits 100 commands on three nodes, with crashes and partitions. In the end all nodes must have all commands, in
// the same order.
func replicates(forgets bool) func(ctx context.Context, w *world) error {
	return func(_ context.Context, w *world) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 30 * time.Millisecond, Reset: 0.001, MaxSync: 5 * time.Millisecond})
		c := &cluster{w: w, forgets: forgets, applied: map[uint64]string{}, leaders: map[uint64]string{}, members: map[string]member{}}
		for _, n := range names {
			c.start(w.Node(n))
		}
		calm := nemesis.Start(w, nemesis.Options{Nodes: names, Boot: c.start, Every: time.Second, Kinds: nemesis.Partition | nemesis.OneWay | nemesis.Cut | nemesis.Crash | nemesis.PowerOff})
		calmed := make(chan struct{})
		go func() { time.Sleep(20 * time.Second); calm(); close(calmed) }()
		draw := w.Rand()
		for i := range 100 {
			if err := c.commit(fmt.Sprint("x", i)); err != nil {
				return err
			}
			time.Sleep(time.Duration(draw.IntN(100)) * time.Millisecond)
		}
		<-calmed
		time.Sleep(20 * time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, n := range names {
			for i := range 100 {
				if !c.members[n].fsm.has[fmt.Sprint("x", i)] {
					c.wrong("x%d was acknowledged, and %s does not have it", i, n)
				}
			}
			go c.members[n].Shutdown()
		}
		return c.err
	}
}

func TestRaft(t *testing.T) { run(t, 20, replicates(false)) }

// TestRaftFails fails. TestRaftForgets runs it in other processes.
func TestRaftFails(t *testing.T) {
	if fails() {
		run(t, 300, replicates(true))
	}
}

// The store that forgets makes a node vote twice in a term. Each process finds this with the same seed.
func TestRaftForgets(t *testing.T) {
	if line := found(t, "TestRaftFails"); !strings.Contains(line, "has two leaders") && !strings.Contains(line, "applied") && !strings.Contains(line, "has not got it") {
		t.Fatal(line)
	}
}
