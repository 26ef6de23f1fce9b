package eventloop

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// timers is the timer heap of one reactor. Any goroutine may set and stop a timer, but only the reactor runs timers. When
// the reactor ends, package time takes over the timers of user code, because others may wait for them: the continuation of
// a Then, the tasks behind the first waiter of a rate.Limiter, a context with a deadline. No other lock is acquired while
// mu is held.
type timers struct {
	r    *reactor
	next atomicx.Int64 // the time of the first timer, or the constant never if there is no timer; written under mu

	mu     atomicx.Mutex
	heap   []*timer
	seq    uint64
	closed bool
	ended  bool     // package time has taken over
	fired  []*timer // scratch space of the method run; used only by the reactor
}

// A timer is an entry of the heap. A timer is in the heap while its index is not negative, so newTimer must set the
// index to -1.
type timer struct {
	when, seq int64 // guarded by timers.mu, as is index
	index     int
	f         func()
	foreign   bool        // f is user code, so it runs as a callback
	late      *time.Timer // runs f after the reactor has ended
	abandoned func()      // called instead of f if the Loop is closed first; if abandoned is nil, the timer stays set
}

func newTimer(f func()) *timer { return &timer{f: f, index: -1} }

const never = math.MaxInt64

func (ts *timers) init(r *reactor) {
	ts.r = r
	ts.next.Store(never)
}

// after returns the time that is d from now.
func (ts *timers) after(d time.Duration) int64 {
	now := ts.r.loop.now()
	if d <= 0 {
		return now
	}
	if when := now + int64(d); when > now {
		return when
	}
	return never - 1
}

// set makes t run at the given time. If t is set for an earlier time already, t keeps that time. The result is false if
// t will not run because the Loop is closed.
func (ts *timers) set(t *timer, when int64) bool {
	ts.mu.Lock()
	if ts.closed && t.abandoned != nil {
		ts.mu.Unlock()
		return false
	}
	if ts.ended {
		ts.outliveLocked(t, when)
		ts.mu.Unlock()
		return true
	}
	switch {
	case t.index < 0:
		ts.seq++
		t.when, t.seq, t.index = when, int64(ts.seq), len(ts.heap)
		ts.heap = append(ts.heap, t)
		ts.up(t.index)
	case when < t.when:
		t.when = when
		ts.up(t.index)
	}
	first := t.index == 0
	ts.publish()
	ts.mu.Unlock()
	if first {
		ts.r.poke()
	}
	return true
}

// stop removes t from the heap, and reports whether t was in it.
func (ts *timers) stop(t *timer) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.index < 0 {
		return t.late != nil && t.late.Stop()
	}
	ts.remove(t)
	ts.publish()
	return true
}

func (ts *timers) afterFunc(d time.Duration, f func()) (stop func() bool) {
	if f == nil {
		panic("eventloop: nil function")
	}
	t := newTimer(f)
	t.foreign = true
	ts.set(t, ts.after(d))
	return func() bool { return ts.stop(t) }
}

// sleep suspends the calling task for d. If ctx ends first, sleep returns the cancellation error, and if the Loop is closed first,
// errLoopClosed.
func (ts *timers) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return suspend.Err(ctx)
	}
	var t *timer
	_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		t = newTimer(func() { r.Resume(struct{}{}, nil) })
		t.abandoned = func() { r.Resume(struct{}{}, errLoopClosed) }
		if !ts.set(t, ts.after(d)) {
			t.abandoned()
		}
		return struct{}{}, false
	})
	if err != nil && t != nil {
		ts.stop(t)
	}
	return err
}

// until returns the time for which the reactor may sleep. A negative result means no limit, and zero means that a timer
// is due.
func (ts *timers) until() time.Duration {
	when := ts.next.Load()
	if when == never {
		return -1
	}
	return time.Duration(max(when-ts.r.loop.now(), 0))
}

// run runs the timers that are due now, and reports whether there were any. The functions of foreign timers are
// submitted as callbacks.
func (ts *timers) run(now int64) bool {
	if ts.next.Load() > now {
		return false
	}
	ts.mu.Lock()
	for len(ts.heap) > 0 && ts.heap[0].when <= now {
		ts.fired = append(ts.fired, ts.heap[0])
		ts.remove(ts.heap[0])
	}
	ts.publish()
	ts.mu.Unlock()
	for i, t := range ts.fired {
		ts.fired[i] = nil
		if t.foreign {
			if !ts.r.core.Due(t.f) { // the last task has just ended
				go ts.callLate(t.f)
			}
		} else {
			t.f()
		}
	}
	ts.fired = ts.fired[:0]
	return true
}

// close removes each timer whose field abandoned is not nil, and calls that function.
func (ts *timers) close() {
	var gone []*timer
	ts.mu.Lock()
	ts.closed = true
	for _, t := range ts.heap {
		if t.abandoned != nil {
			gone = append(gone, t)
		}
	}
	for _, t := range gone {
		ts.remove(t)
	}
	ts.publish()
	ts.mu.Unlock()
	for _, t := range gone {
		t.abandoned()
	}
}

// end is called when the reactor has ended.
func (ts *timers) end() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ended = true
	for _, t := range ts.heap {
		t.index = -1
		ts.outliveLocked(t, t.when)
	}
	ts.heap = nil
	ts.publish()
}

// outliveLocked gives t to package time. A timer of the Loop itself has nothing to do any more.
func (ts *timers) outliveLocked(t *timer, when int64) {
	if t.foreign {
		t.late = time.AfterFunc(time.Duration(when-ts.r.loop.now()), func() { ts.callLate(t.f) })
	}
}

// callLate calls f, which is user code, after the reactor has ended.
func (ts *timers) callLate(f func()) {
	if onPanic := ts.r.loop.opts.OnPanic; onPanic != nil {
		defer func() {
			if v := recover(); v != nil {
				onPanic(v, debug.Stack())
			}
		}()
	}
	suspend.Bind(nil, f)
}

func (ts *timers) publish() {
	when := int64(never)
	if len(ts.heap) > 0 {
		when = ts.heap[0].when
	}
	if ts.next.Load() != when {
		ts.next.Store(when)
	}
}

func (ts *timers) remove(t *timer) {
	i, last := t.index, len(ts.heap)-1
	ts.swap(i, last)
	ts.heap[last] = nil
	ts.heap = ts.heap[:last]
	t.index = -1
	if i < last {
		ts.down(i)
		ts.up(i)
	}
}

func (ts *timers) less(i, j int) bool {
	a, b := ts.heap[i], ts.heap[j]
	return a.when < b.when || a.when == b.when && a.seq < b.seq
}

func (ts *timers) swap(i, j int) {
	h := ts.heap
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (ts *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !ts.less(i, parent) {
			return
		}
		ts.swap(i, parent)
		i = parent
	}
}

func (ts *timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(ts.heap) {
			return
		}
		if child+1 < len(ts.heap) && ts.less(child+1, child) {
			child++
		}
		if !ts.less(child, i) {
			return
		}
		ts.swap(i, child)
		i = child
	}
}
