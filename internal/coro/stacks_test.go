package coro

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// With many goroutines a report is late, so that the process is not stopped often to print stacks. Otherwise 100,000 tasks would
// stop it for seconds, which would cause further reports.
func TestReportsAmongManyGoroutines(t *testing.T) {
	const n, limit = 10_000, 100 * time.Millisecond // 10,000 goroutines take about 600 ms
	for d, want := range map[time.Duration]int{550 * time.Millisecond: 0, 700 * time.Millisecond: 1} {
		watched(t, limit, func(s *Stalls, reports func() []string) {
			end := make(chan struct{})
			for range n {
				go func() { <-end }()
			}
			synctest.Wait()
			held(s, d)
			close(end)
			s.End()
			require.Len(t, reports(), want, d)
		})
	}
}

// After stacks were printed for 100 ms, none are printed for two seconds.
func TestStacksArePrintedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printing.ended, printing.took = time.Now(), 100*time.Millisecond
		time.Sleep(1999 * time.Millisecond)
		require.Nil(t, stacks(time.Hour))
		time.Sleep(time.Millisecond)
		require.NotNil(t, stacks(time.Hour))
		printing.Lock() // as if another goroutine were printing
		require.Nil(t, stacks(time.Hour))
		printing.Unlock()
	})
}

// If a goroutine was preempted while it printed, an upper bound of its time counts, otherwise the measured time.
func TestCharge(t *testing.T) {
	if got, want := charge(time.Second, 100), 100*waitShare*perStack; got != want {
		t.Errorf("a preempted printing counts %v, want %v", got, want)
	}
	if got := charge(time.Millisecond, 100); got != time.Millisecond {
		t.Errorf("a printing of a millisecond counts %v", got)
	}
}
