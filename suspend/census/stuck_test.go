package census_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// stuck switches the census on in a bubble, with a limit of ten seconds. It returns a function that returns the reports so far.
func stuck(t *testing.T) (reports func() []string, stop func()) {
	var mu sync.Mutex
	var all []string
	stop = census.Start(census.Options{OnStuck: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, text)
	}})
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return all
	}, stop
}

func TestCloseThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports, stop := stuck(t)
		defer stop()
		pool := workstealing.New(workstealing.Options{Workers: 1})
		p := promise.New[int]()
		for range 3 {
			_ = pool.Go(func() { _, _ = p.Await(bg) })
		}
		moving := make(chan struct{}) // another goroutine continues to run meanwhile
		ctx, end := context.WithCancel(bg)
		go func() {
			defer close(moving)
			for suspend.Sleep(ctx, time.Second) == nil {
			}
		}()
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		time.Sleep(9 * time.Second)
		require.Empty(t, reports())
		time.Sleep(4 * time.Second)
		require.Len(t, reports(), 1)
		text := reports()[0]
		require.Regexp(t, `^braid: workstealing\.Pool\.Close has waited for 1\d(\.\d*)?s, at census_test\.TestCloseThatDoesNotEnd\.\S+ \(census/stuck_test\.go:\d+\)\n`, text)
		require.Regexp(t, `3 tasks of workstealing: promise\.Promise\.Await at census_test\.TestCloseThatDoesNotEnd\.\S+ \(census/stuck_test\.go:\d+\), 1\d`, text)
		require.NotContains(t, text, "Sleep", "the tasks of others are left out")
		time.Sleep(30 * time.Second)
		require.Len(t, reports(), 3, "after 10, 20 and 40 seconds")
		_ = p.Fill(1)
		<-closed
		time.Sleep(time.Hour)
		require.Len(t, reports(), 3)
		end()
		<-moving
	})
}

func TestNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports, stop := stuck(t)
		defer stop()
		var a mutex.Mutex
		ctx, cancel := context.WithCancel(bg)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = fifo.Run(bg, func(context.Context) error {
				_ = suspend.Sleep(ctx, time.Minute) // while a timer is set, no task counts as stuck
				_ = a.LockContext(ctx)
				_ = a.LockContext(ctx)
				return nil
			})
		}()
		time.Sleep(time.Minute + 5*time.Second)
		require.Empty(t, reports())
		time.Sleep(10 * time.Second)
		require.Len(t, reports(), 1)
		require.Regexp(t, `^braid: no task has made progress for 1\d(\.\d*)?s\ncensus: 1 waiting, 0 not waiting, 1 deadlock; on for`, reports()[0])
		require.Contains(t, reports()[0], "1 task waits for itself")
		cancel()
		<-ended
	})
}

func TestStopInAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		var stop func()
		stop = census.Start(census.Options{StuckAfter: time.Second, OnStuck: func(string) {
			n.Add(1)
			stop()
		}})
		p := promise.New[int]()
		go func() { _, _ = p.Await(bg) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, n.Load())
		require.False(t, census.Take().On)
		_ = p.Fill(1)
	})
}

// A task blocks natively while it holds a mutex for which another task waits. The report of StallAfter says so.
func TestStallAfterSaysWhatIsHeld(t *testing.T) {
	on(t)
	m, told := census.Name(new(mutex.Mutex), "accounts"), make(chan string, 100)
	err := fifo.New(fifo.Options{
		StallAfter: 10 * time.Millisecond,
		OnStall:    func(text []byte) { told <- string(text) },
	}).Run(bg, func(ctx context.Context) error {
		m.Lock()
		defer m.Unlock()
		_ = suspend.Here().Go(func() { m.Lock(); m.Unlock() })
		suspend.Yield()
		require.Contains(t, <-told, "\ncensus: it has held mutex.Mutex \"accounts\" for ") // natively
		return nil
	})
	require.NoError(t, err)
}
