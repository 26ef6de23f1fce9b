// Package preempt says whether a scheduler wants to switch tasks even in operations that need not wait. Only schedulers for tests want
// this. If On returns true, a primitive takes its slow path, on which package suspend calls the scheduler. On also returns true while
// waits and locks are recorded, see package ledger.
package preempt

import (
	"slices"
	"sync/atomic" // atomicx is not needed, because the order of these accesses makes no difference to the model checker
)

var wanted atomic.Int32 // the number of schedulers, plus the constant recorded for each Record in effect

// On reports whether a scheduler wants to switch tasks in every operation, or the ledger is kept.
func On() bool { return wanted.Load() != 0 }

// recorded is larger than any number of schedulers.
const recorded = 1 << 20

// Recorded reports whether the ledger is kept, which means that the census is on. If it is kept, On returns true too, so a fast path
// that checks On need not check Recorded.
func Recorded() bool { return wanted.Load() >= recorded }

// Record makes Recorded return true until end is called. The caller must call end exactly once.
func Record() (end func()) {
	wanted.Add(recorded)
	return func() { wanted.Add(-recorded) }
}

// Begin makes On return true until end is called. The caller must call end exactly once.
func Begin() (end func()) {
	wanted.Add(1)
	return func() { wanted.Add(-1) }
}

// Kinds is a set of kinds of objects that tasks hold.
type Kinds uint8

// Mutexes is for package mutex's Mutex. Gates is for RWMutex and Semaphore. Keys is for the keys that package keyed has in use. Members
// is for Scope, Group and idle.Group, which their tasks hold. Resources is for what Stats of package respool counts. Clocks is for the clock.
const (
	Mutexes Kinds = 1 << iota
	Gates
	Keys
	Members
	Resources
	Clocks // timers advance the clock; there is no release
)

// A Watcher explores all orders of operations. A release commutes with each earlier operation of another task, unless that operation
// has looked at held objects, as a Try or a case of a Select does. So a release is a scheduling point only in programs with such a
// look. Lipton calls such a release a left mover (Reduction: a method of proving properties of parallel programs, CACM 1975).
type Watcher interface {
	Runs() bool       // reports whether the caller is one of the Watcher's tasks, or the program that starts them
	Points() bool     // reports whether it explores orders; otherwise Looks, Releases and Glances are not called
	Starts(f func())  // starts f as a task instead of a goroutine
	Looks(k Kinds)    // called by one of its tasks, like Releases and Glances
	Releases(k Kinds) // may be a scheduling point
	Glances(k Kinds)  // counts as a look and a scheduling point only if code outside Braid has called the caller of Glance
}

var watchers atomic.Pointer[[]Watcher]

// Watch registers w, which is then notified of looks, of releases, and of goroutines that Braid would start, until end is called. If
// w.Points returns true, Watch also calls Begin.
func Watch(w Watcher) (end func()) {
	change(func(all []Watcher) []Watcher { return append(all, w) })
	stop := func() {}
	if w.Points() {
		stop = Begin()
	}
	return func() {
		stop()
		change(func(all []Watcher) []Watcher {
			return slices.DeleteFunc(all, func(other Watcher) bool { return other == w })
		})
	}
}

func change(f func(all []Watcher) []Watcher) {
	for {
		old := watchers.Load()
		var all []Watcher
		if old != nil {
			all = slices.Clone(*old)
		}
		if all = f(all); watchers.CompareAndSwap(old, &all) {
			return
		}
	}
}

// watcher returns the caller's Watcher, or nil if there is none.
func watcher() Watcher {
	if all := watchers.Load(); all != nil {
		for _, w := range *all {
			if w.Runs() {
				return w
			}
		}
	}
	return nil
}

// Looks is called by an operation that reports whether an object is held and does not wait for it.
func Looks(k Kinds) {
	if On() {
		looks(k)
	}
}

func looks(k Kinds) {
	if w := watcher(); w != nil && w.Points() {
		w.Looks(k)
	}
}

// A Looker is a suspend.Source that looks at objects of certain kinds without waiting for them, when it is a case of a Select. Package
// suspend calls Looks for it.
type Looker interface{ LooksAt() Kinds }

// Glance is called by a function that looks at a context or a Group. The look counts as an operation only if the program itself makes
// it.
func Glance(k Kinds) {
	if On() {
		glance(k)
	}
}

func glance(k Kinds) {
	if w := watcher(); w != nil && w.Points() {
		w.Glances(k)
	}
}

// Releases is called at the beginning of an operation that releases an object.
func Releases(k Kinds) {
	if On() {
		releases(k)
	}
}

func releases(k Kinds) {
	if w := watcher(); w != nil && w.Points() {
		w.Releases(k)
	}
}

// Watched reports whether the release of an object that the caller takes now may be a scheduling point.
func Watched() bool {
	if !On() {
		return false
	}
	w := watcher()
	return w != nil && w.Points()
}

// Explored reports whether a Watcher runs the caller.
func Explored() bool { return watcher() != nil }

// Go starts f as a task of the caller's Watcher, or on a goroutine if there is none.
func Go(f func()) {
	if w := watcher(); w != nil {
		w.Starts(f)
		return
	}
	go f()
}
