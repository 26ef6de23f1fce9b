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
// of the arguments. Without futures, the Op fails with an error that is suspend.ErrAbandoned.
func Any[T any](futures ...Future[T]) suspend.Op[T] {
	return combine(futures, func(err error) bool { return err == nil }, func(fs []*Promise[T], last int) (v T, _ error) {
		if len(fs) == 0 {
			return v, errAbandoned
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

// Race returns an Op that waits for the first result, a value or an error. Without futures, the Op fails with an error that is
// suspend.ErrAbandoned.
func Race[T any](futures ...Future[T]) suspend.Op[T] {
	return combine(futures, func(error) bool { return true }, func(fs []*Promise[T], last int) (v T, _ error) {
		if len(fs) == 0 {
			return v, errAbandoned
		}
		return fs[last].value, fs[last].err
	})
}

// combine returns the Op of All, Any or Race. It copies futures, and keeps no reference to the caller's slice.
func combine[T, U any](futures []Future[T], decides func(err error) bool, result func(fs []*Promise[T], last int) (U, error)) suspend.Op[U] {
	fs, all := make([]*Promise[T], len(futures)), make([]followed, len(futures))
	for i, f := range futures {
		if f != nil {
			fs[i] = f.promise()
		}
		if fs[i] == nil {
			panic("promise: nil Future")
		}
		all[i] = fs[i]
	}
	made := suspend.OpOf[*combination](&combination{futures: all, decides: decides})
	return suspend.Map(made, func(c *combination, _ error) (U, error) {
		return result(fs, c.last)
	})
}

// A combination is one execution of All, Any or Race. From Prepare to Drop, it is listed as a follower of its futures. Resolve unlocks the
// promise's guard before it notifies the followers, so that a Select may lock the guards of promises and combinations in any order.
//
// A combination does not depend on the type of the values, so that a Promise of a new type does not add another copy of its code to a program.
//
// Invariant: each future is counted once, even if it is reported again after a Drop and another Prepare.
type combination struct {
	futures []followed
	decides func(err error) bool // reports whether the result of one future decides the operation
	ties    []tie                // is nil while the combination follows no future

	guard   suspend.Guard
	waiters suspend.Queue[*combination, struct{}]
	seen    []bool // says which futures are counted
	left    int    // the number of futures that are not yet counted
	last    int    // the index of the future that has decided the operation
	decided bool   // once true, it stays true, and last does not change
}

// A tie is the entry of a combination in the list of followers of one future.
type tie = dlist.Node[follower]

type follower struct {
	of *combination
	i  int
}

// A followed is a *Promise of any type.
type followed interface {
	unlessFilled(f func(followers *dlist.List[follower])) bool
	failure() error // returns the error of a filled promise
}

// Anew implements again.Maker: each Case, Do or Then gets its own combination.
func (c *combination) Anew() suspend.Source[*combination] {
	n := len(c.futures)
	return &combination{futures: c.futures, decides: c.decides, seen: make([]bool, n), left: n, decided: n == 0}
}

// Prepare implements again.Preparer.
func (c *combination) Prepare() {
	if c.ties != nil {
		return
	}
	c.ties = make([]tie, len(c.futures))
	for i, f := range c.futures {
		t := &c.ties[i]
		t.Value = follower{c, i}
		if !f.unlessFilled(func(followers *dlist.List[follower]) { followers.Push(t) }) {
			c.told(i)
		}
	}
}

// Settle implements again.Preparer.
func (c *combination) Settle() { c.Drop() }

// Drop implements again.Preparer.
func (c *combination) Drop() {
	for i := range c.ties {
		f := c.futures[i]
		f.unlessFilled(func(followers *dlist.List[follower]) { followers.Remove(&c.ties[i]) })
	}
	c.ties = nil
}

// told counts the i'th future, which must be filled, and decides the operation if no other future is needed.
func (c *combination) told(i int) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.seen[i] || c.decided {
		return
	}
	c.seen[i] = true
	if c.left--; c.left == 0 || c.decides(c.futures[i].failure()) {
		c.last, c.decided = i, true
		c.waiters.ResumeAll(c, nil)
	}
}

func (c *combination) Guard() *suspend.Guard                   { return &c.guard }
func (c *combination) Try() (_ *combination, ok bool, _ error) { return c, c.decided, nil }
func (c *combination) Enqueue(r suspend.Resumer[*combination]) { c.waiters.Push(r, struct{}{}) }
func (c *combination) Remove(r suspend.Resumer[*combination])  { c.waiters.Remove(r) }

func (p *Promise[T]) failure() error { return p.err }

// unlessFilled calls f with the followers of p, under its guard, if p is not filled, and reports whether it called f. Once p is filled, only
// the Resolve that filled p accesses its followers.
func (p *Promise[T]) unlessFilled(f func(followers *dlist.List[follower])) bool {
	p.guard.Lock()
	defer p.guard.Unlock()
	filled := p.filled.Load()
	if !filled {
		f(&p.followers)
	}
	return !filled
}
