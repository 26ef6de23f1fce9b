package promise

import (
	"context"
	"errors"
	"weak"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrAbandoned is the error of a promise that will have no value: its function ended by runtime.Goexit or by a panic, or it is the Any
// or Race of no futures.
var ErrAbandoned = outcome.Named("promise: abandoned", suspend.ErrAbandoned)

// Go runs f as a task of on, and returns the promise of its results. If on refuses, the promise fails with that error. If f exits by
// runtime.Goexit or panics, the promise fails with ErrAbandoned, and on treats the exit as that of any task. ctx is passed to f. A done
// ctx does not keep f from running. A nil Spawner or a nil function panics.
func Go[T any](ctx context.Context, on suspend.Spawner, f func(ctx context.Context) (T, error)) *Promise[T] {
	if on == nil || f == nil {
		panic("promise: Go without a Spawner or a function")
	}
	p := New[T]()
	err := on.Go(func() {
		returned := false
		defer func() {
			if !returned {
				_ = p.Fail(ErrAbandoned)
			}
		}()
		v, err := f(ctx)
		returned = true
		_ = p.Resolve(v, err)
	})
	if err != nil {
		_ = p.Fail(err)
	}
	return p
}

// All returns the promise of all values, in the order of futures. It fails with the first error, without waiting for the others. All of
// no futures is filled.
func All[T any](futures ...Future[T]) *Promise[[]T] {
	c := newCombination[T, []T](futures)
	c.decide = func(left int, _ T, err error) (vs []T, _ error, decided bool) {
		if err != nil || left > 0 {
			return nil, err, err != nil
		}
		vs = make([]T, len(c.futures))
		for i, f := range c.futures {
			vs[i], _, _ = f.Try()
		}
		return vs, nil, true
	}
	return c.begin(nil, nil)
}

// Any returns the promise of the first value that arrives without an error. If all futures fail, it fails with all errors, joined in
// their order. Any of no futures fails with ErrAbandoned.
func Any[T any](futures ...Future[T]) *Promise[T] {
	c := newCombination[T, T](futures)
	c.decide = func(left int, v T, err error) (_ T, _ error, decided bool) {
		if err == nil || left > 0 {
			return v, nil, err == nil
		}
		errs := make([]error, len(c.futures))
		for i, f := range c.futures {
			_, _, errs[i] = f.Try()
		}
		return v, errors.Join(errs...), true
	}
	return c.begin(*new(T), ErrAbandoned)
}

// Race returns the promise of the first result, a value or an error. Race of no futures fails with ErrAbandoned.
func Race[T any](futures ...Future[T]) *Promise[T] {
	c := newCombination[T, T](futures)
	c.decide = func(_ int, v T, err error) (T, error, bool) { return v, err, true }
	return c.begin(*new(T), ErrAbandoned)
}

// A combination follows futures until its result is filled, by their decision or by its owner, or until it is garbage. It costs
// no task and no goroutine.
type combination[T, U any] struct {
	combined
	decide func(left int, v T, err error) (u U, failure error, decided bool)
	result Promise[U]
	itself place // a combination is the first follower of its own result

	guard   suspend.Guard // decide is called under it, for one future at a time, until it has decided
	futures []*Promise[T] // nil once decided
	left    int
}

// newCombination panics if one of futures is nil. It keeps no reference to the caller's slice.
func newCombination[T, U any](futures []Future[T]) *combination[T, U] {
	c := &combination[T, U]{futures: make([]*Promise[T], len(futures)), left: len(futures)}
	for i, f := range futures {
		if f != nil {
			c.futures[i] = f.promise()
		}
		if c.futures[i] == nil {
			panic("promise: nil Future")
		}
	}
	return c
}

// begin returns the result. (v, err) fills it if there are no futures.
func (c *combination[T, U]) begin(v U, err error) *Promise[U] {
	p := &c.result
	if c.left == 0 {
		_ = p.Resolve(v, err)
		return p
	}
	c.decider = c
	t := &ties{to: weak.Make(&c.combined), each: make([]tie, c.left)}
	each := t.each // t.each is nil as soon as a future has decided
	for i, f := range c.futures {
		each[i] = tie{all: t, i: i, at: f}
		each[i].Value = &each[i]
	}
	p.ties, c.itself.Value = t, c
	p.add(&c.itself)
	for i := range each {
		if e := &each[i]; !e.at.add(&e.place) {
			tell(e.filled())
		}
		if p.filled.Load() { // the rest need not be followed, nor a future that was added meanwhile
			for i := range each {
				each[i].at.remove(&each[i].place)
			}
			return p
		}
	}
	return p
}

// told is called when the i'th future is filled.
func (c *combination[T, U]) told(i int) (more followers) {
	c.guard.Lock()
	if c.futures == nil {
		c.guard.Unlock()
		return more
	}
	v, _, err := c.futures[i].Try()
	c.left--
	u, failure, decided := c.decide(c.left, v, err)
	if decided {
		c.futures = nil // later futures change nothing, though the result has yet to be filled
	}
	c.guard.Unlock()
	if decided {
		more, _ = c.result.resolve(u, failure) // or the owner has done so
	}
	return more
}

// filled is called when the result is.
func (c *combination[T, U]) filled() (none followers) {
	c.guard.Lock()
	c.futures = nil
	c.guard.Unlock()
	c.result.ties.cut()
	return none
}

func (c *combination[T, U]) gone() bool { return false }
