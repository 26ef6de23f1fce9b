package scope

import (
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// OnRelease registers f to be called once, by the task that called Run, after all children have ended and before Run returns
// or panics. The functions are called in reverse order of registration. f may suspend, but needs another context, because
// the scope's context has ended by then, and no child can be started. If f panics, the remaining functions are still called.
// f may call OnRelease. OnRelease panics if f is nil, or if the scope has ended.
//
// Like the stop function of context.AfterFunc, stop takes f back. It returns true if f will therefore not be called, and
// false if the call of f has begun or f was taken back before. A function that was taken back, or has been called, uses no memory
// of the scope. Neither OnRelease nor stop suspends.
func (s *Scope) OnRelease(f func()) (stop func() bool) {
	if f == nil {
		panic("scope: OnRelease with a nil function")
	}
	n := &dlist.Node[func()]{Value: f}
	suspend.Point()
	s.mu.Lock()
	ok := !s.released
	if ok {
		s.releases.Push(n)
	}
	s.mu.Unlock()
	if !ok {
		panic("scope: OnRelease after the end of the scope")
	}
	return func() bool {
		suspend.Point()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.takeReleaseLocked(n) != nil
	}
}

// takeReleaseLocked removes n from s.releases and returns its function, or nil if n was already removed. The caller must hold s.mu.
func (s *Scope) takeReleaseLocked(n *dlist.Node[func()]) (f func()) {
	if s.releases.Remove(n) {
		f, n.Value = n.Value, nil // a stop that the program keeps must not retain the function
	}
	return f
}

func (s *Scope) callReleases() {
	outcome.Each(func() (more bool) {
		f := s.nextRelease()
		if f != nil {
			f()
		}
		return f != nil
	})
}

func (s *Scope) nextRelease() (f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.releases.Last()
	if last == nil {
		s.released = true
		return nil
	}
	return s.takeReleaseLocked(last)
}
