package schedtest

import (
	"testing"

	"github.com/braidgo/braid/suspend"
)

// Bench times fs, run together as tasks of the named scheduler.
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

// Share is Bench of tasks that each do a part of b.N.
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

// Rounds locks and unlocks n times, and yields in between, so that other tasks queue for the lock.
func Rounds(n int, lock, unlock func()) {
	for range n {
		lock()
		suspend.Yield()
		unlock()
	}
}
