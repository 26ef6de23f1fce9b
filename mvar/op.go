package mvar

import "github.com/braidgo/braid/suspend"

// PutOp returns an Op that performs Put.
func (m *MVar[T]) PutOp(v T) suspend.Op[struct{}] { return suspend.OpOf[struct{}](&put[T]{m, v}) }

// TakeOp returns an Op that performs Take.
func (m *MVar[T]) TakeOp() suspend.Op[T] { return suspend.OpOf[T]((*take[T])(m)) }

// ReadOp returns an Op that performs Read.
func (m *MVar[T]) ReadOp() suspend.Op[T] { return suspend.OpOf[T]((*read[T])(m)) }

// SwapOp returns an Op that performs Swap.
func (m *MVar[T]) SwapOp(v T) suspend.Op[T] { return suspend.OpOf[T](&swap[T]{m, v}) }

// These types implement suspend.Source, one for each operation.
type (
	put[T any] struct {
		m *MVar[T]
		v T
	}
	take[T any] MVar[T]
	read[T any] MVar[T]
	swap[T any] struct {
		m *MVar[T]
		v T
	}
	checkOut[T any] MVar[T] // the first half of a Modify
)

func (s put[T]) Guard() *suspend.Guard               { return &s.m.guard }
func (s put[T]) Try() (v struct{}, ok bool, _ error) { return v, s.m.putLocked(s.v), nil }
func (s put[T]) Enqueue(r suspend.Resumer[struct{}]) { s.m.putters.Push(r, s.v) }
func (s put[T]) Remove(r suspend.Resumer[struct{}])  { s.m.putters.Remove(r) }

func (s *take[T]) Guard() *suspend.Guard        { return &s.guard }
func (s *take[T]) Enqueue(r suspend.Resumer[T]) { s.takers.Push(r, taker[T]{}) }
func (s *take[T]) Remove(r suspend.Resumer[T])  { s.takers.Remove(r) }

func (s *take[T]) Try() (v T, ok bool, _ error) {
	v, ok = (*MVar[T])(s).takeLocked()
	return v, ok, nil
}

func (s *read[T]) Guard() *suspend.Guard        { return &s.guard }
func (s *read[T]) Try() (v T, ok bool, _ error) { return s.value, s.state == full, nil }
func (s *read[T]) Enqueue(r suspend.Resumer[T]) { s.readers.Push(r, struct{}{}) }
func (s *read[T]) Remove(r suspend.Resumer[T])  { s.readers.Remove(r) }

func (s swap[T]) Guard() *suspend.Guard        { return &s.m.guard }
func (s swap[T]) Enqueue(r suspend.Resumer[T]) { s.m.takers.Push(r, taker[T]{full, s.v}) }
func (s swap[T]) Remove(r suspend.Resumer[T])  { s.m.takers.Remove(r) }

func (s swap[T]) Try() (v T, ok bool, _ error) {
	if s.m.state != full {
		return v, false, nil
	}
	v, s.m.value = s.m.value, s.v
	return v, true, nil
}

func (s *checkOut[T]) Guard() *suspend.Guard        { return &s.guard }
func (s *checkOut[T]) Enqueue(r suspend.Resumer[T]) { s.takers.Push(r, taker[T]{leaves: out}) }
func (s *checkOut[T]) Remove(r suspend.Resumer[T])  { s.takers.Remove(r) }

func (s *checkOut[T]) Try() (v T, ok bool, _ error) {
	if s.state != full {
		return v, false, nil
	}
	v, s.value, s.state = s.value, v, out
	return v, true, nil
}
