//go:build explore

package fetch

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// Batches is where the model checker runs batches: on a scheduler of its own.
var Batches = suspend.Goroutines

func goroutine(f func()) { _ = Batches.Go(f) }

// explored reports whether the model checker runs the program, and not the tests of the package.
func explored() bool { return Batches != suspend.Goroutines }

func afterOthers(f func()) {
	if explored() {
		f()
		return
	}
	go f()
	go func() {}()
}

// Limits says that the time of a limit may be over at any point: a task says so, and not a timer.
var Limits bool

// A limit is a task, or nothing. In a test of the package it is a timer.
type limit struct {
	f     func()
	after time.Duration
	timer *time.Timer
}

func newLimit(after time.Duration, f func()) *limit {
	l := &limit{f: f, after: after}
	if !explored() {
		l.timer = time.AfterFunc(after, f)
		return l
	}
	l.again()
	return l
}

func (l *limit) again() {
	switch {
	case l.timer != nil:
		l.timer.Reset(l.after)
	case Limits:
		goroutine(l.f)
	}
}

func (l *limit) stop() {
	if l != nil && l.timer != nil {
		l.timer.Stop()
	}
}
