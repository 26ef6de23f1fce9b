package raft

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// campaignLocked starts a new term as a candidate, and requests the votes of all peers.
func (n *Node) campaignLocked(ctx context.Context) {
	n.role, n.Term, n.Vote, n.heard = Candidate, n.Term+1, n.ID, suspend.Now()
	if n.saveLocked(true) != nil {
		return
	}
	index, term := n.last()
	request := VoteRequest{n.Term, n.ID, index, term}
	votes := 1
	for _, p := range n.Peers {
		_ = suspend.Here().Go(func() {
			answer, err := n.call(ctx, &peer{id: p}, message{Vote: &request})
			if err != nil || n.mu.LockContext(ctx) != nil {
				return
			}
			defer n.mu.Unlock()
			if answer.Term > n.Term {
				n.stepDownLocked(answer.Term)
				return
			}
			if n.role != Candidate || n.Term != request.Term || !answer.OK {
				return
			}
			if votes++; n.majority(votes) {
				n.leadLocked(ctx)
			}
		})
	}
}

// leadLocked makes n the leader of its term.
func (n *Node) leadLocked(ctx context.Context) {
	n.role = Leader
	n.next, n.match, n.confirmed = map[string]int{}, map[string]int{}, map[string]int{}
	for _, p := range n.Peers {
		n.next[p] = len(n.Log) + 1
	}
	n.Log = append(n.Log, Entry{Term: n.Term})
	if n.saveLocked(true) != nil {
		return
	}
	term := n.Term
	for _, p := range n.Peers {
		_ = suspend.Here().Go(func() { n.replicate(ctx, term, p) })
	}
}

// replicate sends heartbeats to a peer, and the log entries that the peer lacks, one per request. It returns when n no longer leads the
// term.
func (n *Node) replicate(ctx context.Context, term int, id string) {
	to := &peer{id: id}
	defer to.close()
	for n.mu.LockContext(ctx) == nil {
		if n.role != Leader || n.Term != term {
			n.mu.Unlock()
			return
		}
		at, round := n.next[id]-1, n.round
		request := AppendRequest{Term: term, Leader: n.ID, Index: at, IndexTerm: n.term(at), Commit: n.commit}
		if at < len(n.Log) {
			request.Entries = []Entry{n.Log[at]}
		}
		n.mu.Unlock()
		answer, err := n.call(ctx, to, message{Append: &request})
		if n.mu.LockContext(ctx) != nil {
			return
		}
		more := n.answeredLocked(request, id, round, answer, err)
		n.mu.Unlock()
		if !more && suspend.Sleep(ctx, heartbeat) != nil {
			return
		}
	}
}

// answeredLocked processes a peer's answer, and reports whether replicate should continue without a pause.
func (n *Node) answeredLocked(request AppendRequest, id string, round int, answer Answer, err error) (more bool) {
	switch {
	case err != nil:
		return false
	case answer.Term > n.Term:
		n.stepDownLocked(answer.Term)
		return true
	case n.role != Leader || n.Term != request.Term:
		return true
	}
	n.confirmed[id] = max(n.confirmed[id], round)
	if !answer.OK {
		n.next[id] = max(1, min(n.next[id]-1, answer.Length+1))
		return true
	}
	n.match[id] = max(n.match[id], request.Index+len(request.Entries))
	n.next[id] = n.match[id] + 1
	n.advanceLocked()
	return n.match[id] < len(n.Log)
}

// advanceLocked commits the entries that a majority of the nodes stores, up to the last such entry of the leader's term. An entry of an
// earlier term must not be committed by counting replicas, because it may still be replaced (figure 8).
func (n *Node) advanceLocked() {
	for index := n.commit + 1; index <= len(n.Log); index++ {
		count := 1
		for _, p := range n.Peers {
			if n.match[p] >= index {
				count++
			}
		}
		if !n.majority(count) {
			return
		}
		if n.term(index) == n.Term || n.Mistake == CommitsOlderTerms {
			n.commit = index
		}
	}
}
