package stage

import "github.com/braidgo/braid/suspend"

// The type slots says how many handlers of a stage may run, and when the next one may begin. A task has a slot from the beginning of its
// handler until it leaves the stage or is delayed: also while OnFail runs, and while a worker waits for room in the next stage.
//
// Invariant: a task begins only while core.free is positive. So at most width handlers run, not counting those that wait, except after the
// width has shrunk, or after a wait has ended whose slot was lent.
// Invariant: at most one worker holds the stage, that is, waits in core.hold. Meanwhile no task begins.
// Debt: code that ends the reason of a hold must call letBegin, and code that shrinks pace.next must wake the queue holder.
type slots struct {
	width    int
	reason   string // the reason of the last change of width
	taken    int    // handlers that run or wait
	limiting bool   // Options.Limit is being called
	window   window

	paced     bool // Rate or Gather is set
	pace      pace
	held      bool // a worker waits until the next handler may begin
	gathering bool // the stage is held for Gather, and not for Rate alone
	ripe      bool // the worker has waited long enough, so the next handler begins without a look at the time
	holder    suspend.Queue[struct{}, struct{}]
}

// A window collects the figures of the next Sample. The guard protects it.
type window struct {
	since   int64
	started bool
	least   int
	done    int
	failed  int
	dropped uint64 // the value of counts.dropped when the window began
	refused uint64 // the value of counts.refused() when the window began
	service int64
}

// A pace implements Options.Rate by the generic cell rate algorithm. A handler may begin once the time pace.next has passed. When a
// handler begins, pace.every is added to pace.next.
type pace struct {
	every, slack int64 // nanoseconds; if pace.every is 0, there is no limit
	next         int64
	started      bool
}
