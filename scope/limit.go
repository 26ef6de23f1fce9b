package scope

import (
	"cmp"
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Limit returns a Spawner that uses on to start tasks, and has at most n live tasks. Its Go never suspends: if n tasks are
// live, it queues the function, and starts queued functions in order as tasks end. A queued function costs memory, but no
// task. A task counts as live until it ends, even while it is suspended.
//
// If Scope.Go, Start, Map, First or Stream has passed a function to the Limit, and the scope is cancelled while the function
// is queued, the function never runs. A function that was passed to the Limit's own Go, or through Scope.On, always runs. A
// function that was passed through another package's Spawner also runs, with its context cancelled. If the scheduler is
// closed before a queued function has started, the function runs on a plain goroutine.
//
// A task of a Limit must not wait for a function that is queued in the same Limit. For example, a Map on the caller's own
// Limit may wait for the caller's place until its context ends. Use a separate Limit for inner tasks.
//
// The returned Spawner has the same capabilities as on; see suspend.As. Callbacks and blocking functions are not tasks, so
// they do not count. If on is nil, the tasks are plain goroutines. Limit panics if n is less than 1.
//
//	err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
//		four := scope.Limit(4, nil)
//		for _, url := range urls {
//			s.Go(four, func(ctx context.Context) error { return fetch(ctx, url) })
//		}
//		return nil
//	})
func Limit(n int, on suspend.Spawner) suspend.Spawner {
	if n < 1 {
		panic("scope: Limit with less than one task")
	}
	return &limited{on: cmp.Or(on, suspend.Goroutines), free: n}
}

// A limited is the Spawner that Limit returns. Each live task has a place. A function starts if a place is free, and is
// queued otherwise.
//
// Invariant: the list waiting is empty while free > 0.
// Debt: a task that ends must pass its place to the first queued function, or increment l.free. The same is true of a
// function that has a place and is withdrawn.
type limited struct {
	on suspend.Spawner

	mu      atomicx.Mutex
	free    int
	waiting dlist.List[waiting]
}

// A waiting is a queued function, which has no place. The call that removes it from the list, under l.mu, must start it or
// withdraw it.
type waiting struct {
	f         func()          // runs with the profiler labels of the caller of Go
	ctx       context.Context // f is withdrawn if ctx ends; nil if f is never withdrawn
	withdrawn func()
	stop      func() bool // stops the AfterFunc that withdraws f; nil until l.withdrawOnDone sets it, under l.mu
}

// Unwrap returns l.on, for suspend.As.
func (l *limited) Unwrap() suspend.Spawner { return l.on }

// Go implements suspend.Spawner.
func (l *limited) Go(f func()) error {
	var none context.Context // f is never withdrawn
	return l.acceptFunction(none, f, nil)
}

// GoUntil implements sched.Withdrawer.
func (l *limited) GoUntil(ctx context.Context, f, withdrawn func()) error {
	return l.acceptFunction(ctx, f, withdrawn)
}

func (l *limited) acceptFunction(ctx context.Context, f, withdrawn func()) error {
	check(f != nil)
	if ctx != nil { // the end of the context withdraws f, unless a place becomes free first
		preempt.Looks(preempt.Members)
	}
	l.mu.Lock()
	if l.free == 0 {
		w := &dlist.Node[waiting]{Value: waiting{f: under(labels.Here(), f), ctx: ctx, withdrawn: withdrawn}}
		l.waiting.Push(w)
		l.mu.Unlock()
		if ctx != nil {
			l.withdrawOnDone(w)
		}
		return nil
	}
	l.free--
	l.mu.Unlock()
	started := false
	defer func() {
		if !started {
			l.passPlace()
		}
	}()
	err := l.start(ctx, f, withdrawn)
	started = err == nil
	return err
}

// under returns a function that sets the profiler labels to s and calls f. Otherwise f might have another task's labels.
func under(s labels.Set, f func()) func() {
	return func() {
		s.Put()
		f()
	}
}

// withdrawOnDone withdraws w when its context ends.
func (l *limited) withdrawOnDone(w *dlist.Node[waiting]) {
	stop := cancel.AfterFunc(w.Value.ctx, func() {
		l.mu.Lock()
		waits := l.waiting.Remove(w)
		l.mu.Unlock()
		if waits {
			w.Value.withdrawn()
		}
	})
	l.mu.Lock()
	waits := l.waiting.Has(w)
	if waits {
		w.Value.stop = stop
	}
	l.mu.Unlock()
	if !waits { // w has been started or withdrawn
		stop()
	}
}

// start starts f in a place that the caller has taken. If f is then withdrawn, because l.on has queued it, start gives up the place.
func (l *limited) start(ctx context.Context, f, withdrawn func()) error {
	run := func() {
		defer l.passPlace() // runs even after a panic or a Goexit
		f()
	}
	if on, ok := l.on.(sched.Withdrawer); ok && ctx != nil {
		return on.GoUntil(ctx, run, func() {
			l.passPlace()
			withdrawn()
		})
	}
	return abandoned.Go(l.on, run, l.passPlace)
}

// passPlace passes a place to the first queued function whose context has not ended, or increments l.free. It withdraws the
// functions ahead of that function. If passPlace started those instead, an inner Limit would withdraw each in a nested call of
// passPlace, and the nesting would be as deep as the queue is long.
func (l *limited) passPlace() {
	preempt.Releases(preempt.Members)
	for {
		l.mu.Lock()
		n := l.waiting.Pop()
		if n == nil {
			l.free++
			l.mu.Unlock()
			return
		}
		w := n.Value
		l.mu.Unlock()
		if w.stop != nil {
			w.stop()
		}
		if w.ctx != nil && w.ctx.Err() != nil {
			w.withdrawn()
			continue
		}
		if l.start(w.ctx, w.f, w.withdrawn) != nil {
			_ = suspend.Goroutines.Go(func() { defer l.passPlace(); w.f() })
		}
		return
	}
}
