package workstealing

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// A fork is the second function of a Join, while another worker may run it. -J> is the task that called Join, -W> a
// worker that has taken the fork from a deque.
//
//	open    -J> open     taken back from the bottom of the deque: no worker has the fork or will get it
//	open    -J> claimed  a has resumed on another worker, or forks of other tasks are above: the fork runs in the task
//	open    -W> claimed  it runs on a coroutine of its own
//	claimed -J> awaited  the task suspends
//	claimed -W> done     it has ended before the task waits
//	awaited -W> done     and this worker owes the task its wake-up
//
// Invariant: the worker or task that claims a fork runs it, so each fork runs once. An entry in a deque is only a hint:
// a worker that fails to claim the fork drops the entry. A fork is reused only if it was taken back, because otherwise
// a deque may still hold it.
type fork struct {
	state atomicx.Uint32
	ctx   context.Context
	body  interface{ run(*fork) } // set to nil when the fork is taken
	next  *fork                   // links the forks that are kept for reuse; the worker owns the list
	under labels.Set              // the profiler labels of the task that made the fork

	waiter suspend.Resumer[struct{}] // written by J before the state becomes awaited
	value  any                       // value, err and ended are written by W before the state becomes done
	err    error
	ended  outcome.Outcome
}

const (
	open uint32 = iota
	claimed
	awaited
	done
)

// claim reports whether the caller has claimed f and must run it.
func (f *fork) claim() bool { return f.state.CompareAndSwap(open, claimed) }

// run runs f, which the caller has claimed, as the first and only function on a coroutine.
func (f *fork) run() {
	body := f.body
	f.body = nil
	f.under.Put()
	outcome.Of(func() { body.run(f) }, func(o outcome.Outcome) {
		f.ended, f.ctx = o, nil
		if f.state.Swap(done) == awaited {
			f.waiter.Resume(struct{}{}, nil)
		}
	})
}
