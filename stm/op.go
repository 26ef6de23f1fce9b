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
	made := suspend.OpOf[*operation[T]](&operation[T]{f: f})
	return suspend.Map(made, func(o *operation[T], err error) (v T, _ error) {
		if err != nil {
			return v, err
		}
		return o.result()
	})
}

// An operation is a Tx as a Source. Prepare runs it, and Try commits it.
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
	tx    *Tx // nil: new, or dropped
	fails int // of a Tx that was dropped
	v     T
	err   error
	ran   outcome
	r     suspend.Resumer[*operation[T]]
}

func (o *operation[T]) Guard() *suspend.Guard { return &guard }

// Anew makes the operation of a Case, or of one Do or Then.
func (o *operation[T]) Anew() suspend.Source[*operation[T]] { return &operation[T]{f: o.f} }

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

func (o *operation[T]) Try() (_ *operation[T], ok bool, err error) {
	v, ok, err := o.try()
	o.tx.stepDownLocked() // there is no telling when the next look is
	return v, ok, err
}

func (o *operation[T]) try() (_ *operation[T], ok bool, err error) {
	switch o.ran {
	case ready:
		if len(o.tx.writes) > 0 {
			switch o.tx.commitLocked(all) { // the guard is held for other cases as well
			case behind:
				return nil, false, nil
			case conflict:
				o.tx.failed()
				return nil, true, again.Err
			}
		}
		return o, true, nil
	case failed:
		return o, true, nil
	case retry:
		if o.tx.validLocked() {
			return nil, false, nil
		}
	}
	return nil, true, again.Err
}

func (o *operation[T]) Enqueue(r suspend.Resumer[*operation[T]]) {
	o.r = r
	if o.ran == retry {
		o.tx.linkLocked(o)
	} else {
		o.tx.queueLocked(o)
	}
}

func (o *operation[T]) Remove(suspend.Resumer[*operation[T]]) { o.tx.unlinkLocked() }
func (o *operation[T]) resumeLocked()                         { o.r.Resume(nil, again.Err) }

// result ends the Tx, calls the functions of AfterCommit, and returns the result of f.
func (o *operation[T]) result() (v T, err error) {
	if err = o.err; err == nil {
		v = o.v
	}
	hooks := o.tx.takeHooks()
	o.Drop()
	o.fails = 0
	if err == nil {
		callAll(hooks)
	}
	return v, err
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
