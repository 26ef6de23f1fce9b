// Package raft is Raft on tasks: election, log replication, persistence, restart. It follows figure 2 of "In Search of an
// Understandable Consensus Algorithm" (Ongaro and Ousterhout, 2014), without snapshots and changes of the membership. Reads
// confirm the leader by a round of heartbeats, after section 6.4 of Ongaro's dissertation.
//
// Its tests run it on adapters/simulation, with the invariants of figure 3 checked after each step.
//
//	go test -v ./examples/raft
package raft

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

// The times of the protocol.
const (
	heartbeat = 30 * time.Millisecond
	election  = 150 * time.Millisecond // the shortest timeout; the longest is twice that
	patience  = 100 * time.Millisecond // limits the wait for an answer
	poll      = 10 * time.Millisecond
)

// ErrNotLeader is the error of a request that another node has to serve, or that has lost its leader: a proposal may or may
// not be committed later.
var ErrNotLeader = errors.New("raft: not the leader")

// A Mistake is a bug that real implementations have had.
type Mistake int

// The mistakes.
const (
	None              Mistake = iota
	VotesWithoutSync          // a node votes, crashes, has forgotten it, and votes again in the same term
	CommitsOlderTerms         // a leader commits an entry of an earlier term by counting, as figure 8 forbids
	ReadsWithoutRound         // a leader answers reads, but does not check that it is still the leader
)

// A Config has the parts of a Node.
type Config struct {
	ID      string
	Peers   []string // the other nodes
	Listen  func() (net.Listener, error)
	Dial    func(ctx context.Context, peer string) (net.Conn, error)
	Disk    Disk
	Rand    func(n int) int
	Mistake Mistake
}

// A Role is the part that a node plays in a term.
type Role int

// The roles.
const (
	Follower Role = iota
	Candidate
	Leader
)

// An Entry of the log. An entry without a command begins a term.
type Entry struct {
	Term    int
	Command string
}

// A State is the part of a node that its disk keeps. The entry with index i is Log[i-1].
type State struct {
	Term int
	Vote string
	Log  []Entry
}

// A Node is a member of the cluster. It is made by New.
type Node struct {
	Config
	mu mutex.Mutex // guards the fields below, and is held while the disk syncs
	State
	role   Role
	commit int
	heard  time.Time // when a leader was heard, or a vote was granted
	broken error     // the disk has failed: the node takes part no more

	// The fields of a leader.
	next, match map[string]int
	round       int            // counts the rounds of heartbeats
	confirmed   map[string]int // the last round that the peer has answered
}

// New returns a Node with the state that its disk has.
func New(c Config) (*Node, error) {
	n := &Node{Config: c}
	var err error
	n.State, err = c.Disk.Load()
	return n, err
}

// Run serves until ctx is done, or the disk fails: then the node must be crashed, and started again.
func (n *Node) Run(ctx context.Context) error {
	ln, err := n.Listen()
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := suspend.Here().Go(func() { n.accept(ctx, ln) }); err != nil {
		return err
	}
	n.heard = suspend.Now()
	for {
		timeout := election + time.Duration(n.Rand(int(election)))
		if err := suspend.Sleep(ctx, timeout); err != nil {
			return err
		}
		if err := n.mu.Lock(ctx); err != nil {
			return err
		}
		if n.role != Leader && suspend.Now().Sub(n.heard) >= timeout {
			n.campaignLocked(ctx)
		}
		broken := n.broken
		n.mu.Unlock()
		if broken != nil {
			return broken
		}
	}
}

// last returns the index and the term of the last entry.
func (n *Node) last() (index, term int) {
	if len(n.Log) == 0 {
		return 0, 0
	}
	return len(n.Log), n.Log[len(n.Log)-1].Term
}

// term returns the term of the entry at index, 0 for none.
func (n *Node) term(index int) int {
	if index < 1 || index > len(n.Log) {
		return 0
	}
	return n.Log[index-1].Term
}

// stepDownLocked makes n a follower in a later term. The caller must save the state.
func (n *Node) stepDownLocked(term int) {
	n.role = Follower
	if term > n.Term {
		n.Term, n.Vote = term, ""
	}
}

// saveLocked saves the state. A message that depends on the state must not leave the node earlier.
func (n *Node) saveLocked(sync bool) error {
	if n.broken == nil {
		n.broken = n.Disk.Save(n.State, sync)
	}
	if n.broken != nil {
		n.role = Follower
	}
	return n.broken
}

// majority reports whether count nodes are a majority.
func (n *Node) majority(count int) bool { return 2*count > len(n.Peers)+1 }

// Propose appends a command to the log of the leader, and returns its index when it is committed.
func (n *Node) Propose(ctx context.Context, command string) (int, error) {
	if err := n.mu.Lock(ctx); err != nil {
		return 0, err
	}
	defer n.mu.Unlock()
	if n.role != Leader {
		return 0, ErrNotLeader
	}
	term := n.Term
	n.Log = append(n.Log, Entry{term, command})
	index := len(n.Log)
	if err := n.saveLocked(true); err != nil {
		return 0, err
	}
	err := n.untilLocked(ctx, term, func() bool { return n.commit >= index })
	return index, err
}

// Read returns an index such that all that was committed before the call is at this index or before it.
func (n *Node) Read(ctx context.Context) (int, error) {
	if err := n.mu.Lock(ctx); err != nil {
		return 0, err
	}
	defer n.mu.Unlock()
	if n.role != Leader || n.term(n.commit) != n.Term {
		return 0, ErrNotLeader // a new leader must commit an entry of its term first
	}
	index := n.commit
	if n.Mistake == ReadsWithoutRound {
		return index, nil
	}
	n.round++
	round := n.round
	err := n.untilLocked(ctx, n.Term, func() bool {
		count := 1
		for _, p := range n.Peers {
			if n.confirmed[p] >= round {
				count++
			}
		}
		return n.majority(count)
	})
	return index, err
}

// untilLocked waits, with the lock released, until done returns true. It fails if n does not lead the term any more.
func (n *Node) untilLocked(ctx context.Context, term int, done func() bool) error {
	for !done() {
		n.mu.Unlock()
		err := suspend.Sleep(ctx, poll)
		_ = n.mu.Lock(context.Background())
		if err != nil {
			return err
		}
		if n.role != Leader || n.Term != term {
			return ErrNotLeader
		}
	}
	return nil
}
