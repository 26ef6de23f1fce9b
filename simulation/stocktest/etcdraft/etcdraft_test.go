// Package etcdraft runs the unchanged module go.etcd.io/raft on tasks of a World: three nodes, a connection for each pair, and a storage
// that survives a crash.
package etcdraft

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/suspend"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const tick = 10 * time.Millisecond

// A cluster holds the nodes, and the entries that they have committed.
type cluster struct {
	w         *simulation.World
	names     []string // the names of the ids 1, 2, 3
	disks     []*raft.MemoryStorage
	live      []*replica // by id-1; nil after a crash
	committed []*raftpb.Entry
	terms     []uint64 // the term in which each entry was first known to be committed
	proposed  int
}

// A replica is one boot of a node.
type replica struct {
	*raft.RawNode
	c     *cluster
	id    uint64
	disk  *raft.MemoryStorage
	out   []*chanx.Chan[*raftpb.Message] // the queues to the other nodes, by id-1
	leads bool
}

func newCluster(w *simulation.World, names ...string) *cluster {
	c := &cluster{w: w, names: names, live: make([]*replica, len(names))}
	var ids []uint64
	for i := range names {
		ids = append(ids, uint64(i+1))
	}
	for range names {
		disk := raft.NewMemoryStorage()
		meta := &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: raftpb.EnsureConfState(&raftpb.ConfState{Voters: ids})}
		if err := disk.ApplySnapshot(&raftpb.Snapshot{Metadata: meta}); err != nil {
			panic(err)
		}
		c.disks = append(c.disks, disk)
	}
	return c
}

func (c *cluster) boot(node *simulation.Node) {
	i := slices.Index(c.names, node.Name())
	node.Restart(func(ctx context.Context) {
		defer func() { c.live[i] = nil }() // runs also in a crash
		if err := c.run(ctx, node, i); err != nil {
			c.w.Log("%s stops: %v", node.Name(), err)
		}
	})
}

func (c *cluster) run(ctx context.Context, node *simulation.Node, i int) error {
	r := &replica{c: c, id: uint64(i + 1), disk: c.disks[i]}
	var err error
	r.RawNode, err = raft.NewRawNode(&raft.Config{
		ID: r.id, ElectionTick: 15, HeartbeatTick: 3, Storage: r.disk, Logger: quiet{},
		MaxSizePerMsg:   0, // a message has one entry
		MaxInflightMsgs: 16, MaxCommittedSizePerReady: 1 << 20,
	})
	if err != nil {
		return err
	}
	ln, err := node.Listen("tcp", ":1")
	if err != nil {
		return err
	}
	for k, name := range c.names {
		out := chanx.New[*raftpb.Message](64)
		if r.out = append(r.out, out); k != i {
			_ = node.Go(func() { r.send(ctx, node, name, out) })
		}
	}
	_ = node.Go(func() { r.accept(ctx, ln) })
	_ = node.Go(func() { r.propose(ctx) })
	c.live[i] = r
	for {
		_ = suspend.Sleep(ctx, tick/2+time.Duration(c.w.Rand().Int64N(int64(tick))))
		r.Tick()
		r.ready()
	}
}

// ready does everything that r is ready for. It does not suspend.
func (r *replica) ready() {
	for r.HasReady() {
		rd := r.Ready()
		if rd.HardState != nil {
			_ = r.disk.SetHardState(proto.Clone(rd.HardState).(*raftpb.HardState))
		}
		_ = r.disk.Append(rd.Entries)
		for _, m := range rd.Messages {
			_, _ = r.out[m.GetTo()-1].TrySend(m) // drops the message if the queue is full, because raft repeats it
		}
		r.c.apply(r, rd.CommittedEntries)
		r.Advance(rd)
	}
	r.c.look(r)
}

func (r *replica) send(ctx context.Context, node *simulation.Node, to string, out *chanx.Chan[*raftpb.Message]) {
	for {
		conn, err := node.Dial(ctx, "tcp", to+":1")
		for err == nil {
			m, _ := out.Recv(ctx)
			data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
		}
		if conn != nil {
			_ = conn.Close()
		}
		_ = suspend.Sleep(ctx, tick)
	}
}

func (r *replica) accept(ctx context.Context, ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil || suspend.Here().Go(func() { r.receive(conn) }) != nil {
			return
		}
	}
}

func (r *replica) receive(conn net.Conn) {
	defer conn.Close()
	var head [4]byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		data := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, data); err != nil {
			return
		}
		m := new(raftpb.Message)
		if err := proto.Unmarshal(data, m); err != nil {
			panic(err)
		}
		_ = r.Step(m)
		r.ready()
	}
}

func (r *replica) propose(ctx context.Context) {
	for {
		_ = suspend.Sleep(ctx, time.Duration(r.c.w.Rand().Int64N(int64(10*tick))))
		if r.BasicStatus().RaftState == raft.StateLeader {
			r.c.proposed++
			_ = r.Propose(fmt.Append(nil, r.c.proposed))
			r.ready()
		}
	}
}

// apply compares the entries that a node has committed with those of other nodes.
func (c *cluster) apply(r *replica, entries []*raftpb.Entry) {
	for _, e := range entries {
		i := int(e.GetIndex()) - 2
		if i == len(c.committed) {
			c.committed = append(c.committed, e)
			c.terms = append(c.terms, r.BasicStatus().GetTerm())
		}
		if other := c.committed[i]; !same(e, other) {
			panic(fmt.Sprintf("%s has committed %v at index %d, where %v was committed", c.names[r.id-1], e, e.GetIndex(), other))
		}
	}
}

func (c *cluster) has(r *replica, index uint64, e *raftpb.Entry) bool {
	if last, _ := r.disk.LastIndex(); index > last {
		return false
	}
	mine, err := r.disk.Entries(index, index+1, 1<<20)
	return err == nil && same(mine[0], e)
}

func same(a, b *raftpb.Entry) bool {
	return a.GetTerm() == b.GetTerm() && bytes.Equal(a.GetData(), b.GetData())
}

// look checks r after each step.
func (c *cluster) look(r *replica) {
	s := r.BasicStatus()
	if s.RaftState == raft.StateLeader && !r.leads {
		c.w.Log("%s leads term %d", c.names[r.id-1], s.GetTerm())
		for i, e := range c.committed {
			index := uint64(i + 2)
			if c.terms[i] < s.GetTerm() && !c.has(r, index, e) {
				panic(fmt.Sprintf("%s leads term %d without entry %d, which was committed in term %d", c.names[r.id-1], s.GetTerm(), index, c.terms[i]))
			}
		}
	}
	r.leads = s.RaftState == raft.StateLeader
	c.rare(r, s)
}

// rare reports rare states of r: a leader has an entry of an older term to commit, and another node has a different entry there.
func (c *cluster) rare(r *replica, s raft.BasicStatus) {
	old, err := r.disk.Term(s.GetCommit() + 1)
	if !r.leads || err != nil || old == s.GetTerm() {
		return
	}
	c.w.Sometimes("a leader has an entry of an older term to commit", true)
	last, _ := r.disk.LastIndex()
	for index := s.GetCommit() + 1; index <= last; index++ {
		mine, _ := r.disk.Term(index)
		has, later := 0, false
		for _, other := range c.disks {
			term, err := other.Term(index)
			if err == nil && term == mine {
				has++
			}
			later = later || err == nil && term > mine
		}
		if mine < s.GetTerm() && later {
			c.w.Sometimes("and another node has one of a later term there", true)
			c.w.Sometimes("and a majority has that of the leader", has > len(c.names)/2)
		}
	}
}

func scenario(t *testing.T) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		cryptotest.SetGlobalRandom(t, w.Seed())
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 30 * time.Millisecond, Reset: 0.005})
		c := newCluster(w, "a", "b", "c")
		for _, name := range c.names {
			c.boot(w.Node(name))
		}
		calm := nemesis.Start(w, nemesis.Options{Nodes: c.names, Boot: c.boot, Every: 15 * tick})
		_ = suspend.Sleep(ctx, 6*time.Second)
		calm()
		_ = suspend.Sleep(ctx, 5*time.Second)
		before := len(c.committed)
		_ = suspend.Sleep(ctx, time.Second)
		if len(c.committed) == before {
			return fmt.Errorf("nothing is committed, although all nodes are well")
		}
		return nil
	}
}

// quiet is a raft.Logger that only panics.
type quiet struct{}

func (quiet) Debug(...any)              {}
func (quiet) Debugf(string, ...any)     {}
func (quiet) Error(...any)              {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Info(...any)               {}
func (quiet) Infof(string, ...any)      {}
func (quiet) Warning(...any)            {}
func (quiet) Warningf(string, ...any)   {}
func (quiet) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (quiet) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
