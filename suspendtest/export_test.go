package suspendtest

import (
	"testing"
	"time"
)

// For the mutants.
type (
	Box         = box
	Resume      = resume
	SuspendFunc = suspendFunc
)

var Direct SuspendFunc = direct

// Deadline replaces the half minute that a check has.
func Deadline(d time.Duration) Option { return func(o *options) { o.deadline = d } }

// Names returns the names of all checks.
func Names() (names []string) {
	for _, c := range schedulerChecks {
		names = append(names, c.name)
	}
	for _, c := range executorChecks {
		names = append(names, c.name)
	}
	return names
}

// Check runs one check of a scheduler.
func Check(tb testing.TB, name string, deadline time.Duration, s SuspendFunc, open Open, opts ...Option) {
	o := gather(opts)
	o.deadline = deadline
	find(tb, schedulerChecks, name).on(tb, &env{opts: o, suspend: s}, open)
}

// CheckExecutor runs one check of an executor.
func CheckExecutor(tb testing.TB, name string, deadline time.Duration, open OpenExecutor, opts ...Option) {
	o := gather(opts)
	o.deadline = deadline
	find(tb, executorChecks, name).onExecutor(tb, &env{opts: o, suspend: direct}, open)
}

func find(tb testing.TB, checks []check, name string) check {
	for _, c := range checks {
		if c.name == name {
			return c
		}
	}
	tb.Fatalf("there is no check %s", name)
	return check{}
}
