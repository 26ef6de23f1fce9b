package promise

import (
	"errors"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// All returns an Op that waits for the values of all futures, and returns them in the order of the arguments. The Op fails with the first
// error, without waiting for the other futures. Without futures, the Op is ready at once.
//
//	pages, err := suspend.Do(ctx, promise.All(first, second))
//
// Like every Op, this Op does nothing until it is performed, and leaves no entry in the futures. If several futures are already filled when
// the Op is performed, the first in the order of the arguments counts as the first result. A task that was woken by one future may fill
// another future before the Op checks the futures, so the first result is not always the earliest. All, Any and Race panic if a Future is
// nil.
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

// Any returns an Op that waits for the first value without an error. If all futures fail, the Op fails with all errors, joined in the order
// of the arguments. Without futures, the Op fails with ErrAbandoned.
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

// Race returns an Op that waits for the first result, a value or an error. Without futures, the Op fails with ErrAbandoned.
func Race[T any](futures ...Future[T]) suspend.Op[T] {
	return combine(futures, func(error) bool { return true }, func(fs []*Promise[T], last int) (v T, _ error) {
		if len(fs) == 0 {
			return v, ErrAbandoned
		}
		return fs[last].value, fs[last].err
	})
}

// combine returns the Op of All, Any or Race. It copies futures, and keeps no reference to the caller's slice.
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

// A combination is one execution of All, Any or Race. From Prepare to Drop, it is listed as a follower of its futures. Resolve unlocks the
// promise's guard before it notifies the followers, so that a Select may lock the guards of promises and combinations in any order.
//
// Invariant: each future is counted once, even if it is reported again after a Drop and another Prepare.
type combination[T any] struct {
	futures []*Promise[T]
	decides func(err error) bool // reports whether the result of one future decides the operation
	ties    []tie[T]             // is nil while the combination follows no future

	guard   suspend.Guard
	waiters suspend.Queue[*combination[T], struct{}]
	seen    []bool // says which futures are counted
	left    int    // the number of futures that are not yet counted
	last    int    // the index of the future that has decided the operation
	decided bool   // once true, it stays true, and last does not change
}

// A tie is the entry of a combination in the list of followers of one future.
type tie[T any] = dlist.Node[follower[T]]

type follower[T any] struct {
	of *combination[T]
	i  int
}

// Anew implements again.Maker: each Case, Do or Then gets its own combination.
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

// told counts the i'th future, which must be filled, and decides the operation if no other future is needed.
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

// unlessFilled calls f under the guard of p if p is not filled, and reports whether it called f. Once p is filled, only the Resolve that
// filled p accesses its followers.
func (p *Promise[T]) unlessFilled(f func()) bool {
	p.guard.Lock()
	defer p.guard.Unlock()
	filled := p.filled.Load()
	if !filled {
		f()
	}
	return !filled
}
