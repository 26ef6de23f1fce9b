package collections

import "github.com/braidgo/braid/stm"

// A Queue is a first-in, first-out queue. A Put and a Take rarely conflict, unless the queue is almost empty or almost
// full.
type Queue[T any] struct {
	first, last stm.Var[*link[T]]
	bounded     bool
	free        stm.Var[int] // the number of free places for the next Puts
	taken       stm.Var[int] // the number of places freed by Takes; Put moves them to the field free when it is 0
}

// A link is an element of a queue.
type link[T any] struct {
	x    T
	next stm.Var[*link[T]]
}

// NewQueue returns a Queue that is full when it holds as many values as the given bound, which must be at least 1. The
// zero Queue is never full.
func NewQueue[T any](bound int) *Queue[T] {
	if bound < 1 {
		panic("collections: NewQueue with room for less than one value")
	}
	q := &Queue[T]{bounded: true}
	if _, err := stm.Try(func(tx *stm.Tx) error { q.free.Set(tx, bound); return nil }); err != nil {
		panic(err) // the function returns no error
	}
	return q
}

// Put appends x. It returns stm.Retry if q is full.
func (q *Queue[T]) Put(tx *stm.Tx, x T) error {
	if q.bounded {
		free := q.free.Get(tx)
		if free == 0 {
			if free = q.taken.Get(tx); free == 0 {
				return stm.Retry
			}
			q.taken.Set(tx, 0)
		}
		q.free.Set(tx, free-1)
	}
	l := &link[T]{x: x}
	if last := q.last.Get(tx); last != nil {
		last.next.Set(tx, l)
	} else {
		q.first.Set(tx, l)
	}
	q.last.Set(tx, l)
	return nil
}

// Take removes the first value and returns it. It returns stm.Retry if q is empty.
func (q *Queue[T]) Take(tx *stm.Tx) (x T, err error) {
	l := q.first.Get(tx)
	if l == nil {
		return x, stm.Retry
	}
	next := l.next.Get(tx)
	if q.first.Set(tx, next); next == nil {
		q.last.Set(tx, nil)
	}
	if q.bounded {
		q.taken.Set(tx, q.taken.Get(tx)+1)
	}
	return l.x, nil
}
