//go:build explore

package fetch

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// Batches is where the model checker runs batches: on a scheduler of its own.
var Batches = suspend.Goroutines

func goroutine(f func()) { _ = Batches.Go(f) }

func afterOthers(f func()) { f() }

// Limits says that the time of a limit may be over at any point: a task says so, and not a timer.
var Limits bool

// A limit is a task, or nothing.
type limit struct{ f func() }

func newLimit(_ time.Duration, f func()) *limit {
	l := &limit{f}
	l.again()
	return l
}

func (l *limit) again() {
	if Limits {
		goroutine(l.f)
	}
}

func (l *limit) stop() {}
