package suspendtest_test

import (
	"sync"
	"testing"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// goroutines is suspend.Goroutines with a close.
type goroutines struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func (s *goroutines) Go(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return suspend.ErrClosed
	}
	s.wg.Add(1)
	return suspend.Goroutines.Go(func() {
		defer s.wg.Done()
		f()
	})
}

func (s *goroutines) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wg.Wait()
}

func TestGoroutines(t *testing.T) {
	suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
		s := &goroutines{}
		return s, s.close
	}, suspendtest.Options{})
}
