package census_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

// on switches the census on for a test.
func on(t *testing.T) {
	t.Cleanup(schedtest.Within(t, schedtest.Deadline))
	t.Cleanup(census.Start(census.Options{StuckAfter: -1}))
}

// eventually takes snapshots until f returns true. The caller is not a task.
func eventually(t *testing.T, f func(s census.Snapshot) bool) (s census.Snapshot) {
	t.Helper()
	require.Eventually(t, func() bool {
		s = census.Take()
		return f(s)
	}, schedtest.Deadline, time.Millisecond)
	return s
}

// waiting returns the tasks that wait in the given operation.
func waiting(s census.Snapshot, operation string) (tasks []census.Task) {
	for _, t := range s.Tasks {
		if t.Waits != nil && t.Waits.Operation == operation {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// crosswise makes a task of fifo and a task of a pool lock two mutexes in opposite orders. Both tasks end when stop is called.
func crosswise() (stop func()) {
	ctx, cancel := context.WithCancel(bg)
	a, b := census.Name(new(mutex.Mutex), "a"), census.Name(new(mutex.Mutex), "b")
	pool := workstealing.New(workstealing.Options{Workers: 1})
	both, ended := latch.New(2), make(chan struct{})
	lock := func(x, y *mutex.Mutex) {
		x.Lock()
		defer x.Unlock()
		both.CountDown()
		_ = both.Wait(bg)
		if y.LockContext(ctx) == nil {
			y.Unlock()
		}
	}
	_ = pool.Go(func() { lock(a, b) })
	go func() {
		defer close(ended)
		_ = fifo.Run(bg, func(context.Context) error {
			lock(b, a)
			return nil
		})
		pool.Close()
	}()
	return func() {
		cancel()
		<-ended
	}
}

func TestDeadlock(t *testing.T) {
	on(t)
	stop := crosswise()
	s := eventually(t, func(s census.Snapshot) bool { return len(s.Deadlocks) > 0 })
	require.Len(t, s.Deadlocks, 1)
	d := s.Deadlocks[0]
	require.Len(t, d.Cycle, 2)
	require.True(t, d.MayEnd, "the second lock has a context")
	names := map[string]string{}
	for i, l := range d.Cycle {
		require.Equal(t, "mutex.Mutex.LockContext", l.Waits.Operation)
		require.Contains(t, l.Waits.At.String(), "census_test.crosswise.func1 (census/census_test.go:")
		require.Equal(t, l.Next, l.Holder.Task)
		require.Equal(t, l.Next, d.Cycle[1-i].Task)
		require.Less(t, l.Holder.At.Line, l.Waits.At.Line)
		names[l.For] = l.Task
	}
	require.Regexp(t, `^goroutine \d+ \(fifo\)$`, names[`mutex.Mutex "a"`])
	require.Regexp(t, `^goroutine \d+ \(workstealing\)$`, names[`mutex.Mutex "b"`])
	stop()
	s = census.Take()
	require.Empty(t, s.Deadlocks)
	require.Empty(t, s.Tasks, "cancelled waits and tasks that have ended are gone")
}

// A task waits for a lock whose holder waits for an object that has no holder. This is not a deadlock.
func TestNoDeadlock(t *testing.T) {
	on(t)
	var m mutex.Mutex
	require.NoError(t, m.LockContext(bg))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Lock()
		m.Unlock()
	}()
	s := eventually(t, func(s census.Snapshot) bool { return len(waiting(s, "mutex.Mutex.Lock")) == 1 })
	require.Empty(t, s.Deadlocks)
	w := waiting(s, "mutex.Mutex.Lock")[0]
	require.Empty(t, w.Scheduler)
	require.Equal(t, "mutex.Mutex.Lock", w.Waits.Primitive)
	require.Regexp(t, `^mutex\.Mutex 0x[0-9a-f]+$`, w.Waits.For[0].Name)
	require.Len(t, w.Waits.For[0].Holders, 1)
	m.Unlock()
	<-ended
	require.Empty(t, census.Take().Tasks)
}

// A task ends while it holds a lock. The next task on its coroutine waits for this lock, and is not reported as its holder.
func TestAHolderThatHasEnded(t *testing.T) {
	on(t)
	var m mutex.Mutex
	var s census.Snapshot
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() { m.Lock() })
		suspend.Yield()
		_ = suspend.Here().Go(func() { m.Lock(); m.Unlock() })
		suspend.Yield()
		s = census.Take()
		m.Unlock()
		return nil
	})
	require.Empty(t, s.Deadlocks)
	w := waiting(s, "mutex.Mutex.Lock")
	require.Len(t, w, 1)
	require.True(t, w[0].Waits.For[0].Holders[0].Ended)
	require.Contains(t, s.String(), w[0].Waits.For[0].Holders[0].Task+", which has ended, has held it for ")
	require.Contains(t, w[0].Waits.For[0].Holders[0].Task, w[0].ID, "the same coroutine")
}

var global mutex.Mutex

// Variables of packages are not in the heap.
func TestGlobal(t *testing.T) {
	on(t)
	census.Name(&global, "first")
	census.Name(&global, "global")
	global.Lock()
	s := census.Take()
	require.Len(t, s.Tasks, 1)
	require.Equal(t, `mutex.Mutex "global"`, s.Tasks[0].Holds[0].Object)
	global.Unlock()
	require.Empty(t, census.Take().Tasks)
}

// The census knows the holder of a lock that was acquired by a hand-over, a Select, a Then or a TryLock.
func TestHandOver(t *testing.T) {
	on(t)
	var m mutex.Mutex
	holder := func() string {
		for _, t := range census.Take().Tasks {
			if t.Waits != nil && len(t.Waits.For[0].Holders) > 0 {
				return t.Waits.For[0].Holders[0].At.String()
			}
		}
		return ""
	}
	_ = fifo.Run(bg, func(ctx context.Context) error {
		on := suspend.Here().(suspend.Executor)
		locks := []func(next func()){
			func(next func()) { m.Lock(); next() },
			func(next func()) { _, _ = suspend.Select(bg, suspend.CaseOf(m.LockOp())); next() },
			func(next func()) { suspend.Then(bg, m.LockOp(), on, func(struct{}, error) { next() }) },
			func(next func()) { require.True(t, m.TryLock()); next() },
		}
		for i, lock := range locks {
			for _, waits := range []bool{false, true} {
				if waits && i == 3 {
					continue
				}
				unlock, done := latch.New(1), latch.New(1)
				if waits {
					m.Lock()
				}
				_ = suspend.Here().Go(func() {
					lock(func() {
						suspend.Then(bg, unlock.WaitOp(), on, func(struct{}, error) {
							m.Unlock()
							done.CountDown()
						})
					})
				})
				schedtest.Settle()
				if waits {
					for range 6 { // until Unlock hands m over
						m.Unlock()
						if !m.TryLock() {
							break
						}
						schedtest.Settle()
					}
					if m.TryLock() {
						m.Unlock()
					}
					schedtest.Settle()
				}
				_ = suspend.Here().Go(func() { m.Lock(); m.Unlock() })
				schedtest.Settle()
				assert.Contains(t, holder(), "TestHandOver", "%d %v\n%s", i, waits, census.Take())
				unlock.CountDown()
				_ = done.Wait(bg)
				schedtest.Settle()
			}
		}
		return nil
	})
	require.Empty(t, census.Take().Tasks)
}

// A stop drops all records, so that the next Start does not find them.
func TestForgets(t *testing.T) {
	var m, n mutex.Mutex
	stop := census.Start(census.Options{StuckAfter: -1})
	m.Lock()
	require.Len(t, census.Take().Tasks, 1)
	stop()
	m.Unlock()
	n.Lock()
	on(t)
	require.Empty(t, census.Take().Tasks)
	n.Unlock() // the census did not see its Lock
	require.Empty(t, census.Take().Tasks)
}

func TestOff(t *testing.T) {
	s := census.Take()
	require.False(t, s.On)
	require.Equal(t, "census: off. census.Start switches it on.\n", s.String())
	stop := census.Start(census.Options{})
	stop2 := census.Start(census.Options{})
	stop()
	stop()
	require.True(t, census.Take().On)
	stop2()
	require.False(t, census.Take().On)
}
