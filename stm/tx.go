package stm

import (
	"errors"

	"github.com/braidgo/braid/suspend"
)

// A Tx is a running transaction. Only the goroutine that runs its function may use the Tx, and only until the function
// returns.
type Tx struct {
	now    int64  // the clock value of the snapshot, or -1 (see over) after the end of the run
	doomed bool   // the snapshot is no longer valid
	reads  []read // the log of reads, in order; a Var may occur several times
	writes []write
	index  map[*cell]int // maps a Var to its last write; used only for more than 12 writes (see few)
	level  int           // the index of the first write of the innermost Nested
	hooks  []func()      // registered by AfterCommit

	nodes   []node                    // linked while tx waits
	linked  int                       // the number of reads to whose Vars tx is linked
	wide    bool                      // tx is linked in portions, see Tx.wait
	changed bool                      // a commit has written a Var to which the wide tx is linked; protected by guard
	waiter  waiter                    // set while tx waits
	resumer suspend.Resumer[struct{}] // resumes a call of Atomically that waits

	fails     int  // failed runs since the last wait
	overtakes bool // set by Try: tx does not wait for the elder

	seen  map[*head]struct{} // used by dedupe, and empty between its calls
	dense int                // dedupe does nothing with a log of fewer reads
}

// A read is an entry in the log of reads.
type read struct {
	of   variable
	seen *head
}

// current reports whether the Var still holds the box that was read.
func (r read) current() bool { return r.of.holds(r.seen) }

// A write is an entry in the log of writes.
type write struct {
	at      *cell // the cell of the Var
	of      variable
	to      any // the new box, a *box[T]
	shadows int // 1 + the index of an outer Nested's write to the same Var, or 0
}

// few is the largest number of writes for which Tx.find does not use the index.
const few = 12

// over is the snapshot of a Tx that must not be used. Every box is newer than this snapshot, so that a Get calls
// Tx.extend, which panics.
const over = -1

//lint:ignore ST1012 Retry is a signal like fs.SkipDir, not a failure

// Retry is returned by the function of a transaction that cannot proceed. The function is called again when a Var that it
// has read changes. An error that wraps Retry has the same effect.
var Retry = errors.New("stm: retry")

func isRetry(err error) bool { return err == Retry || err != nil && errors.Is(err, Retry) }

// errConflict is the panic value that unwinds a run whose snapshot is no longer valid.
var errConflict = errors.New("stm: conflict")

// extend advances the snapshot of tx to a clock value that is at least the given version. It panics with errConflict if a
// Var that tx has read has changed.
func (tx *Tx) extend(version int64) {
	tx.requireLive()
	now := clock.Load()
	if now < version { // the commit of this version is in progress
		awaitCommit()
		now = clock.Load()
	}
	// The clock is loaded before this loop. A Var that still holds the box that tx has read therefore held it when the
	// clock was loaded.
	for _, b := range tx.reads {
		if !b.current() {
			tx.now, tx.doomed = over, true
			panic(errConflict)
		}
	}
	tx.now = now
}

// requireLive panics if tx is doomed or has ended.
func (tx *Tx) requireLive() {
	switch {
	case tx.doomed:
		panic(errConflict)
	case tx.now == over:
		panic("stm: Tx used after the end of its transaction")
	}
}

// find returns the index of the last write to a Var, or -1 if there is none.
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

// written returns the box that tx has written to a Var, or nil if there is none.
func (tx *Tx) written(at *cell) any {
	i := tx.find(at)
	if i < 0 {
		return nil
	}
	tx.requireLive()
	return tx.writes[i].to
}

// settable returns find(at) for a Set, and panics if tx has ended.
func (tx *Tx) settable(at *cell) int {
	if tx.now == over {
		tx.requireLive()
	}
	return tx.find(at)
}

// write appends w to the log of writes.
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

// rollback drops the writes from the given index on.
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

// leastDense is the smallest number of reads in which dedupe searches for repetitions.
const leastDense = 256

// mostSeen is the largest number of Vars for which a Tx keeps the map tx.seen for reuse.
const mostSeen = 1 << 12

// dedupe removes repeated Vars from the log of reads. Get calls dedupe when the log is full. After each pass dedupe does
// nothing until the log is four times as long, so that its share in the cost of a Get is small.
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

// merge adds the writes of a Nested, tx.writes[from:], to the writes of the enclosing Nested, tx.writes[level:from]. It
// iterates over the smaller of the two parts; otherwise a write would be visited again at each level.
func (tx *Tx) merge(from, level int) {
	if from-level < len(tx.writes)-from {
		tx.mergeByScan(level, from)
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

// mergeByScan does the work of merge by iterating over tx.writes[level:from], the writes of the enclosing Nested.
func (tx *Tx) mergeByScan(level, from int) {
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

// Nested calls f(tx) and returns its error. If f returns an error, its writes and its AfterCommit functions are dropped,
// but its reads remain part of the transaction. The same holds if f panics and the transaction recovers the panic.
func Nested(tx *Tx, f func(tx *Tx) error) error {
	if tx.now == over {
		tx.requireLive()
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

// OrElse calls the functions fs in order, each as Nested does, until a function does not return Retry. OrElse returns the
// error of that function. If all functions return Retry, OrElse returns Retry. The transaction then waits for a change of
// any Var that any of the functions has read.
func OrElse(tx *Tx, fs ...func(tx *Tx) error) error {
	for _, f := range fs {
		if err := Nested(tx, f); !isRetry(err) {
			return err
		}
	}
	return Retry
}

// AfterCommit registers f to be called after tx has committed. The task that runs the transaction calls the registered
// functions once each, in order, and without holding a lock. It calls all of them, even if one panics or calls
// runtime.Goexit. f may suspend and may run transactions. If a run is dropped, its functions are not called. Use
// AfterCommit for effects, such as printing, sending, or starting a task.
func (tx *Tx) AfterCommit(f func()) {
	if tx.now == over {
		tx.requireLive()
	}
	if f == nil {
		panic(nilFunction)
	}
	tx.hooks = append(tx.hooks, f)
}
