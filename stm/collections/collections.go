// Package collections provides transactional collections: a Map, a Queue and a Slot. Each collection is built
// from stm.Vars with the public API of package stm, so a transaction can combine operations on several collections, and
// wait until all of them are possible:
//
//	err := stm.Atomically(ctx, func(tx *stm.Tx) error {
//		order, err := orders.Take(tx) // waits for one
//		if err != nil {
//			return err
//		}
//		stock, _ := inStock.Get(tx, order.Item)
//		if stock < order.Number {
//			return stm.Retry // waits until there are more, and the order stays in the queue
//		}
//		inStock.Set(tx, order.Item, stock-order.Number)
//		return shipped.Put(tx, order)
//	})
//
// A map or a slice in a single Var would have to be copied for each change, and all changes would conflict. With these
// collections, transactions on different keys, or on the two ends of a queue, rarely conflict. Outside transactions, a
// mutex and a plain map are faster.
//
// The zero value of each collection is empty and ready to use. A collection must not be copied. Data that a stored value
// refers to must not be modified; modify a copy, and store the copy.
package collections

import "github.com/braidgo/braid/stm"

// A Slot is empty or holds one value, like a channel with a buffer of one, or an MVar.
type Slot[T any] struct{ v stm.Var[*T] }

// Put stores x in s. It returns stm.Retry if s is full.
func (s *Slot[T]) Put(tx *stm.Tx, x T) error {
	if s.v.Get(tx) != nil {
		return stm.Retry
	}
	s.v.Set(tx, &x)
	return nil
}

// Take removes the value from s and returns it. It returns stm.Retry if s is empty.
func (s *Slot[T]) Take(tx *stm.Tx) (x T, err error) {
	if x, err = s.Read(tx); err == nil {
		s.v.Set(tx, nil)
	}
	return x, err
}

// Read returns the value of s without removing it. It returns stm.Retry if s is empty.
func (s *Slot[T]) Read(tx *stm.Tx) (x T, err error) {
	p := s.v.Get(tx)
	if p == nil {
		return x, stm.Retry
	}
	return *p, nil
}
