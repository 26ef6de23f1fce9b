package suspendtest

import (
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
)

// For the mutants.
type (
	Box         = box
	Resume      = resume
	SuspendFunc = suspendFunc
	Store       = store
	StoreOps    = storeOps
)

var Direct SuspendFunc = direct

// Blind returns an Option with which the looks that see say true of report nothing. A look is named by its file and line.
func Blind(sees func(look string) bool) Option { return func(o *options) { o.blind = sees } }

// Leave leaves a waiter in the queue that waits no more.
func Leave(s *store) {
	_, _ = suspend.Suspend(background, func(r suspend.Resumer[*box]) (*box, bool) {
		s.guard.Lock()
		defer s.guard.Unlock()
		s.waiters.Push(r, 0)
		return nil, true
	})
}

// RightStore is the store of the storm, for Storing.
var RightStore = rightStore

// Storing replaces it.
func Storing(ops StoreOps) Option { return func(o *options) { o.store = ops } }

// Deadline replaces the half minute that a check has.
func Deadline(d time.Duration) Option { return func(o *options) { o.deadline = d } }

// Names returns the names of all checks.
func Names() (names []string) {
	for _, c := range slices.Concat(schedulerChecks, executorChecks) {
		names = append(names, c.name)
	}
	return names
}

// EndingNames returns the names of the checks of Ending.
func EndingNames() (names []string) {
	for _, c := range endingChecks {
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
func CheckExecutor(tb testing.TB, name string, deadline time.Duration, s SuspendFunc, open OpenExecutor, opts ...Option) {
	o := gather(opts)
	o.deadline = deadline
	find(tb, executorChecks, name).onExecutor(tb, &env{opts: o, suspend: s}, open)
}

// CheckEnding runs one check of a scheduler whose executor may end first.
func CheckEnding(tb testing.TB, name string, deadline time.Duration, s SuspendFunc, open OpenEnding, opts ...Option) {
	o := gather(opts)
	o.deadline = deadline
	for _, c := range endingChecks {
		if c.name == name {
			c.onEnding(tb, &env{opts: o, suspend: s}, open)
			return
		}
	}
	tb.Fatalf("there is no check %s", name)
}

// AllProperties is Properties with so many programs for each primitive.
var AllProperties = allProperties

// PropertiesOf is Properties for one Spec.
func PropertiesOf(tb testing.TB, spec model.Spec, open Open, patience time.Duration) {
	properties(tb, spec, open, propertiesOptions{patience: patience})
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
