package mvar

import "github.com/braidgo/braid/suspend"

// PutOp is Put as an Op.
func (m *MVar[T]) PutOp(v T) suspend.Op[struct{}] { return suspend.OpOf[struct{}](&putSource[T]{m, v}) }

// TakeOp is Take as an Op.
func (m *MVar[T]) TakeOp() suspend.Op[T] {
	return suspend.OpOf[T](&takeSource[T]{m, taker[T]{}, m.takeLocked})
}

// ReadOp is Read as an Op.
func (m *MVar[T]) ReadOp() suspend.Op[T] { return suspend.OpOf[T]((*readSource[T])(m)) }

// SwapOp is Swap as an Op.
func (m *MVar[T]) SwapOp(v T) suspend.Op[T] {
	return suspend.OpOf[T](&takeSource[T]{m, taker[T]{full, v}, func() (T, bool) { return m.swapLocked(v) }})
}

type putSource[T any] struct {
	m *MVar[T]
	v T
}

func (s *putSource[T]) Guard() *suspend.Guard               { return &s.m.guard }
func (s *putSource[T]) Enqueue(r suspend.Resumer[struct{}]) { s.m.putters.Push(r, s.v) }
func (s *putSource[T]) Remove(r suspend.Resumer[struct{}])  { s.m.putters.Remove(r) }

func (s *putSource[T]) Try() (v struct{}, ok bool, err error) { return v, s.m.putLocked(s.v), nil }

// A takeSource takes a value away, and leaves another or none.
type takeSource[T any] struct {
	m   *MVar[T]
	t   taker[T]
	try func() (T, bool)
}

func (s *takeSource[T]) Guard() *suspend.Guard        { return &s.m.guard }
func (s *takeSource[T]) Enqueue(r suspend.Resumer[T]) { s.m.takers.Push(r, s.t) }
func (s *takeSource[T]) Remove(r suspend.Resumer[T])  { s.m.takers.Remove(r) }

func (s *takeSource[T]) Try() (v T, ok bool, err error) {
	v, ok = s.try()
	return v, ok, nil
}

type readSource[T any] MVar[T]

func (s *readSource[T]) Guard() *suspend.Guard        { return &s.guard }
func (s *readSource[T]) Enqueue(r suspend.Resumer[T]) { s.readers.Push(r, struct{}{}) }
func (s *readSource[T]) Remove(r suspend.Resumer[T])  { s.readers.Remove(r) }

func (s *readSource[T]) Try() (v T, ok bool, err error) {
	v, ok = (*MVar[T])(s).readLocked()
	return v, ok, nil
}
