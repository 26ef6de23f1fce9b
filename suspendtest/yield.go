package suspendtest

import (
	"runtime"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// yieldGivesWay lets two tasks take turns by Yield alone, and counts the Yields. With a Yield that gives way, a few are
// enough for a hand-over. With one that does not, the tasks yield thousands of times, until the runtime preempts them.
//
// Tasks that run in parallel need no Yield, so other goroutines keep the other processors busy. Two tasks may belong to
// different threads, and then wait for a processor. So there are several partners, and one is enough.
func yieldGivesWay(e *env) {
	if !hasYield(e) {
		return
	}
	var over atomic.Bool
	defer over.Store(true)
	for range runtime.GOMAXPROCS(0) - 1 {
		go func() {
			for !over.Load() && !e.over.Load() {
			}
		}()
	}
	const partners = 9
	e.do("two tasks that yield made no progress", func() {
		for range partners {
			if e.takeTurns() || e.over.Load() {
				return
			}
		}
		e.errorf("two tasks called Yield more than %d times in nearly every hand-over, with each of %d partners", manyYields, partners)
	})
}

const manyYields = 100 // for a hand-over; expected are one or two

// takeTurns reports whether most of the hand-overs between the calling task and a new one take few Yields.
func (e *env) takeTurns() bool {
	const handOvers = 50
	var turn, yields atomic.Int64
	last, late := int64(0), 0 // of the task that has the turn
	play := func(side int64) {
		for turn.Load() < handOvers && !e.over.Load() {
			if turn.Load()%2 != side {
				yields.Add(1)
				suspend.Yield()
				continue
			}
			now := yields.Load()
			if now-last > manyYields {
				late++
			}
			if last = now; late > handOvers/2 {
				turn.Store(handOvers) // enough
				return
			}
			turn.Add(1)
		}
	}
	var ended atomic.Bool
	if err := suspend.Here().Go(func() {
		defer ended.Store(true)
		play(1)
	}); err != nil {
		e.fatalf("Here().Go: %v", err)
	}
	play(0)
	for !ended.Load() && !e.over.Load() {
		suspend.Yield()
	}
	return late <= handOvers/2
}

// hasYield reports whether the tasks have a Yield of their own, or are goroutines.
func hasYield(e *env) (has bool) {
	e.do("a task did not run", func() {
		_, own := suspend.Self().(interface{ Yield() })
		has = own || suspend.Here() == suspend.Goroutines
	})
	return has
}
