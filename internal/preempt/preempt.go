// Package preempt says whether a scheduler wants to switch where an operation need not wait: one for tests, and nearly always none. A
// primitive calls On before its fast path, and if so takes the slow path, where package suspend calls the scheduler. The same word says whether
// waits and locks are recorded, see package ledger.
package preempt

import (
	"slices"
	"sync/atomic" // is not atomicx, since the order of accesses makes no difference, and the model checker need not see them
)

var wanted atomic.Int32 // recorded is added for each Record

// On reports whether a scheduler wants it, or the ledger is kept.
func On() bool { return wanted.Load() != 0 }

// recorded is more than there are schedulers.
const recorded = 1 << 20

// Recorded reports whether the ledger is kept: package census is on. Then On is true, too, so a fast path that checks On need not check again.
func Recorded() bool { return wanted.Load() >= recorded }

// Record says that the ledger is kept from now on, until end is called, once.
func Record() (end func()) {
	wanted.Add(recorded)
	return func() { wanted.Add(-recorded) }
}

// Begin says that a scheduler wants it from now on, until end is called, once.
func Begin() (end func()) {
	wanted.Add(1)
	return func() { wanted.Add(-1) }
}

// Kinds are kinds of objects that tasks hold.
type Kinds uint8

// The kinds: Mutex of package mutex; RWMutex and Semaphore; the keys in use of package keyed; Scope, Group and idle.Group, which their
// tasks hold; the clock.
const (
	Mutexes Kinds = 1 << iota
	Gates
	Keys
	Members
	Clocks // timers move the clock, and no release does
)

// A Watcher makes all orders of operations. A release commutes with each operation of other tasks that comes before it, unless this has looked
// at the objects that tasks hold: a Try, or a case of a Select. So a release is a point only in programs with such a look. Lipton calls it a
// left mover: Reduction, a method of proving properties of parallel programs (CACM 1975).
type Watcher interface {
	Runs() bool       // whether the caller is one of its tasks, or the program that starts them
	Points() bool     // whether it makes the orders of operations; otherwise it gets no look and no release
	Starts(f func())  // starts a task in place of a goroutine
	Looks(k Kinds)    // one of its tasks calls it, like Releases
	Releases(k Kinds) // a point, maybe
	Glances(k Kinds)  // a look and a point, if the caller of the caller of Glance is none of Braid's functions
}

var watchers atomic.Pointer[[]Watcher]

// Watch notifies w of looks, of releases, and of goroutines that Braid would start. It is Begin if w wants points.
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

// watcher returns the Watcher of the caller, nil if there is none.
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

// Looks is called by an operation that reports whether an object is held, and need not wait for it.
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

// Glance is called by a look, at a context or a Group, which is an operation if the program makes it.
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

// Releases is called where an operation begins that ends a hold.
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

// Watched reports whether the release of an object that is taken now may be a point.
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
