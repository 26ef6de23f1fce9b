package promise

import (
	"context"
	"errors"

	"github.com/braidgo/braid/suspend"
)

// ErrAbandoned is the error of a promise whose function ended without returning, by runtime.Goexit or by a panic.
var ErrAbandoned = errors.New("promise: abandoned")

// Go has f run as a task of on, and returns the promise of what it returns. If on refuses, the promise is failed with
// the error of the refusal. If f exits by runtime.Goexit, or panics, the promise is failed with ErrAbandoned, and
// otherwise these are the affair of on. ctx is for f; that it is done does not keep f from running.
func Go[T any](ctx context.Context, on suspend.Spawner, f func(ctx context.Context) (T, error)) *Promise[T] {
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

// All returns the promise of what all of futures are filled with, in their order. It fails with the first that fails,
// without waiting for the others. Of no futures it is filled.
func All[T any](futures ...Future[T]) *Promise[[]T] {
	c := &combination[T, []T]{futures: futures, left: len(futures)}
	c.decide = func(left int, _ T, err error) (vs []T, _ error, decided bool) {
		if err != nil || left > 0 {
			return nil, err, err != nil
		}
		vs = make([]T, len(futures))
		for i, f := range futures {
			vs[i], _, _ = f.Try()
		}
		return vs, nil, true
	}
	return c.begin(nil, nil)
}

// Any returns the promise of what the first of futures is filled with that does not fail. If all fail, it fails with
// all errors, joined. Of no futures it fails with ErrAbandoned: nothing will ever fill it.
func Any[T any](futures ...Future[T]) *Promise[T] {
	c := &combination[T, T]{futures: futures, left: len(futures)}
	c.decide = func(left int, v T, err error) (_ T, _ error, decided bool) {
		if err == nil || left > 0 {
			return v, nil, err == nil
		}
		errs := make([]error, len(futures))
		for i, f := range futures {
			_, errs[i], _ = f.Try()
		}
		return v, errors.Join(errs...), true
	}
	return c.begin(*new(T), ErrAbandoned)
}

// Race returns the promise of what the first of futures is filled or failed with. Of no futures it fails with
// ErrAbandoned.
func Race[T any](futures ...Future[T]) *Promise[T] {
	c := &combination[T, T]{futures: futures, left: len(futures)}
	c.decide = func(_ int, v T, err error) (T, error, bool) { return v, err, true }
	return c.begin(*new(T), ErrAbandoned)
}

// A combination follows futures until its own promise is filled. It costs no task and no goroutine: whoever fills a
// promise tells those that follow it, under no lock.
type combination[T, U any] struct {
	futures []Future[T]
	decide  func(left int, v T, err error) (u U, failure error, decided bool)
	result  Promise[U]

	guard   suspend.Guard // decide is called under it, for one future at a time, until it has decided
	left    int
	decided bool
}

// A follower is a combination, to the i'th of its futures. filled is called when that is filled, and returns those who
// follow the combination, if that is filled by it.
type follower interface{ filled() followers }

type followers map[follower]struct{}

// tell tells them, and those who follow them, not one inside the other: a chain may be long.
func (fs followers) tell() {
	if len(fs) == 0 {
		return
	}
	for todo := []followers{fs}; len(todo) > 0; {
		fs, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for f := range fs {
			if more := f.filled(); len(more) > 0 {
				todo = append(todo, more)
			}
		}
	}
}

type followed[T, U any] struct {
	c *combination[T, U]
	i int
}

// begin returns the promise; (v, err) is what it is filled with if there are no futures.
func (c *combination[T, U]) begin(v U, err error) *Promise[U] {
	if len(c.futures) == 0 {
		_ = c.result.Resolve(v, err)
	}
	for i, f := range c.futures {
		if !f.add(followed[T, U]{c, i}) {
			followed[T, U]{c, i}.filled() // whom nobody follows yet
		}
		if c.result.filled.Load() { // and the rest need not be followed
			c.unfollow()
			break
		}
	}
	return &c.result
}

func (f followed[T, U]) filled() (follow followers) {
	c := f.c
	v, err, _ := c.futures[f.i].Try()
	c.guard.Lock()
	var u U
	var failure error
	decides := false // and nobody after it, though it has yet to resolve
	if c.left--; !c.decided {
		u, failure, decides = c.decide(c.left, v, err)
		c.decided = decides
	}
	c.guard.Unlock()
	if decides {
		follow, _ = c.result.resolve(u, failure) // or its owner has done so
		c.unfollow()
	}
	return follow
}

// unfollow takes the combination off the futures that are not filled.
func (c *combination[T, U]) unfollow() {
	for i, f := range c.futures {
		f.remove(followed[T, U]{c, i})
	}
}

// add has f told when p is filled; false says that it is filled already.
func (p *Promise[T]) add(f follower) bool {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.filled.Load() {
		return false
	}
	if p.follow == nil {
		p.follow = followers{}
	}
	p.follow[f] = struct{}{}
	return true
}

func (p *Promise[T]) remove(f follower) {
	p.guard.Lock()
	defer p.guard.Unlock()
	delete(p.follow, f)
}
