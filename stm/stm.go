// Package stm provides software transactional memory: a transaction reads and writes variables, and takes effect
// atomically or not at all. A transaction that cannot proceed returns Retry, which suspends its task, on any scheduler,
// until a variable that the transaction has read changes.
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
// The function of a transaction may run several times, and any run may be dropped. Therefore the function must only
// compute, and read and write Vars. It must have no other effects: it must not print, send, lock, start a task, or assign
// to variables that a dropped run would leave changed. Use AfterCommit for effects. A transaction that suspends or starts
// another transaction panics; Nested runs a transaction within a transaction.
//
// A Var does not copy the data that its value refers to. A transaction must not modify the data behind a pointer, a slice
// or a map in a Var, because other transactions read the same data concurrently. Modify a copy, and Set the copy.
//
// # Which function
//
// Atomically and Do run a transaction, and wait if it returns Retry. Try never waits. Op turns a transaction into a case of
// suspend.Select, together with other cases such as a receive, a lock or a timeout. OrElse tries alternatives until one does not
// return Retry.
//
// Transactions compose, unlike locks: a transaction may call several functions that take a *Tx, and their effects are
// atomic together. A transaction costs more than a lock, so prefer a mutex or a channel where it is sufficient. Prefer a
// lock also for state that every transaction writes, since only one of the runs can commit, and for long work.
//
// # Source
//
// The interface comes from Harris, Marlow, Peyton Jones and Herlihy, "Composable Memory Transactions" (PPoPP 2005), and
// the algorithm from Riegel, Felber and Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (DISC 2006). In this
// package, Retry is an error rather than a panic, so that it is visible in signatures and costs nothing.
package stm

import (
	"context"
	"sync"

	"github.com/braidgo/braid/suspend"
)

// Atomically runs f as a transaction. When f returns nil, all its writes take effect atomically. If a Var that f has read
// has changed by then, Atomically instead drops the run and calls f again. Every run reads a consistent snapshot of the
// Vars, even if it is dropped later.
//
// If f returns Retry, Atomically suspends the caller until a commit has written one of the Vars that f has read, and then
// calls f again. Atomically panics if f returns Retry without having read a Var. If f returns another error, nothing is
// written, and Atomically returns that error. If f panics or calls runtime.Goexit, nothing is written, and the panic or
// exit continues.
//
// If ctx ends before any run or while the caller waits, Atomically returns the cancellation error, and nothing is written.
// If ctx ends while a Var changes, either event may win.
//
// Some transaction always makes progress, because a run fails only if another transaction has committed. A transaction
// whose runs have failed ten times becomes the elder: until it has ended, all other transactions suspend before they
// commit. There is no other guarantee of fairness. Waiters for a Var are resumed in order of arrival.
//
// A commit synchronizes before the return of each Get and each Load that sees its writes.
func Atomically(ctx context.Context, f func(tx *Tx) error) error {
	hooks, err := atomically(ctx, f)
	if len(hooks) > 0 {
		callAll(hooks)
	}
	return err
}

// Do runs f as Atomically does and returns its result. The result is the zero T if Do returns an error.
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

// Try runs f as Atomically does, but without waiting, and reports whether the transaction has committed. If f returns
// Retry, Try returns false and nil. Try never suspends, not even for the elder, so it may be called in a callback.
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
	defer tx.recycle()
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
	defer tx.recycle()
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

// inside is a ban on suspending while the function of a transaction runs.
var inside = suspend.NewBan("stm: a transaction must not suspend")

var idle = sync.Pool{New: func() any { return new(Tx) }}

// attempt runs f once, and tries to commit if f returns nil. The error is nil unless the outcome is failed.
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

// commit tries to commit a run in which f has returned nil.
func (tx *Tx) commit() outcome {
	if len(tx.writes) == 0 { // a run without writes needs no check, since its snapshot is consistent
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

// run calls f. The caller must ignore the result if tx is doomed.
func (tx *Tx) run(f func(tx *Tx) error) error {
	entered, ok := inside.Enter()
	if !ok {
		panic("stm: transaction inside a transaction")
	}
	defer tx.leaveRun(entered)
	return f(tx)
}

// leaveRun runs after f, as a deferred call. If tx is doomed, leaveRun recovers the panic that unwinds the run, even if f has
// replaced it with another panic. Any other panic continues with its original stack.
func (tx *Tx) leaveRun(entered suspend.Entered) {
	inside.Exit(entered)
	if tx.doomed {
		_ = recover()
	}
}

// callAll calls all hooks in order, even if a hook panics or calls runtime.Goexit.
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

// takeHooks removes and returns the AfterCommit functions. The caller must call them after tx has ended.
func (tx *Tx) takeHooks() []func() {
	hooks := tx.hooks
	if len(hooks) > 0 {
		tx.hooks = nil
	}
	return hooks
}

// recycle resets tx and returns it to the pool. It runs at the end of every transaction, even after a panic.
func (tx *Tx) recycle() {
	tx.stepDown()
	tx.reset()
	tx.now, tx.overtakes = over, false
	if cap(tx.reads) <= many && cap(tx.writes) <= many {
		idle.Put(tx)
	}
}

// many is the largest capacity of the two logs with which a Tx returns to the pool. For a large transaction, allocating the
// logs costs thirty times as much as its reads.
const many = 1 << 20

// reset makes tx ready for another run.
func (tx *Tx) reset() {
	if tx.wide {
		tx.unlinkWide()
	}
	if n := len(tx.reads); n > few {
		clear(tx.reads)
	} else {
		for i := range n { // this loop is faster than clear() for a few reads
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
