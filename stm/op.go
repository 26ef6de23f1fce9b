package stm

import (
	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/suspend"
)

// Op returns the transaction f as an operation: a case of a suspend.Select beside others, or an argument of suspend.Then,
// suspend.Choose or suspend.Map. It is performed if f does not return Retry, and then its writes happen at once with the
// choice of the case. A case that is not chosen has written nothing. While f returns Retry, the case waits until a Var that
// f has read has changed. If f returns another error, the case is chosen, and this error is its Result.
//
// f runs under no lock, once or several times, in the task of the Select; with Then on the calling goroutine first, and
// later on the executor. Functions of AfterCommit run before Select returns, and with Then on the executor before the
// continuation, where they must not suspend.
//
// A case that others have made vain ten times is the elder while it is looked at, so that its next look succeeds; it waits while there is
// another elder. Select panics if f returns Retry and has read nothing.
func Op[T any](f func(tx *Tx) (T, error)) suspend.Op[T] {
	if f == nil {
		panic(nilFunction)
	}
	return suspend.OpOf[T](maker[T](f))
}

// A maker makes the operation of a Case, or of one Do or Then. It is a Source that is never ready, since suspend.OpOf calls Anew alone.
type maker[T any] func(tx *Tx) (T, error)

// Anew implements again.Maker.
func (f maker[T]) Anew() suspend.Source[T] { return &operation[T]{f: f} }

func (maker[T]) Guard() *suspend.Guard          { return &guard }
func (maker[T]) Try() (v T, ok bool, err error) { return v, false, nil }
func (maker[T]) Enqueue(suspend.Resumer[T])     {}
func (maker[T]) Remove(suspend.Resumer[T])      {}

// An operation is a Tx as an again.Preparer. Prepare runs it, Try commits it, and Settle calls the functions of AfterCommit.
//
//	new      -Prepare> ran ready      f has returned nil
//	                   ran retry      f has returned Retry
//	                   ran failed     f has returned another error
//	                   ran conflict   the snapshot was gone
//	ready    -Try>     committed, or the case waits behind the elder, or again: something has changed
//	retry    -Try>     the case waits, or again
//	failed   -Try>     the case has won
//	conflict -Try>     again
//
// A case may be the elder from Prepare to Try, or to Drop: a Select does not wait in between.
type operation[T any] struct {
	f     func(tx *Tx) (T, error)
	tx    *Tx // a new or dropped operation has none
	fails int // the dropped Tx's failures
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
	tx.claim()
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
		tx.requireReads()
		tx.stepDown()
		tx.dropWrites()
	default:
		o.ran = failed
	}
}

func (o *operation[T]) Try() (_ T, ok bool, err error) {
	ok, err = o.try()
	o.tx.stepDownLocked() // there is no telling when the next look is
	return o.v, ok, err
}

func (o *operation[T]) try() (ok bool, err error) {
	switch o.ran {
	case ready:
		if len(o.tx.writes) > 0 {
			switch o.tx.commitLocked(all) { // all waiters are resumed, as the guard stays held for other cases
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
		if o.tx.validLocked() {
			return false, nil
		}
	}
	return true, again.Err
}

func (o *operation[T]) Enqueue(r suspend.Resumer[T]) {
	o.r = r
	if o.ran == retry {
		o.tx.linkLocked(o)
	} else {
		o.tx.queueLocked(o)
	}
}

func (o *operation[T]) Remove(suspend.Resumer[T]) { o.tx.unlinkLocked() }

func (o *operation[T]) resumeLocked() {
	var zero T
	o.r.Resume(zero, again.Err)
}

// Settle ends the Tx, and calls the functions of AfterCommit.
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
		tx.end()
	}
}
