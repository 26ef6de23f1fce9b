package suspend

// A Spawner starts tasks. Go returns nil if f will run as a new task, even if the caller's context ends before f begins. It returns an
// error that wraps ErrClosed if f will never run. Go obeys the contract of Unpark: any goroutine may call it, under any lock, and it
// neither blocks nor runs f before it returns. Where a function of this module starts tasks on a Spawner, nil means Goroutines, except in
// fetch.Options.
type Spawner interface {
	Go(f func()) error
}

// An Executor runs callbacks. Execute enqueues f, which must not suspend, or returns an error if it refuses f. Execute obeys the
// contract of Unpark, as Go does.
type Executor interface {
	Execute(f func()) error
}

// Goroutines is a Spawner that starts each f on a new goroutine, without a scheduler. Its Go never fails.
var Goroutines Spawner = goroutines{}

type goroutines struct{}

func (goroutines) Go(f func()) error { go f(); return nil }

// As returns s as a C if s has this capability, see package sched. Otherwise, if s wraps other Spawners, As returns the first of
// these that has it. A Spawner that wraps another has a method Unwrap() Spawner.
func As[C any](s Spawner) (c C, ok bool) {
	for s != nil {
		if c, ok = s.(C); ok {
			return c, true
		}
		w, wraps := s.(interface{ Unwrap() Spawner })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return c, false
}

// asOf is like As, but for an Executor, which need not be a Spawner.
func asOf[C any](on Executor) (c C, ok bool) {
	if c, ok = on.(C); ok {
		return c, true
	}
	s, _ := on.(Spawner)
	return As[C](s)
}

// spawnerOf returns the scheduler of t, or nil if t names none.
func spawnerOf(t Task) Spawner {
	if t, ok := methodsOf[interface{ Spawner() Spawner }](t); ok {
		return t.Spawner()
	}
	return nil
}

// methodsOf returns t as an M if it has these methods. Otherwise, if t wraps other Tasks, methodsOf returns the first of these that has
// them.
func methodsOf[M any](t Task) (m M, ok bool) {
	for {
		if m, ok = t.(M); ok {
			return m, true
		}
		w, wraps := t.(interface{ Unwrap() Task })
		if !wraps {
			return m, false
		}
		t = w.Unwrap()
	}
}
