package schedtest

import (
	"testing"

	"github.com/braidgo/braid/suspend"
)

// Bench runs fs concurrently as tasks of the named scheduler, and measures the time until all tasks have ended.
func Bench(b *testing.B, sched string, fs ...func()) {
	for _, s := range All {
		if s.Name == sched {
			b.ReportAllocs()
			on, stop := s.Open()
			defer stop()
			b.ResetTimer()
			Run(b, on, fs...)
			b.StopTimer()
			return
		}
	}
	b.Fatalf("no scheduler %q", sched)
}

// Share calls Bench with the given number of tasks. Each task calls the function do with its part of b.N.
func Share(b *testing.B, sched string, tasks int, do func(n int)) {
	fs := make([]func(), tasks)
	for i := range fs {
		n := b.N / tasks
		if i < b.N%tasks {
			n++
		}
		fs[i] = func() { do(n) }
	}
	Bench(b, sched, fs...)
}

// Rounds calls the functions lock and unlock n times. It yields while it holds the lock, so that other tasks queue for the lock.
func Rounds(n int, lock, unlock func()) {
	for range n {
		lock()
		suspend.Yield()
		unlock()
	}
}
