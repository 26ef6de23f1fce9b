package explore

import (
	"context"
	"slices"
	"time"
)

func (w *World) context(t *task, name string, reason error) *taskContext {
	c := &taskContext{w: w, t: t, reason: reason, done: make(chan struct{})}
	c.canceller = &task{w: w, name: name, cancels: c, helps: true, f: c.cancel}
	access := footprint{c.at(), write}
	c.canceller.pending = access
	w.add(nil, c.canceller)
	w.contexts = append(w.contexts, c)
	return c
}

func (c *taskContext) Deadline() (deadline time.Time, ok bool) { return deadline, false }
func (c *taskContext) Value(any) any                           { return nil }

func (c *taskContext) Done() <-chan struct{} {
	c.observe(read)
	return c.done
}

func (c *taskContext) Err() error {
	c.observe(read)
	return c.err
}

// AfterFunc is the method by which packages context and suspend register f. It makes cancellation synchronous, unless the context is
// detached.
func (c *taskContext) AfterFunc(f func()) (stop func() bool) {
	c.observe(write)
	switch {
	case c.err == nil:
	case within("context.(*cancelCtx).propagateCancel"): // propagateCancel holds a lock that f takes, so f must run in another task
		c.w.help("after", f)
		return func() bool { return false }
	default:
		c.runCallback(f)
		return func() bool { return false }
	}
	entry := &f
	c.after = append(c.after, entry)
	return func() bool {
		c.point(write)
		i := slices.Index(c.after, entry)
		if i >= 0 {
			c.after = slices.Delete(c.after, i, i+1)
		}
		return i >= 0
	}
}

func (c *taskContext) runCallback(f func()) {
	if c.detached {
		c.w.help("after", f)
	} else {
		f()
	}
}

// observe is called when a task looks at the context. The search may cancel the context at this point.
func (c *taskContext) observe(kind accessKind) {
	w := c.w
	t := w.running()
	if t == nil || w.dead {
		return
	}
	w.e.cut.Never = w.e.cut.Never || c.never()
	if c.t == nil {
		c.t = t
	}
	if w.e.Reduced {
		t.looksAt(c, kind)
		return
	}
	// A cancellation has the same effect at every moment before the first look, so observe may cancel the context itself. After the first
	// look, with Fine, the canceller runs like other tasks.
	if c.canceller.begun || c.used && w.e.Fine {
		return
	}
	c.used = true
	b := w.e.search.(*bounded)
	switch {
	case c.never():
	case !b.mayCancel():
		w.e.cut.Cancellations = true
	case w.e.choose(2) == 1:
		w.e.countStep()
		b.cancelled++
		c.canceller.begun, c.canceller.ended = true, true
		c.cancel()
	}
}

// The result of never is true if Config.Cancellations forbids the cancellation of c.
func (c *taskContext) never() bool { return c.w.e.Cancellations == Never && !c.own }

// point performs an access to c if a reduced search may cancel c. Other tasks can take turns before the access.
func (c *taskContext) point(kind accessKind) {
	if t := c.w.running(); t != nil && c.w.e.Reduced && c.canceller.live {
		t.access(kind, c.at())
	}
}

func (c *taskContext) cancel() {
	if t := c.w.running(); t != nil && t == c.t { // the task cancels its own context, in the method observe
		t.eventHere("is cancelled")
	} else {
		c.w.event(c.t, "is cancelled")
	}
	c.err = c.reason
	close(c.done)
	for len(c.after) > 0 {
		if !c.detached {
			c.point(write)
		}
		if len(c.after) > 0 {
			f := c.after[0]
			c.after = c.after[1:]
			c.runCallback(*f)
		}
	}
}

var _ context.Context = (*taskContext)(nil)
