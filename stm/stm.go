// Package stm provides software transactional memory: a transaction reads and writes variables, and all of it happens at
// once or not at all. A transaction that cannot go on returns Retry, and suspends its task, on any scheduler, until a
// variable that it has read changes.
//
//	err := stm.Atomically(ctx, func(tx *stm.Tx) error {
//		if from.Get(tx) < amount {
//			return stm.Retry // wait until from has changed
//		}
//		from.Set(tx, from.Get(tx)-amount)
//		to.Set(tx, to.Get(tx)+amount)
//		return nil
//	})
//
// # Rules for transactions
//
// The function of a transaction may run several times, and a run may be dropped. So it only reads and writes Vars, and
// computes. It must not have effects: print, send, lock, start a task, or assign to variables that a dropped run would
// leave changed. AfterCommit is the place for effects. It must not suspend and must not run another transaction; both panic.
// Nested is a transaction within a transaction.
//
// A Var publishes values as they are. A transaction must not change the data that a pointer, a slice or a map in a Var
// leads to: other transactions see that data at the same time. It changes a copy, and Sets the copy.
//
// # Which function
//
// Atomically and Do run a transaction, and wait where it returns Retry. Try never waits. Op makes a transaction a case of
// suspend.Select, beside a receive, a lock and a timeout. OrElse composes transactions that may return Retry.
//
// Transactions compose where locks do not: two functions that take a *Tx are one transaction if one calls both. They cost
// more than a lock: a mutex or a channel is quicker wherever it is enough.
//
// # Source
//
// The interface comes from Harris, Marlow, Peyton Jones and Herlihy, "Composable Memory Transactions" (PPoPP 2005), and
// the algorithm from Riegel, Felber and Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (DISC 2006). Retry is
// an error and not a panic: it can be seen in a signature, and costs nothing.
package stm

import (
	"context"
	"sync"

	"github.com/braidgo/braid/suspend"
)

// Atomically runs f as a transaction: what f writes with tx happens at once, when f returns nil, or not at all. If
// something that f has read has changed by then, Atomically runs f again. Every run reads values of one
// moment, even if it will be dropped.
//
// If f returns Retry, Atomically suspends the caller until a commit has written one of the Vars that f has read, and then
// runs f again; it panics if f has read nothing. If f returns another error, nothing is written, and Atomically returns that
// error. If f panics or calls runtime.Goexit, nothing is written, and the panic goes on.
//
// If ctx is done before the first run, before another run, or while the caller waits, Atomically returns the error of the
// cancellation, and nothing is written. If ctx is done and a Var changes at once, one of the two wins.
//
// Some transaction always makes progress: only a commit makes another run vain. A transaction that has failed ten times
// is the elder, and all others wait, suspended, before they commit until the elder has ended. There is no other
// fairness. The waiters of a Var are resumed in the order in which they came.
//
// A commit synchronizes before the return of each Get and each Load that sees its writes.
func Atomically(ctx context.Context, f func(tx *Tx) error) error {
	hooks, err := atomically(ctx, f)
	if len(hooks) > 0 {
		callAll(hooks)
	}
	return err
}

// Do is Atomically with a result, which is zero if it returns an error.
func Do[T any](ctx context.Context, f func(tx *Tx) (T, error)) (T, error) {
	if f == nil {
		panic(nilFunction)
	}
	var v, zero T
	err := Atomically(ctx, func(tx *Tx) (err error) {
		v, err = f(tx)
		return err
	})
	if err != nil {
		return zero, err
	}
	return v, nil
}

// Try is Atomically without waiting: it reports whether the transaction has committed. If f returns Retry, Try returns false
// and nil. Try never suspends, so it may be used in a callback, and it does not wait for the elder.
func Try(f func(tx *Tx) error) (ok bool, err error) {
	suspend.Point()
	ok, hooks, err := try(f)
	callAll(hooks)
	return ok, err
}

func atomically(ctx context.Context, f func(tx *Tx) error) (hooks []func(), err error) {
	if f == nil {
		panic(nilFunction)
	}
	suspend.Preemptible()
	if err := suspend.Err(ctx); err != nil {
		return nil, err
	}
	tx := idle.Get().(*Tx)
	defer tx.end()
	for {
		o, err := tx.attempt(f)
		for o == behind {
			if err := tx.giveWay(ctx); err != nil {
				return nil, err
			}
			o = tx.commit()
		}
		switch o {
		case committed:
			return tx.takeHooks(), nil
		case failed:
			return nil, err
		case retry:
			err = tx.wait(ctx)
		case conflict:
			tx.age()
			err = suspend.Err(ctx)
		}
		if err != nil {
			return nil, err
		}
		tx.reset()
	}
}

func try(f func(tx *Tx) error) (ok bool, hooks []func(), err error) {
	if f == nil {
		panic(nilFunction)
	}
	tx := idle.Get().(*Tx)
	defer tx.end()
	tx.overtakes = true
	for {
		switch o, err := tx.attempt(f); o {
		case committed:
			return true, tx.takeHooks(), nil
		case failed, retry:
			return false, nil, err
		}
		tx.age()
		tx.reset()
	}
}

const nilFunction = "stm: nil function"

// inside is in force while f runs.
var inside = suspend.NewBan("stm: a transaction must not suspend")

var idle = sync.Pool{New: func() any { return new(Tx) }}

// attempt runs f once, and commits if nothing is in the way. Its error is nil unless the outcome is failed.
func (tx *Tx) attempt(f func(tx *Tx) error) (outcome, error) {
	tx.now = clock.Load()
	err := tx.run(f)
	switch {
	case tx.doomed:
		return conflict, nil
	case err == nil:
		return tx.commit(), nil
	case isRetry(err):
		return retry, nil
	}
	return failed, err
}

// commit commits a run that has succeeded.
func (tx *Tx) commit() outcome {
	if len(tx.writes) == 0 { // the snapshot was of one moment since the transaction began
		return committed
	}
	guard.Lock()
	o := tx.commitLocked(portion)
	guard.Unlock()
	if len(tx.nodes) > 0 {
		tx.wakeRest()
	}
	return o
}

// run calls f. Its result is void if tx is doomed then.
func (tx *Tx) run(f func(tx *Tx) error) error {
	entered, ok := inside.Enter()
	if !ok {
		panic("stm: transaction inside a transaction")
	}
	defer tx.leave(entered)
	return f(tx)
}

// leave is the end of f. It ends the panic of a doomed run, whatever f has made of that. Any other panic goes on, with its own
// stack.
func (tx *Tx) leave(entered suspend.Entered) {
	inside.Exit(entered)
	if tx.doomed {
		_ = recover()
	}
}

// callAll calls functions of AfterCommit. Each is called, also if one before it panics or exits.
func callAll(hooks []func()) {
	next := 0
	defer func() {
		if next < len(hooks) {
			callAll(hooks[next:])
		}
	}()
	for next < len(hooks) {
		next++
		hooks[next-1]()
	}
}

// takeHooks returns the functions of AfterCommit, for the caller to call once tx has ended.
func (tx *Tx) takeHooks() []func() {
	hooks := tx.hooks
	if len(hooks) > 0 {
		tx.hooks = nil
	}
	return hooks
}

// end is called when the transaction is over, however that came.
func (tx *Tx) end() {
	tx.stepDown()
	tx.reset()
	tx.now, tx.overtakes = over, false
	if cap(tx.reads) <= many && cap(tx.writes) <= many {
		idle.Put(tx)
	}
}

// many is how many reads and writes a Tx may have room for that is used again. To make the room anew for each run costs a large
// transaction thirty times what its reads do.
const many = 1 << 20

// reset makes tx ready for another run.
func (tx *Tx) reset() {
	if n := len(tx.reads); n > few {
		clear(tx.reads)
	} else {
		for i := range n { // quicker than a call
			at := &tx.reads[i]
			at.of, at.seen = nil, nil
		}
	}
	tx.reads = tx.reads[:0]
	if len(tx.writes) > 0 {
		tx.truncate(0)
	}
	if len(tx.hooks) > 0 {
		tx.hooks = nil
	}
	tx.level, tx.dense, tx.doomed = 0, 0, false
}
