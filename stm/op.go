package stm

import (
	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/suspend"
)

// Op returns the transaction f as an operation: a case of a suspend.Select alongside others, or an argument of suspend.Then,
// suspend.Choose or suspend.Map. The case is ready if f does not return Retry. The writes of f take effect atomically with
// the choice of the case, and a case that is not chosen writes nothing. If f returns Retry, the case waits until a Var that
// f has read changes, and then runs f again. If f returns another error, the case is ready, and this error is its Result.
//
// Select calls f in the calling task, once or several times, without holding a lock. suspend.Then calls f first on the
// calling goroutine, and later on the executor. Functions that f registers with AfterCommit run before Select returns.
// With suspend.Then they run on the executor, before the continuation, and must not suspend.
//
// A case whose runs have failed ten times is the elder (see Atomically) during its next attempt, so that this attempt
// succeeds. A case waits while another transaction is the elder. Select panics if f returns Retry without having read a
// Var.
func Op[T any](f func(tx *Tx) (T, error)) suspend.Op[T] {
	if f == nil {
		panic(nilFunction)
	}
	return suspend.OpOf[T](maker[T](f))
}

// A maker makes a new operation for each use of the Op. As a Source it is never ready, because suspend.OpOf calls only
// Anew.
type maker[T any] func(tx *Tx) (T, error)

// Anew implements again.Maker.
func (f maker[T]) Anew() suspend.Source[T] { return &operation[T]{f: f} }

func (maker[T]) Guard() *suspend.Guard          { return &guard }
func (maker[T]) Try() (v T, ok bool, err error) { return v, false, nil }
func (maker[T]) Enqueue(suspend.Resumer[T])     {}
func (maker[T]) Remove(suspend.Resumer[T])      {}

// An operation is a transaction in the form of an again.Preparer. Prepare runs it, Try commits it, and Settle calls its
// AfterCommit functions.
//
//	new      -Prepare> ran ready      f has returned nil
//	                   ran retry      f has returned Retry
//	                   ran failed     f has returned another error
//	                   ran conflict   the snapshot was no longer valid
//	ready    -Try>     committed; or the case waits for the elder; or again.Err, if a Var has changed
//	retry    -Try>     the case waits; or again.Err, if a Var has changed
//	failed   -Try>     the case has won
//	conflict -Try>     again.Err
//
// A case can be the elder only between a Prepare and the following Try or Drop, because a Select does not wait in between.
type operation[T any] struct {
	f     func(tx *Tx) (T, error)
	tx    *Tx // a new or dropped operation has no Tx
	fails int // the failed runs of a dropped Tx
	v     T
	err   error
	ran   outcome
	r     suspend.Resumer[T]
}

func (o *operation[T]) Guard() *suspend.Guard { return &guard }

func (o *operation[T]) Prepare() {
	tx := o.tx
	if tx == nil {
		tx = idle.Get().(*Tx)
		o.tx, tx.fails = tx, o.fails
	} else {
		tx.reset()
	}
	tx.claimElder()
	tx.now = clock.Load()
	o.err = tx.run(func(tx *Tx) (err error) {
		o.v, err = o.f(tx)
		return err
	})
	if o.err != nil {
		var zero T
		o.v = zero
	}
	switch {
	case tx.doomed:
		o.ran = conflict
		tx.failed()
	case o.err == nil:
		o.ran = ready
	case isRetry(o.err):
		o.ran = retry
		tx.prepareWait()
	default:
		o.ran = failed
	}
}

func (o *operation[T]) Try() (_ T, ok bool, err error) {
	ok, err = o.try()
	o.tx.stepDownLocked() // the Select may wait before the next Prepare
	return o.v, ok, err
}

func (o *operation[T]) try() (ok bool, err error) {
	switch o.ran {
	case ready:
		if len(o.tx.writes) > 0 {
			switch o.tx.commitLocked(all) { // every waiter is resumed here, since the guard stays locked for other cases
			case behind:
				return false, nil
			case conflict:
				o.tx.failed()
				return true, again.Err
			}
		}
		return true, nil
	case failed:
		return true, o.err
	case retry:
		if o.tx.unchangedLocked(len(o.tx.reads)) {
			return false, nil
		}
	}
	return true, again.Err
}

func (o *operation[T]) Enqueue(r suspend.Resumer[T]) {
	o.r = r
	if o.ran == retry {
		o.tx.waitLocked(o)
	} else {
		o.tx.queueLocked(o)
	}
}

func (o *operation[T]) Remove(suspend.Resumer[T]) { o.tx.stopWaitLocked() }

func (o *operation[T]) resumeLocked() {
	var zero T
	o.r.Resume(zero, again.Err)
}

// Settle ends the Tx and calls its AfterCommit functions.
func (o *operation[T]) Settle() {
	hooks, err := o.tx.takeHooks(), o.err
	o.Drop()
	o.fails = 0
	if err == nil {
		callAll(hooks)
	}
}

// Drop ends the Tx.
func (o *operation[T]) Drop() {
	var zero T
	o.v, o.err = zero, nil
	if tx := o.tx; tx != nil {
		o.tx, o.fails = nil, tx.fails
		tx.recycle()
	}
}
