//go:build !explore

package fetch

import "time"

// goroutine runs f on a goroutine of its own.
func goroutine(f func()) { go f() }

// afterOthers runs f when the goroutines that this processor has queued have run. runtime.Gosched would queue f behind those of all
// processors, where goroutines that compute come again and again. The second goroutine is the one that runs next, so f is not.
func afterOthers(f func()) {
	go f()
	go func() {}()
}

// A limit calls a function when a time is over. A nil limit never does.
type limit struct {
	timer *time.Timer
	after time.Duration
}

func newLimit(after time.Duration, f func()) *limit { return &limit{time.AfterFunc(after, f), after} }

func (l *limit) again() { l.timer.Reset(l.after) }

func (l *limit) stop() {
	if l != nil {
		l.timer.Stop()
	}
}
