//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, leasePrograms...) }

// In these programs, a Runner is taken away from a task. A task runs on the coroutine self, and others wake it through its word.
var leasePrograms = []program{
	{"lease, a take", "4 × 1", lease{coroutines: 1, monitors: 1}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { x.wait(l.Self(), 1) })
		return func() { x.wake() }
	})},
	{"lease, a take, two Unparks", "4 × 2", lease{coroutines: 1, monitors: 1}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { x.wait(l.Self(), 2) })
		return func() { x.wake(); x.wake() }
	})},
	{"lease, a take, Yield", "4 × 2", lease{coroutines: 1, monitors: 1}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { l.Self().Yield(); x.wait(l.Self(), 1) })
		return func() { x.wake() }
	})},
	{"lease, a take, in the core", "4 × 2", lease{coroutines: 1, monitors: 1}.program(func(_ *explore.World, l *fifo.Leased) func() {
		goOnce(l, func() { l.Self().Pace(); l.Self().Pace() })
		return nil
	})},
	{"lease, a take, a task wakes another", "5 × 1", lease{coroutines: 2, monitors: 1}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { x.wait(l.Self(), 1) })
		goOnce(l, func() { x.wake() })
		return nil
	})},
	{"lease, a take, a task begins another", "5 × 1", lease{coroutines: 2, monitors: 1}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() {
			if !goOnce(l, func() { x.wake() }) {
				x.wake()
			}
			x.wait(l.Self(), 1)
		})
		return nil
	})},
	{"lease, two takes", "5 × 1", lease{coroutines: 1, monitors: 2}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { x.wait(l.Self(), 1) })
		return func() { x.wake() }
	})},
	{"lease, careful", "4 × 1", lease{coroutines: 1, careful: true}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { x.wait(l.Self(), 1) })
		return func() { x.wake() }
	})},
	{"lease, careful, and a take", "5 × 2", lease{coroutines: 1, monitors: 1, careful: true}.program(func(_ *explore.World, l *fifo.Leased) func() {
		var x word
		goOnce(l, func() { l.Self().Yield(); l.Self().Yield(); x.wait(l.Self(), 1) })
		return func() { x.wake() }
	})},
	// A task blocks natively until another task of its Runner has run, which is possible only after the Runner was taken.
	{"lease, a native wait", "5 × 1", lease{coroutines: 2}.program(func(w *explore.World, l *fifo.Leased) func() {
		var n native
		goOnce(l, func() { n.wait(l.Self()) })
		goOnce(l, func() { n.finish() })
		w.Go("monitor", func(context.Context) { n.monitor(l) })
		return nil
	})},
	// The same holds for a task that has parked when the blocking task begins, and would stand in for the scheduler.
	{"lease, a native wait for a task that has parked", "5 × 1", lease{coroutines: 2}.program(func(w *explore.World, l *fifo.Leased) func() {
		var n native
		var x word
		goOnce(l, func() { x.wait(l.Self(), 1); n.finish() })
		goOnce(l, func() { x.wake(); n.wait(l.Self()) })
		w.Go("monitor", func(context.Context) { n.monitor(l) })
		return nil
	})},
	// A task blocks natively, and is woken while it is outside.
	{"lease, an Unpark of a task that is outside", "5 × 1", lease{coroutines: 1}.program(func(w *explore.World, l *fifo.Leased) func() {
		var n native
		var x word
		goOnce(l, func() { n.wait(l.Self()); x.wait(l.Self(), 1) })
		w.Go("monitor", func(context.Context) { n.monitor(l) })
		return func() { x.wake(); n.finish() }
	})},
}

// A lease is a program with a leased Runner, which is closed at any time.
type lease struct {
	coroutines, monitors int
	careful              bool
}

// program calls begins, which starts tasks. The function that it returns runs outside the Runner.
func (p lease) program(begins func(w *explore.World, l *fifo.Leased) (elsewhere func())) func(w *explore.World) {
	return func(w *explore.World) {
		l := fifo.NewLeased(p.coroutines, p.careful)
		elsewhere := begins(w, l)
		for i := range p.coroutines {
			w.Go(fmt.Sprint("coroutine", i), func(context.Context) { l.Coroutine(i) })
		}
		w.Go("run", func(context.Context) { l.Drive() })
		for i := range p.monitors {
			w.Go(fmt.Sprint("monitor", i), func(context.Context) { l.Monitor() })
		}
		if p.careful {
			w.Go("carrier", func(context.Context) { l.Carrier() })
		}
		w.Go("elsewhere", func(context.Context) {
			if elsewhere != nil {
				elsewhere()
			}
			l.Close()
		})
		w.OnIdle(lost)
		w.Check(func() error {
			if l.Stats().Live != 0 {
				return errors.New("a task has not ended")
			}
			return nil
		})
	}
}

// goOnce starts f as a task, unless l is closed. f must run once.
func goOnce(l *fifo.Leased, f func()) (accepted bool) {
	began := false
	return l.Go(func() {
		if began {
			panic("a task runs twice")
		}
		began = true
		f()
	}) == nil
}

// A word is a count. A task waits until the count is large enough.
type word struct {
	n    atomicx.Int32
	task atomicx.Pointer[fifo.Emulated]
}

func (x *word) wait(self *fifo.Emulated, n int32) {
	x.task.Store(self)
	for x.n.Load() < n {
		self.Park()
	}
}

func (x *word) wake() {
	x.n.Add(1)
	if task := x.task.Load(); task != nil {
		task.Unpark()
	}
}

// native is a native wait that the checker knows about.
type native struct {
	over            atomicx.Bool
	waiter, watcher atomicx.Pointer[suspend.Task]
}

func (n *native) wait(c *fifo.Emulated) {
	self := c.Native()
	n.waiter.Store(&self)
	if w := n.watcher.Load(); w != nil {
		(*w).Unpark()
	}
	for !n.over.Load() {
		self.Park()
	}
}

func (n *native) finish() {
	n.over.Store(true)
	if self := n.waiter.Load(); self != nil {
		(*self).Unpark()
	}
}

// monitor takes the Runner from a task that blocks natively.
func (n *native) monitor(l *fifo.Leased) {
	self := suspend.Self()
	n.watcher.Store(&self)
	for n.waiter.Load() == nil {
		if n.over.Load() {
			return
		}
		self.Park()
	}
	l.Monitor()
}
