// Package collections has collections for transactions: a Map, a Queue, a Slot and a Counter. Each is made of Vars, by the public API of
// package stm alone, so operations on several of them are one transaction, and wait together:
//
//	err := stm.Atomically(ctx, func(tx *stm.Tx) error {
//		order, err := orders.Take(tx) // waits for one
//		if err != nil {
//			return err
//		}
//		stock, _ := inStock.Get(tx, order.Item)
//		if err := collections.Check(stock >= order.Number); err != nil {
//			return err // waits until there are more, and the order stays in the queue
//		}
//		inStock.Set(tx, order.Item, stock-order.Number)
//		return shipped.Put(tx, order)
//	})
//
// A Var that holds a map or a slice would have to be copied for each change, and all changes of it would conflict. Here transactions on
// different keys, and the two ends of a queue, rarely do. Outside of transactions a mutex and a plain map are quicker.
//
// The zero value of each collection is empty and ready to use. None may be copied. A Var publishes
// values as they are, so change a copy and Set that.
package collections

import "github.com/braidgo/braid/stm"

// Modify sets v to what f makes of its value, and returns that. f may run several times.
func Modify[T any](tx *stm.Tx, v *stm.Var[T], f func(T) T) T {
	x := f(v.Get(tx))
	v.Set(tx, x)
	return x
}

// Check returns nil if ok, and else stm.Retry: a transaction that returns it waits until something that it has read changes.
func Check(ok bool) error {
	if ok {
		return nil
	}
	return stm.Retry
}

// A Slot holds a value or is empty: a channel of one, or an MVar.
type Slot[T any] struct{ v stm.Var[*T] }

// Put fills s. It returns stm.Retry while s is full.
func (s *Slot[T]) Put(tx *stm.Tx, x T) error {
	if s.v.Get(tx) != nil {
		return stm.Retry
	}
	s.v.Set(tx, &x)
	return nil
}

// Take empties s and returns its value. It returns stm.Retry while s is empty.
func (s *Slot[T]) Take(tx *stm.Tx) (x T, err error) {
	if x, err = s.Read(tx); err == nil {
		s.v.Set(tx, nil)
	}
	return x, err
}

// Read returns the value of s, which stays. It returns stm.Retry while s is empty.
func (s *Slot[T]) Read(tx *stm.Tx) (x T, err error) {
	p := s.v.Get(tx)
	if p == nil {
		return x, stm.Retry
	}
	return *p, nil
}

// Full reports whether s holds a value.
func (s *Slot[T]) Full(tx *stm.Tx) bool { return s.v.Get(tx) != nil }

// A Counter is a number. All transactions that Add to one conflict.
type Counter struct{ n stm.Var[int64] }

// Add adds d, which may be negative, and returns the sum.
func (c *Counter) Add(tx *stm.Tx, d int64) int64 {
	return Modify(tx, &c.n, func(n int64) int64 { return n + d })
}

// Value returns the number.
func (c *Counter) Value(tx *stm.Tx) int64 { return c.n.Get(tx) }

// AtMost returns stm.Retry while c is more than n.
func (c *Counter) AtMost(tx *stm.Tx, n int64) error { return Check(c.n.Get(tx) <= n) }
