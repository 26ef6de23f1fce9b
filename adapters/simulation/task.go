package simulation

import (
	"sync/atomic"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A task is a coroutine of a World, with the task that is on it, if any. -T> is the task, -U> an Unpark.
//
//	active -T> parked   Park. The switch follows
//	parked -U> active   and the task is ready
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
type task struct {
	world atomicx.Pointer[World] // goroutines outside may call Unpark
	coro.Coroutine
	host  *host
	id    int // on its host
	mark  uint8
	under *task // has resumed it, in a Crash

	place dlist.Node[*task] // among those of its host that have begun and not ended, the oldest first
}

const (
	active uint8 = iota
	parked
	woken
)

// Leave implements suspend.Switcher.
func (t *task) Leave() (next coro.Next, yield coro.Yield) {
	if t.mark == woken {
		t.mark = active
		return nil, nil
	}
	t.mark = parked
	return nil, t.Coroutine.Leave(coro.Parked)
}

// LeaveReady implements suspend.Switcher: the seed picks another.
func (t *task) LeaveReady() (next coro.Next, yield coro.Yield) {
	w := t.world.Load()
	w.ready = append(w.ready, ready{host: t.host, task: t})
	return nil, t.Coroutine.Leave(coro.Yielded)
}

// Back implements suspend.Switcher. It is not called: Leave returns no next.
func (t *task) Back() (next coro.Next, yield coro.Yield) { return nil, nil }

// Unpark implements suspend.Task.
func (t *task) Unpark() {
	switch w := t.world.Load(); {
	case !w.on():
		_ = w.fromOutside(ready{task: t})
	case t.mark == parked:
		w.rouse(t)
	default:
		t.mark = woken
	}
}

// Spawner returns the World or the Node.
func (t *task) Spawner() suspend.Spawner { return t.host.spawner }

// Another implements coro.Owner: each beginning of a task is a step of its own.
func (t *task) Another() func() { return nil }

// Panicked implements coro.Owner.
func (t *task) Panicked(value any, stack []byte) { t.world.Load().panicked(value, stack) }

// A fleet is a stock of coroutines. Successive Worlds of a Test share one: to make a coroutine takes longer than most tasks.
type fleet struct {
	idle   []*task
	stalls *coro.Stalls

	// Goroutines of coroutines that were found to be this fleet's. Such a goroutine runs only while the World has switched
	// to it, and ids are never used again, so a hit needs no lookup.
	own [64]atomic.Int64
}

func newFleet(o Options) *fleet { return &fleet{stalls: coro.WatchStalls(o.StallAfter, nil)} }

// begin returns a coroutine that is about to run f.
func (l *fleet) begin(w *World, h *host, f func()) *task {
	var t *task
	if n := len(l.idle); n > 0 {
		t = l.idle[n-1]
		l.idle = l.idle[:n-1]
	} else {
		t = new(task)
		t.place.Value = t
		t.Init(t)
		t.WatchedBy(l.stalls)
	}
	t.world.Store(w)
	t.host, t.mark = h, active
	h.born++
	t.id = h.born
	h.tasks.Push(&t.place)
	t.Start(f)
	return t
}

// left takes back a coroutine that has given control back, if its task has ended.
func (l *fleet) left(t *task) {
	if t.Why() < coro.Ended {
		return
	}
	t.host.tasks.Remove(&t.place)
	if t.Why() == coro.Exited {
		t.Reap()
	} else {
		l.idle = append(l.idle, t)
	}
}

// stop ends all coroutines.
func (l *fleet) stop() {
	for _, t := range l.idle {
		t.Stop()
	}
	l.idle = nil
	l.stalls.Stop()
}
