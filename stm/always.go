package stm

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A Violation is the error of a transaction that an invariant does not allow. The transaction has written nothing.
type Violation struct{ Err error } // the error of the invariant

func (v *Violation) Error() string { return "stm: " + v.Err.Error() }

// Unwrap returns the error of the invariant.
func (v *Violation) Unwrap() error { return v.Err }

// An invariant is linked to the Vars that its last run has read. A commit that writes one of them runs it before, in its
// own transaction, and links it to what this run has read.
type invariant struct {
	f       func(tx *Tx) error
	stopped bool // under the guard, like nodes
	nodes   []node
}

// A check is a run of an invariant, in the transaction that is to commit.
type check struct {
	rule          *invariant
	read, readEnd int // of tx.reads
	own, ownEnd   int // of tx.own
}

// Always registers an invariant: from now on no transaction commits that makes check fail. Such a transaction returns a
// *Violation. Always runs check first; if check fails now, Always returns a *Violation and
// registers nothing. stop takes the
// invariant back; it never suspends, and a second call does nothing.
//
// check only reads Vars, and its result must depend on nothing else: a commit runs it only after a write to a Var that the
// last run of check has read. Any error is a failure, also Retry. Always panics if check writes, and if it reads nothing.
//
// If ctx is done already, or between two runs of check, Always returns the error of the cancellation and registers nothing.
func Always(ctx context.Context, check func(tx *Tx) error) (stop func(), err error) {
	if check == nil {
		panic(nilFunction)
	}
	if err := suspend.Err(ctx); err != nil {
		return func() {}, err
	}
	k := &invariant{f: check}
	tx := idle.Get().(*Tx)
	defer tx.end()
	for {
		tx.now = clock.Load()
		if err := tx.runCheck(k); err != nil && !tx.doomed {
			return func() {}, err
		}
		if !tx.doomed && tx.register() {
			return k.stop, nil
		}
		tx.age()
		if err := suspend.Err(ctx); err != nil {
			return func() {}, err
		}
		tx.reset()
	}
}

// register links the invariant that tx has run, unless something that it has read has changed.
func (tx *Tx) register() bool {
	if len(tx.reads) == 0 {
		panic("stm: an invariant that reads nothing")
	}
	guard.Lock()
	defer guard.Unlock()
	if !tx.validLocked() {
		return false
	}
	tx.checks[0].rememberLocked(tx)
	return true
}

func (k *invariant) stop() {
	guard.Lock()
	k.stopped = true
	k.unlinkLocked()
	guard.Unlock()
}

func (k *invariant) unlinkLocked() {
	for i := range k.nodes {
		k.nodes[i].unlink()
	}
	k.nodes = k.nodes[:0]
}

// runCheck runs an invariant in tx. Its error is a Violation.
func (tx *Tx) runCheck(k *invariant) error {
	c := check{rule: k, read: len(tx.reads), own: len(tx.own)}
	tx.checking = true
	err := tx.run(k.f)
	tx.checking = false
	c.readEnd, c.ownEnd = len(tx.reads), len(tx.own)
	tx.checks = append(tx.checks, c)
	if err != nil {
		return &Violation{err}
	}
	return nil
}

// uncheckedLocked reports whether tx has written a Var that is linked to an invariant which tx has not run yet. It adds such
// invariants to due.
func (tx *Tx) uncheckedLocked() bool {
	for _, w := range tx.writes {
		for n := w.at.watched.first; n != nil && n.rule != nil; n = n.next {
			if !tx.hasChecked(n.rule) {
				tx.due = append(tx.due, n.rule)
			}
		}
	}
	return len(tx.due) > 0
}

// dueNow is uncheckedLocked under no guard.
func (tx *Tx) dueNow() bool {
	if len(tx.writes) == 0 {
		return false
	}
	guard.Lock()
	defer guard.Unlock()
	return tx.uncheckedLocked()
}

func (tx *Tx) hasChecked(k *invariant) bool {
	for _, c := range tx.checks {
		if c.rule == k {
			return true
		}
	}
	return false
}

// checkDue runs the invariants that uncheckedLocked has found.
func (tx *Tx) checkDue() error {
	due := tx.due
	tx.due = nil
	for _, k := range due {
		if tx.hasChecked(k) { // it was due for two Vars
			continue
		}
		if err := tx.runCheck(k); err != nil || tx.doomed {
			return err
		}
	}
	return nil
}

// rememberLocked links the invariant to the Vars that this run has read, and to no others.
func (c *check) rememberLocked(tx *Tx) {
	k := c.rule
	if k.stopped {
		return
	}
	k.unlinkLocked()
	reads, own := tx.reads[c.read:c.readEnd], tx.own[c.own:c.ownEnd]
	if n := len(reads) + len(own); cap(k.nodes) < n {
		k.nodes = make([]node, 0, n)
	}
	for _, b := range reads {
		k.linkLocked(&b.of.base().watched)
	}
	for _, l := range own {
		k.linkLocked(l)
	}
}

// linkLocked links k to a Var, once. There is room for the node.
func (k *invariant) linkLocked(l *list) {
	if l.first != nil && l.first.rule == k { // nobody else has come since this critical section began
		return
	}
	k.nodes = append(k.nodes, node{rule: k})
	l.pushFirst(&k.nodes[len(k.nodes)-1])
}
