package stm

import (
	"errors"

	"github.com/braidgo/braid/suspend"
)

// A Tx is one run of a transaction. It belongs to the goroutine that runs f, until f returns.
type Tx struct {
	now    int64  // the clock of the snapshot; over: the run has ended
	doomed bool   // the snapshot is gone
	reads  []read // sorted by their Gets; a Var may be there more than once
	writes []write
	index  map[*cell]int // finds writes by their Var, if there are more than few
	level  int           // the writes from here on belong to the innermost Nested
	hooks  []func()      // functions of AfterCommit

	nodes   []node                    // linked while tx waits
	waiter  waiter                    // set while tx waits, like resumer
	resumer suspend.Resumer[struct{}] // Atomically waits with it

	fails     int  // runs that others have made vain, since the last that waited
	overtakes bool // it commits before the elder, since it must not wait

	seen  map[*head]struct{} // used in dedupe, and empty otherwise
	dense int                // a log of fewer reads is not looked through
}

// A read is an entry of the log of reads.
type read struct {
	of   variable
	seen *head
}

// current reports whether the Var still holds the box that was read.
func (r read) current() bool { return r.of.holds(r.seen) }

// A write is an entry of the log of writes.
type write struct {
	at      *cell // its Var
	of      variable
	to      any // a *box of it
	shadows int // 1 + the index of the entry of an outer Nested for the same Var; 0: there is none
}

// few is how many writes are searched rather than looked up.
const few = 12

// over is the snapshot of a Tx that must not be used: every box is newer.
const over = -1

//lint:ignore ST1012 a transaction returns it as fs.SkipDir is returned

// Retry says that a transaction cannot go on as things are. A function that returns it, or an error that wraps it, is run
// again when a Var that it has read has changed.
var Retry = errors.New("stm: retry")

func isRetry(err error) bool { return err == Retry || err != nil && errors.Is(err, Retry) }

// errConflict unwinds a run whose snapshot is gone.
var errConflict = errors.New("stm: conflict")

// extend makes the snapshot of tx recent enough for boxes of this version, or ends the run.
func (tx *Tx) extend(version int64) {
	tx.check()
	now := clock.Load()
	if now < version { // its commit is under way
		awaitCommit()
		now = clock.Load()
	}
	// The clock is read first: a Var that still holds the box that tx has seen held it when the clock was now.
	for _, b := range tx.reads {
		if !b.current() {
			tx.now, tx.doomed = over, true
			panic(errConflict)
		}
	}
	tx.now = now
}

// check panics if tx must not be used.
func (tx *Tx) check() {
	switch {
	case tx.doomed:
		panic(errConflict)
	case tx.now == over:
		panic("stm: Tx used after its end")
	}
}

// find returns the index of the last write to a Var, -1 if there is none.
func (tx *Tx) find(at *cell) int {
	if len(tx.writes) > few {
		if i, ok := tx.index[at]; ok {
			return i
		}
		return -1
	}
	for i := len(tx.writes) - 1; i >= 0; i-- {
		if tx.writes[i].at == at {
			return i
		}
	}
	return -1
}

// written returns what tx has written to a Var, nil if nothing.
func (tx *Tx) written(at *cell) any {
	i := tx.find(at)
	if i < 0 {
		return nil
	}
	tx.check()
	return tx.writes[i].to
}

// settable returns the index of the last write to a Var, as find does, for a Set.
func (tx *Tx) settable(at *cell) int {
	if tx.now == over {
		tx.check()
	}
	return tx.find(at)
}

// write appends to the log of writes.
func (tx *Tx) write(w write) {
	tx.writes = append(tx.writes, w)
	switch n := len(tx.writes); {
	case n == few+1:
		if tx.index == nil {
			tx.index = make(map[*cell]int)
		}
		for i, w := range tx.writes {
			tx.index[w.at] = i
		}
	case n > few:
		tx.index[w.at] = n - 1
	}
}

// rollback drops the writes from index on.
func (tx *Tx) rollback(from int) {
	if len(tx.writes) > few {
		for _, w := range tx.writes[from:] {
			if w.shadows > 0 {
				tx.index[w.at] = w.shadows - 1
			} else {
				delete(tx.index, w.at)
			}
		}
	}
	tx.truncate(from)
}

// leastDense is how many reads are worth a look.
const leastDense = 256

// mostSeen is for how many Vars a Tx keeps the room to look for them.
const mostSeen = 1 << 12

// dedupe is called when the log of reads is full, and takes out the Vars that are there more than once. The next look comes when the log
// is four times as long, so the looks cost a Get little.
func (tx *Tx) dedupe() {
	if len(tx.reads) < max(tx.dense, leastDense) {
		return
	}
	if tx.seen == nil {
		tx.seen = make(map[*head]struct{})
	}
	kept := tx.reads[:0]
	for _, r := range tx.reads {
		if _, ok := tx.seen[r.seen]; !ok {
			tx.seen[r.seen] = struct{}{}
			kept = append(kept, r)
		}
	}
	clear(tx.reads[len(kept):])
	tx.reads, tx.dense = kept, 4*len(kept)
	if clear(tx.seen); len(kept) > mostSeen {
		tx.seen = nil
	}
}

// merge hands the writes from index on to the Nested around, whose own begin at level. It looks at the
// smaller part only: otherwise a write would be looked at again on each level.
func (tx *Tx) merge(from, level int) {
	if from-level < len(tx.writes)-from {
		tx.take(level, from)
		return
	}
	indexed, k := len(tx.writes) > few, from
	for _, w := range tx.writes[from:] {
		at := w.shadows - 1
		if at >= level {
			tx.writes[at].to = w.to
		} else {
			at = k
			tx.writes[k] = w
			k++
		}
		if indexed {
			tx.index[w.at] = at
		}
	}
	tx.truncate(k)
}

// take hands the writes of a Nested on to its own writes, from index level to from, of the Nested around.
func (tx *Tx) take(level, from int) {
	for i := level; i < from; i++ {
		w := &tx.writes[i]
		j := tx.find(w.at)
		if j < from {
			continue
		}
		w.to = tx.writes[j].to
		last := len(tx.writes) - 1
		if indexed := last >= few; indexed {
			tx.index[w.at] = i
			if j < last {
				tx.index[tx.writes[last].at] = j
			}
		}
		tx.writes[j] = tx.writes[last]
		tx.truncate(last)
	}
}

func (tx *Tx) truncate(n int) {
	if len(tx.writes) > few && n <= few {
		clear(tx.index)
	}
	for i := n; i < len(tx.writes); i++ {
		at := &tx.writes[i]
		at.at, at.of, at.to = nil, nil, nil
	}
	tx.writes = tx.writes[:n]
}

// Nested calls f(tx) and returns its error. After an error it is as if f had written nothing and had registered no
// AfterCommit; its reads stay. The same holds if f panics and the transaction recovers the panic.
func Nested(tx *Tx, f func(tx *Tx) error) error {
	if tx.now == over {
		tx.check()
	}
	if f == nil {
		panic(nilFunction)
	}
	level, writes, hooks := tx.level, len(tx.writes), len(tx.hooks)
	tx.level = writes
	ok := false
	defer func() {
		if !ok {
			tx.rollback(writes)
			clear(tx.hooks[hooks:])
			tx.hooks = tx.hooks[:hooks]
		}
		tx.level = level
	}()
	err := f(tx)
	if ok = err == nil; ok {
		tx.merge(writes, level)
	}
	return err
}

// OrElse calls fs one after another, each as Nested does, until one does not return Retry, and returns the error of this
// one. If all return Retry, so does OrElse: the transaction then waits for a change of any Var that any of fs has read.
func OrElse(tx *Tx, fs ...func(tx *Tx) error) error {
	for _, f := range fs {
		if err := Nested(tx, f); !isRetry(err) {
			return err
		}
	}
	return Retry
}

// AfterCommit registers f for the time after the commit of tx. The task that runs the transaction then calls f once,
// under no lock, and after the functions that were registered before, even if a function before it has panicked or has
// exited. f may suspend and may run transactions. The functions of a run that is dropped are dropped with it.
// AfterCommit is the place for effects: to print, to send, to start a task.
func (tx *Tx) AfterCommit(f func()) {
	if tx.now == over {
		tx.check()
	}
	if f == nil {
		panic(nilFunction)
	}
	tx.hooks = append(tx.hooks, f)
}
