// Package raft implements the Raft consensus algorithm with tasks: leader election, log replication, persistence and restart. It follows
// figure 2 of "In Search of an Understandable Consensus Algorithm" (Ongaro and Ousterhout, 2014), without snapshots and membership changes.
// Before a read, the leader confirms its leadership with a round of heartbeats, as described in section 6.4 of Ongaro's dissertation.
//
// The tests run the package in simulation, and check the invariants of figure 3 after each step.
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

// The time limits of the protocol.
const (
	heartbeat = 30 * time.Millisecond
	election  = 150 * time.Millisecond // the shortest election timeout; the longest is twice as long
	patience  = 100 * time.Millisecond // limits the wait for an answer
	poll      = 10 * time.Millisecond
)

// ErrNotLeader means that a node is not the leader, or that it lost the leadership during the request. In the second case a proposal may or
// may not be committed later. The caller should try another node.
var ErrNotLeader = errors.New("raft: not the leader")

// A Mistake is a deliberate bug that real implementations have had.
type Mistake int

// The mistakes.
const (
	None              Mistake = iota
	VotesWithoutSync          // a node votes, crashes, forgets its vote, and votes again in the same term
	CommitsOlderTerms         // a leader commits an entry of an earlier term by counting replicas (figure 8)
	ReadsWithoutRound         // a leader answers reads without checking that it is still the leader
)

// A Config configures a Node.
type Config struct {
	ID      string
	Peers   []string // the ids of all other nodes
	Listen  func() (net.Listener, error)
	Dial    func(ctx context.Context, peer string) (net.Conn, error)
	Disk    Disk
	Rand    func(n int) int
	Mistake Mistake
}

// A Role is the role of a node in a term.
type Role int

// The roles.
const (
	Follower Role = iota
	Candidate
	Leader
)

// An Entry is an entry of the log. A new leader appends an entry without a command.
type Entry struct {
	Term    int
	Command string
}

// A State is the part of a node's state that is stored on disk. The entry with index i is Log[i-1].
type State struct {
	Term int
	Vote string
	Log  []Entry
}

// A Node is a member of the cluster. Use New to create a Node.
type Node struct {
	Config
	mu mutex.Mutex // guards the fields below, and is held while the disk syncs
	State
	role   Role
	commit int
	heard  time.Time // when the election timeout was last reset
	broken error     // the disk's error, after which the node sends no more answers

	// Only a leader uses the fields below.
	next, match map[string]int
	round       int            // the number of the current round of heartbeats
	confirmed   map[string]int // maps a peer to the last round that it has answered
}

// New returns a Node with the state that it loads from c.Disk.
func New(c Config) (*Node, error) {
	n := &Node{Config: c}
	var err error
	n.State, err = c.Disk.Load()
	return n, err
}

// Run runs the node until ctx ends or the disk fails. After a failure of the disk, the caller must crash the node and start it again.
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
		if err := n.mu.LockContext(ctx); err != nil {
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

// last returns the index and the term of the last entry, or zeros if the log is empty.
func (n *Node) last() (index, term int) {
	if len(n.Log) == 0 {
		return 0, 0
	}
	return len(n.Log), n.Log[len(n.Log)-1].Term
}

// term returns the term of the entry at index, or 0 if there is no such entry.
func (n *Node) term(index int) int {
	if index < 1 || index > len(n.Log) {
		return 0
	}
	return n.Log[index-1].Term
}

// stepDownLocked makes n a follower, and adopts the given term if it is later. It does not save the state.
func (n *Node) stepDownLocked(term int) {
	n.role = Follower
	if term > n.Term {
		n.Term, n.Vote = term, ""
	}
}

// saveLocked saves the state. It must return before a message that depends on the state is sent.
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

// Propose appends a command to the leader's log. It returns the index of the command when the command is committed.
func (n *Node) Propose(ctx context.Context, command string) (int, error) {
	if err := n.mu.LockContext(ctx); err != nil {
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

// Read returns an index that is at least as high as the index of each entry committed before the call.
func (n *Node) Read(ctx context.Context) (int, error) {
	if err := n.mu.LockContext(ctx); err != nil {
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

// untilLocked calls the function done repeatedly until it returns true, and unlocks n.mu between the calls. It returns ErrNotLeader if n no
// longer leads the term.
func (n *Node) untilLocked(ctx context.Context, term int, done func() bool) error {
	for !done() {
		n.mu.Unlock()
		err := suspend.Sleep(ctx, poll)
		n.mu.Lock()
		if err != nil {
			return err
		}
		if n.role != Leader || n.Term != term {
			return ErrNotLeader
		}
	}
	return nil
}
