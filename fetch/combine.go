package fetch

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// Map calls f for each item, in concurrent tasks, and returns the results in the order of the items. Map suspends its caller
// until all calls have ended. If items fail, Map returns the error of the first failed item in order, or raises its panic.
// Items before a failed item run to their end; later items are cancelled or never started.
//
// The tasks run on the caller's scheduler; in a Run, they are tasks of the Run.
func Map[T, R any](ctx context.Context, items []T, f func(ctx context.Context, item T) (R, error)) ([]R, error) {
	out := make([]R, len(items))
	err := together(ctx, len(items), func(ctx context.Context, i int) (err error) {
		out[i], err = f(ctx, items[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Two calls a and b concurrently and returns both results, or the error of the first function in order that fails. In all other
// respects, Two is like Map.
func Two[A, B any](ctx context.Context, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	err = together(ctx, 2, func(ctx context.Context, i int) (err error) {
		if i == 0 {
			va, err = a(ctx)
		} else {
			vb, err = b(ctx)
		}
		return err
	})
	if err != nil {
		return *new(A), *new(B), err
	}
	return va, vb, nil
}

// Three is like Two, for three functions.
func Three[A, B, C any](ctx context.Context, a func(context.Context) (A, error), b func(context.Context) (B, error),
	c func(context.Context) (C, error)) (va A, vb B, vc C, err error) {
	err = together(ctx, 3, func(ctx context.Context, i int) (err error) {
		switch i {
		case 0:
			va, err = a(ctx)
		case 1:
			vb, err = b(ctx)
		default:
			vc, err = c(ctx)
		}
		return err
	})
	if err != nil {
		return *new(A), *new(B), *new(C), err
	}
	return va, vb, vc, nil
}

// Together calls all functions concurrently and returns the error of the first function in order that fails. In all other
// respects, Together is like Map.
func Together(ctx context.Context, fs ...func(ctx context.Context) error) error {
	return together(ctx, len(fs), func(ctx context.Context, i int) error { return fs[i](ctx) })
}

// A group is the state of one call of a combinator. The result of a group must equal the result of the sequential program, so
// the first failed item in order decides the result. When an item fails, the items before it continue, because an earlier item
// may fail, too. When all of these have ended, the group is decided, and the later items are cancelled. See "There is no fork",
// section 8.1.
//
// Invariant: items are claimed in order, and once an item has failed, no later item is claimed.
type group struct {
	f     func(ctx context.Context, i int) error
	frame frame // the context of the items
	ctx   cancelctx.Following
	outer *trail // the caller's trail; nil without a trace

	guard   suspend.Guard
	n       int
	claimed int
	live    int      // number of tasks that run items, including the caller's
	ended   []uint64 // one bit for each item
	few     [1]uint64
	next    int // the first item that has not ended
	failed  int // the first failed item in order; n means that none has failed
	err     error
	how     outcome.Outcome // how the failed item ended
	last    *request        // the latest answer that an item received
	waiter  suspend.Resumer[struct{}]
}

// together calls f for n items in concurrent tasks and returns when all calls have ended. The caller's task runs items, too.
// The items' context ends when ctx ends, or when the group is decided.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	outer := frameOf(ctx)
	if err := outer.check(ctx); err != nil || n == 0 {
		return err
	}
	if n == 1 && outer.trail == nil {
		return f(ctx, 0)
	}
	g := &group{f: f, n: n, failed: n, live: n}
	if g.ended = g.few[:]; n > 64 {
		g.ended = make([]uint64, (n+63)/64)
	}
	if ctx == context.Context(outer) {
		ctx = outer.Context // cancelctx recognises the inner context
	}
	g.ctx.Init(ctx, watching.Here)
	g.frame.init(outer, &g.ctx.Context, outer.s, outer.d)
	g.frame.askers = max(n, outer.askers)
	if g.outer = outer.trail; g.outer != nil {
		g.frame.trail = g.outer.combinator()
	}
	defer g.waitAll()
	on, work := suspend.Here(), g.work
	for i := 1; i < n; i++ {
		if on.Go(work) != nil { // the scheduler refused the task; other tasks run its items
			g.guard.Lock()
			g.leaveLocked()
			g.guard.Unlock()
		}
	}
	g.work()
	g.wait()
	g.how.Rethrow()
	return g.err
}

// work claims and runs items until no item is left.
func (g *group) work() {
	g.guard.Lock()
	i := g.claimLocked()
	g.guard.Unlock()
	for i != noItem {
		i = g.item(i)
	}
}

// noItem is the result of claimLocked if no item is left.
const noItem = -1

// claimLocked returns the next item for the calling task. If no item is left, claimLocked decrements g.live and returns noItem.
func (g *group) claimLocked() (i int) {
	if i = g.claimed; i < g.failed {
		g.claimed++
		return i
	}
	g.leaveLocked()
	return noItem
}

// item runs item i and returns the task's next item.
func (g *group) item(i int) (next int) {
	f := &g.frame
	if f.trail != nil {
		own := *f
		own.trail = f.trail.item()
		f = &own
	}
	var err error
	returned := false
	defer func() {
		var how outcome.Outcome
		if !returned {
			how = outcome.Recovered(recover())
		}
		next = g.endItem(i, f, err, how)
	}()
	err = g.f(f, i)
	returned = true
	return
}

// endItem records the end of item i, and returns the task's next item, or noItem if the task has exited.
func (g *group) endItem(i int, f *frame, err error, how outcome.Outcome) (next int) {
	g.guard.Lock()
	defer g.guard.Unlock()
	g.ended[i/64] |= 1 << (i % 64)
	if (err != nil || !how.Returned()) && i < g.failed {
		g.failed, g.err, g.how = i, err, how
	}
	for g.next < g.n && g.ended[g.next/64]&(1<<(g.next%64)) != 0 {
		g.next++
	}
	if f.trail != nil {
		g.last = g.last.later(f.trail.last.Load())
	}
	if decided := g.failed < g.n && g.next >= g.failed; decided {
		g.cancelLocked()
	}
	if how.Exited() {
		g.leaveLocked()
		return noItem
	}
	return g.claimLocked()
}

// cancelLocked cancels the items that have not ended. During the cancellation, g.guard is unlocked.
func (g *group) cancelLocked() {
	err := g.err
	g.guard.Unlock()
	defer g.guard.Lock()
	g.ctx.Cancel(err)
}

func (g *group) leaveLocked() {
	if g.live--; g.live == 0 {
		g.waiter.Resume(struct{}{}, nil)
	}
}

// waitAll waits for all items, even if an item in the caller's task has called runtime.Goexit.
func (g *group) waitAll() {
	g.wait()
	g.ctx.Cancel(nil)
	if g.outer != nil {
		g.outer.got(g.last)
	}
}

func (g *group) wait() {
	_, _ = suspend.Wait[struct{}](context.Background(), (*groupEnd)(g))
}

// A groupEnd is the suspend.Source on which the caller waits for the last task of the group.
type groupEnd group

func (g *groupEnd) Guard() *suspend.Guard                 { return &g.guard }
func (g *groupEnd) Try() (v struct{}, ok bool, err error) { return v, g.live == 0, nil }
func (g *groupEnd) Enqueue(r suspend.Resumer[struct{}])   { g.waiter = r }
func (g *groupEnd) Remove(suspend.Resumer[struct{}])      {}
