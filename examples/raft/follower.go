package raft

import (
	"context"
	"encoding/json"
	"net"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// A VoteRequest requests a vote.
type VoteRequest struct {
	Term        int
	Candidate   string
	Index, Last int // the index and the term of the candidate's last entry
}

// An AppendRequest contains log entries that follow Index. A heartbeat has no entries.
type AppendRequest struct {
	Term             int
	Leader           string
	Index, IndexTerm int
	Entries          []Entry
	Commit           int
}

// An Answer is the response to a VoteRequest or an AppendRequest.
type Answer struct {
	Term   int
	OK     bool
	Length int // the length of the follower's log that may match the leader's log
}

type message struct {
	Vote   *VoteRequest   `json:",omitempty"`
	Append *AppendRequest `json:",omitempty"`
}

// accept starts a task for each connection.
func (n *Node) accept(ctx context.Context, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		if suspend.Here().Go(func() { n.serve(ctx, c) }) != nil {
			return
		}
	}
}

// serve answers the requests on one connection. It stops after the disk has failed.
func (n *Node) serve(ctx context.Context, c net.Conn) {
	defer c.Close()
	in, out := json.NewDecoder(c), json.NewEncoder(c)
	for {
		var m message
		if in.Decode(&m) != nil || n.mu.LockContext(ctx) != nil {
			return
		}
		var answer Answer
		err := n.broken
		switch {
		case err != nil:
		case m.Vote != nil:
			answer, err = n.voteLocked(*m.Vote)
		case m.Append != nil:
			answer, err = n.appendLocked(*m.Append)
		}
		n.mu.Unlock()
		if err != nil || out.Encode(answer) != nil {
			return
		}
	}
}

func (n *Node) voteLocked(r VoteRequest) (Answer, error) {
	if r.Term > n.Term {
		n.stepDownLocked(r.Term)
	}
	index, term := n.last()
	fresh := r.Last > term || r.Last == term && r.Index >= index
	if r.Term < n.Term || n.Vote != "" && n.Vote != r.Candidate || !fresh {
		return Answer{Term: n.Term}, n.saveLocked(true)
	}
	n.Vote, n.heard = r.Candidate, suspend.Now()
	answer := Answer{Term: n.Term, OK: true}
	return answer, n.saveLocked(n.Mistake != VotesWithoutSync)
}

func (n *Node) appendLocked(r AppendRequest) (Answer, error) {
	if r.Term < n.Term {
		return Answer{Term: n.Term}, nil
	}
	n.stepDownLocked(r.Term)
	n.heard = suspend.Now()
	if r.Index > len(n.Log) || n.term(r.Index) != r.IndexTerm {
		answer := Answer{Term: n.Term, Length: min(len(n.Log), r.Index-1)}
		return answer, n.saveLocked(true)
	}
	for i, e := range r.Entries {
		index := r.Index + 1 + i
		if n.term(index) == e.Term {
			continue
		}
		n.Log = append(n.Log[:index-1:index-1], e) // replaces the conflicting entry and drops all later entries
	}
	if err := n.saveLocked(true); err != nil {
		return Answer{}, err
	}
	n.commit = max(n.commit, min(r.Commit, r.Index+len(r.Entries)))
	return Answer{Term: n.Term, OK: true, Length: len(n.Log)}, nil
}

// A peer is a connection to another node, which is dialled on first use.
type peer struct {
	id  string
	c   net.Conn
	in  *json.Decoder
	out *json.Encoder
}

// call sends m and returns the answer. After an error or a timeout, it closes the connection.
func (n *Node) call(ctx context.Context, to *peer, m message) (answer Answer, err error) {
	defer func() {
		if err != nil {
			to.close()
		}
	}()
	if to.c == nil {
		short, end := cancel.WithTimeout(ctx, patience)
		defer end()
		if to.c, err = n.Dial(short, to.id); err != nil {
			to.c = nil
			return answer, err
		}
		to.in, to.out = json.NewDecoder(to.c), json.NewEncoder(to.c)
	}
	if err = to.c.SetDeadline(suspend.Now().Add(patience)); err != nil {
		return answer, err
	}
	if err = to.out.Encode(m); err != nil {
		return answer, err
	}
	err = to.in.Decode(&answer)
	return answer, err
}

func (p *peer) close() {
	if p.c != nil {
		p.c.Close()
		p.c = nil
	}
}
