package suspendtest_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest"
)

// A Baton is a scheduler that runs one task at a time. Each task has a goroutine, and only the one that holds the baton runs.
// This is the whole scheduler.
type Baton struct {
	baton  sync.Mutex
	tasks  sync.WaitGroup
	mu     sync.Mutex
	closed bool // guarded by mu
}

func (s *Baton) Go(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return suspend.ErrClosed
	}
	s.tasks.Go(func() {
		s.baton.Lock()
		defer s.baton.Unlock()
		suspend.Bind(&task{sched.NewThread(), s}, f)
	})
	return nil
}

func (s *Baton) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.tasks.Wait()
}

// A task parks its goroutine, and passes the baton on meanwhile.
type task struct {
	suspend.Task
	s *Baton
}

func (t *task) Park() {
	t.s.baton.Unlock()
	defer t.s.baton.Lock()
	t.Task.Park()
}

func (t *task) Yield() {
	t.s.baton.Unlock()
	defer t.s.baton.Lock()
	runtime.Gosched()
}

func (t *task) Spawner() suspend.Spawner { return t.s }

func openBaton(testing.TB) (suspend.Spawner, func()) {
	s := &Baton{}
	return s, s.Close
}

func TestBaton(t *testing.T) { suspendtest.Scheduler(t, openBaton, suspendtest.Options{}) }

func Example() {
	s := &Baton{}
	defer s.Close()
	_ = s.Go(func() { fmt.Println("a task of", suspend.Here() == suspend.Spawner(s)) })
	// In a test file: func TestBaton(t *testing.T) { suspendtest.Scheduler(t, openBaton, suspendtest.Options{}) }

	// Output: a task of true
}
