package coro

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// With many goroutines a report is late, to avoid that the process stands still for it often. With 100,000 tasks it did for seconds, which
// made more steps long.
func TestReportsAmongManyGoroutines(t *testing.T) {
	const n, limit = 10_000, 100 * time.Millisecond // 600 ms
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

// After the stacks have been printed for 100 ms, nobody prints them for two seconds.
func TestStacksArePrintedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printing.ended, printing.took = time.Now(), 100*time.Millisecond
		time.Sleep(1999 * time.Millisecond)
		require.Nil(t, stacks(time.Hour))
		time.Sleep(time.Millisecond)
		require.NotNil(t, stacks(time.Hour))
		printing.Lock() // by a goroutine that prints
		require.Nil(t, stacks(time.Hour))
		printing.Unlock()
	})
}

// A printing that was preempted counts with the time that it can have taken at most, otherwise as measured.
func TestCharge(t *testing.T) {
	if got, want := charge(time.Second, 100), 100*waitShare*perStack; got != want {
		t.Errorf("a preempted printing counts %v, want %v", got, want)
	}
	if got := charge(time.Millisecond, 100); got != time.Millisecond {
		t.Errorf("a printing of a millisecond counts %v", got)
	}
}
