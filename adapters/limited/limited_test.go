package limited_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

func open(n int, submit func(func())) suspendtest.Open {
	return func(testing.TB) (suspend.Spawner, func()) {
		s := limited.New(n, limited.Options{Submit: submit})
		return s, func() { _ = s.Close() }
	}
}

// pool returns the Submit of a pool of goroutines, each of which runs one function after another.
func pool() (submit func(f func())) {
	idle := make(chan func())
	return func(f func()) {
		select {
		case idle <- f:
		default:
			go func() {
				for ok := true; ok; {
					f()
					select {
					case f = <-idle:
					default:
						ok = false
					}
				}
			}()
		}
	}
}

func TestConformance(t *testing.T) {
	panics := suspendtest.Options{Panics: func(_ testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
		s := limited.New(2, limited.Options{OnPanic: onPanic})
		return s, func() { _ = s.Close() }
	}}
	t.Run("One", func(t *testing.T) { suspendtest.Scheduler(t, open(1, nil), panics) })
	t.Run("Three", func(t *testing.T) { suspendtest.Scheduler(t, open(3, nil), suspendtest.Options{}) })
	t.Run("Many", func(t *testing.T) { suspendtest.Scheduler(t, open(1000, nil), suspendtest.Options{}) }) // the limit is never reached
	t.Run("Pool", func(t *testing.T) { suspendtest.Scheduler(t, open(2, pool()), suspendtest.Options{}) })
	t.Run("Executor", func(t *testing.T) {
		suspendtest.Executor(t, func(testing.TB) (suspend.Executor, func()) {
			s := limited.New(1, limited.Options{})
			return s, func() { _ = s.Close() }
		}, suspendtest.Options{})
	})
}

// Ten waiting tasks do not keep the eleventh from running. In a bounded pool of goroutines, waiting tasks count, too.
func TestOnlyRunningTasksCount(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	const n, tasks = 3, 200
	s := limited.New(n, limited.Options{})
	var running, most, ended atomic.Int32
	var all promise.Promise[int]
	var waiting atomic.Int32
	step := func() {
		now := running.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		if now > n {
			t.Errorf("%d tasks run", now)
		}
		running.Add(-1)
	}
	for range tasks {
		_ = s.Go(func() {
			for range 10 {
				step()
				suspend.Yield()
			}
			if waiting.Add(1) == tasks { // the last task arrives although all others are suspended
				_ = all.Fill(1)
			}
			_, _ = all.Await(context.Background())
			step()
			ended.Add(1)
		})
	}
	if err := s.Close(); err != nil || ended.Load() != tasks {
		t.Errorf("%d tasks have ended: %v", ended.Load(), err)
	}
	if stats := s.Stats(); stats.Live != 0 || stats.Running != 0 || stats.Suspended != 0 {
		t.Errorf("%+v", stats)
	}
}

// A task that was woken, or that yielded, counts as suspended until it runs again.
func TestStatsOfTasksThatWaitForTheirTurn(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s := limited.New(1, limited.Options{})
	var p promise.Promise[int]
	suspended := func(when string, want int64) {
		if stats := s.Stats(); stats.Suspended != want || stats.Running != 1 {
			t.Errorf("%s: %+v", when, stats)
		}
	}
	ended := make(chan struct{})
	_ = s.Go(func() {
		_ = s.Go(func() { suspended("another has yielded", 1) })
		_ = s.Go(func() { _, _ = p.Await(context.Background()) })
		suspend.Yield()
		suspended("another waits", 1)
		_ = p.Fill(1)
		suspended("another is woken", 1)
		close(ended)
	})
	<-ended
	_ = s.Close()
	if stats := s.Stats(); stats.Suspended != 0 || stats.Wakes != 1 {
		t.Errorf("%+v", stats)
	}
}

func Example() {
	s := limited.New(2, limited.Options{}) // or the method Submit of a pool
	var ready promise.Promise[string]
	for range 100 {
		_ = s.Go(func() { _, _ = ready.Await(context.Background()) }) // a suspended task does not count
	}
	_ = s.Go(func() { _ = ready.Fill("done") })
	_ = s.Close()
	fmt.Println(s.Stats().Live)
	// Output: 0
}

// When a function has begun, the queue does not keep it alive, although others are still queued.
func TestTheQueueKeepsNoFunction(t *testing.T) {
	s := limited.New(1, limited.Options{})
	var objects schedtest.Objects
	begin, begun, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	_ = s.Go(func() { <-begin })
	func() {
		o := objects.New()
		_ = s.Go(func() { o[0] = 1 })
	}()
	_ = s.Go(func() { close(begun); <-goOn })
	_ = s.Go(func() {}) // this function is queued, so the queue is in use
	close(begin)
	<-begun
	objects.Collected(t, 0)
	close(goOn)
	require.NoError(t, s.Close())
}
