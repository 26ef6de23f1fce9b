package promise

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrAbandoned is the error of a promise that will have no value, because its function ended by runtime.Goexit or by a panic. It is also
// the error of Any and Race of no futures.
var ErrAbandoned = outcome.Named("promise: abandoned", suspend.ErrAbandoned)

// Go runs f as a task of on, and returns the promise of its results. If on refuses, the promise fails with that error. If f exits by
// runtime.Goexit or panics, the promise fails with ErrAbandoned, and on treats the exit as it does in any task. ctx is passed to f. A done
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
				p.Fail(ErrAbandoned)
			}
		}()
		v, err := f(ctx)
		returned = true
		p.Resolve(v, err)
	})
	if err != nil {
		p.Fail(err)
	}
	return p
}

// All is the operation that waits for the values of all futures, and returns them in the order of futures. It fails with the first
// error, without waiting for the rest. All of no futures is ready.
//
//	pages, err := suspend.Do(ctx, promise.All(first, second))
//
// Like every Op, All, Any and Race do nothing until they are performed, and leave nothing behind with the futures afterwards. Of the
// futures that are filled by then, the first in the order of futures counts as the first. A task that a future has woken may fill another
// one before the operation looks, so that the consequence may count as the first. A nil Future panics.
func All[T any](futures ...Future[T]) suspend.Op[[]T] {
	return combine(futures, func(err error) bool { return err != nil }, func(fs []*Promise[T], last int) ([]T, error) {
		if len(fs) > 0 && fs[last].err != nil {
			return nil, fs[last].err
		}
		vs := make([]T, len(fs))
		for i, f := range fs {
			vs[i] = f.value
		}
		return vs, nil
	})
}

// Any is the operation that waits for the first value without an error. If all futures fail, it fails with all errors, joined in their
// order. Any of no futures fails with ErrAbandoned.
func Any[T any](futures ...Future[T]) suspend.Op[T] {
	return combine(futures, func(err error) bool { return err == nil }, func(fs []*Promise[T], last int) (v T, _ error) {
		if len(fs) == 0 {
			return v, ErrAbandoned
		}
		if fs[last].err == nil {
			return fs[last].value, nil
		}
		errs := make([]error, len(fs))
		for i, f := range fs {
			errs[i] = f.err
		}
		return v, errors.Join(errs...)
	})
}

// Race is the operation that waits for the first result, a value or an error. Race of no futures fails with ErrAbandoned.
func Race[T any](futures ...Future[T]) suspend.Op[T] {
	return combine(futures, func(error) bool { return true }, func(fs []*Promise[T], last int) (v T, _ error) {
		if len(fs) == 0 {
			return v, ErrAbandoned
		}
		return fs[last].value, fs[last].err
	})
}

// combine keeps no reference to the slice of the caller.
func combine[T, U any](futures []Future[T], decides func(err error) bool, result func(fs []*Promise[T], last int) (U, error)) suspend.Op[U] {
	fs := make([]*Promise[T], len(futures))
	for i, f := range futures {
		if f != nil {
			fs[i] = f.promise()
		}
		if fs[i] == nil {
			panic("promise: nil Future")
		}
	}
	made := suspend.OpOf[*combination[T]](&combination[T]{futures: fs, decides: decides})
	return suspend.Map(made, func(c *combination[T], _ error) (U, error) {
		return result(c.futures, c.last)
	})
}

// A combination is one performance of All, Any or Race. It follows its futures from Prepare to Drop. A promise that is filled notifies its
// followers under no guard, so that the guard of a combination may be locked before or after the guard of a promise.
//
// Invariant: a future is counted once, also if it reports again after a Drop and another Prepare.
type combination[T any] struct {
	futures []*Promise[T]
	decides func(err error) bool // the result of a future, though others are missing
	ties    []tie[T]             // is nil while it follows nothing

	guard   suspend.Guard
	waiters suspend.Queue[*combination[T], struct{}]
	seen    []bool // the futures that were counted
	left    int    // the number of futures that were not
	last    int    // the future that has decided
	decided bool   // never changes again, nor does last
}

// A tie is the place of a combination among the followers of its i'th future.
type tie[T any] = dlist.Node[follower[T]]

type follower[T any] struct {
	of *combination[T]
	i  int
}

// Anew makes the combination of a Case, or of one Do or Then.
func (c *combination[T]) Anew() suspend.Source[*combination[T]] {
	n := len(c.futures)
	return &combination[T]{futures: c.futures, decides: c.decides, seen: make([]bool, n), left: n, decided: n == 0}
}

// Prepare implements again.Preparer.
func (c *combination[T]) Prepare() {
	if c.ties != nil {
		return
	}
	c.ties = make([]tie[T], len(c.futures))
	for i, f := range c.futures {
		t := &c.ties[i]
		t.Value = follower[T]{c, i}
		if !f.unlessFilled(func() { f.followers.Push(t) }) {
			c.told(i)
		}
	}
}

// Settle implements again.Preparer.
func (c *combination[T]) Settle() { c.Drop() }

// Drop implements again.Preparer.
func (c *combination[T]) Drop() {
	for i := range c.ties {
		f := c.futures[i]
		f.unlessFilled(func() { f.followers.Remove(&c.ties[i]) })
	}
	c.ties = nil
}

// told is called when the i'th future is filled.
func (c *combination[T]) told(i int) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.seen[i] || c.decided {
		return
	}
	c.seen[i] = true
	if c.left--; c.left == 0 || c.decides(c.futures[i].err) {
		c.last, c.decided = i, true
		c.waiters.ResumeAll(c, nil)
	}
}

func (c *combination[T]) Guard() *suspend.Guard                      { return &c.guard }
func (c *combination[T]) Try() (_ *combination[T], ok bool, _ error) { return c, c.decided, nil }
func (c *combination[T]) Enqueue(r suspend.Resumer[*combination[T]]) { c.waiters.Push(r, struct{}{}) }
func (c *combination[T]) Remove(r suspend.Resumer[*combination[T]])  { c.waiters.Remove(r) }

// unlessFilled calls f under the guard of p, unless p is filled, and reports whether it has. Once p is filled, its followers belong to the
// caller of Fill.
func (p *Promise[T]) unlessFilled(f func()) bool {
	p.guard.Lock()
	defer p.guard.Unlock()
	filled := p.filled.Load()
	if !filled {
		f()
	}
	return !filled
}
