package suspendtest

import (
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
)

// These are for the tests with mutants.
type (
	Box         = box
	Resume      = resume
	SuspendFunc = suspendFunc
	Store       = store
	StoreOps    = storeOps
	Opener      = opener

	OpenExecutor = openExecutor
	OpenEnding   = openEnding
)

var Direct SuspendFunc = direct

// Blind returns a copy of o in which the looks that sees selects report nothing. A look is named by its file and line.
func (o Options) Blind(sees func(look string) bool) Options {
	o.blind = sees
	return o
}

// Leave leaves a waiter in the queue that does not wait any more.
func Leave(s *store) {
	_, _ = suspend.Suspend(background, func(r suspend.Resumer[*box]) (*box, bool) {
		s.guard.Lock()
		defer s.guard.Unlock()
		s.waiters.Push(r, 0)
		return nil, true
	})
}

// RightStore is the correct store of the storm, for Storing.
var RightStore = rightStore

// Storing replaces the store of the storm.
func Storing(ops StoreOps) Options { return Options{store: ops} }

// Deadline replaces the deadline of a check, which is half a minute.
func Deadline(d time.Duration) Options { return Options{deadline: d} }

var allChecks = slices.Concat(schedulerChecks, executorChecks, endingChecks)

// Names returns the names of all checks.
func Names() (names []string) {
	for _, c := range allChecks {
		names = append(names, c.name)
	}
	return names
}

// Check runs one check of a scheduler, of an executor, or of a scheduler whose executor may end first.
func Check(tb testing.TB, name string, deadline time.Duration, s SuspendFunc, on opener, o Options) {
	o.deadline = deadline
	o = o.complete()
	i := slices.IndexFunc(allChecks, func(c check) bool { return c.name == name })
	if i < 0 {
		tb.Fatalf("there is no check %s", name)
	}
	allChecks[i].supervise(tb, &env{opts: o, suspend: s}, on)
}

// AllProperties is Properties with a given number of programs for each primitive.
var AllProperties = allProperties

// PropertiesOf is Properties for a single Spec.
func PropertiesOf(tb testing.TB, spec model.Spec, open Open, patience time.Duration) {
	properties(tb, spec, open, propertiesOptions{patience: patience})
}
