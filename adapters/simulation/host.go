package simulation

import (
	"time"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/suspend"
)

// A host runs tasks. The World itself is a host, and so is each Node.
type host struct {
	world   *World
	name    string // empty for the World itself
	index   int    // the index in World.hosts
	spawner suspend.Spawner
	born    int // the number of tasks that have begun
	tasks   dlist.List[*task]
	holds   dlist.List[hold]
	dead    bool
	reboot  func() // called when the last task has ended
	paused  bool
	held    []ready // the entries of World.ready that wait until Resume

	since  time.Duration // the World's time at which the clock was set
	offset time.Duration // the clock's offset at that time
	rate   uint64        // the clock's speed relative to the World's clock, times 2³²
}

const normal = 1 << 32

// Go runs f as a task, some steps later. It returns suspend.ErrClosed if the run is over or the node has crashed.
func (h *host) Go(f func()) error { return h.submit(ready{host: h, f: labels.Inherit(f)}) }

// Execute runs f as a callback, some steps later. f must not suspend. Execute returns suspend.ErrClosed if the run is over or the node has
// crashed.
func (h *host) Execute(f func()) error { return h.submit(ready{host: h, f: f, as: callback}) }

func (h *host) submit(r ready) error {
	if r.f == nil {
		panic("suspend: nil function")
	}
	w := h.world
	if !w.on() {
		return w.fromOutside(r)
	}
	if w.over || h.dead {
		return suspend.ErrClosed
	}
	kind := starts
	if r.as == callback {
		kind = asks
	}
	by, id := w.caller()
	w.note(event{kind: kind, quiet: r.as != nil && r.as.by != nil, host: by, task: id, of: h})
	w.ready = append(w.ready, r)
	return nil
}

// Now returns the current time of the host's clock.
func (h *host) Now() time.Time {
	if h.world.guests != nil && !h.world.on() {
		return time.Now()
	}
	if h.world.own() {
		h.world.pass()
	}
	return h.world.start.Add(h.clock())
}

func (h *host) clock() time.Duration {
	now := h.world.now
	if h.rate != normal {
		now = plus(h.since, ratio(now-h.since, h.rate, 0, normal))
	}
	return plus(h.offset, now)
}

// AfterFunc calls f as a callback after the duration d. f must not suspend. The function stop cancels the timer, and reports whether it has
// prevented the call.
func (h *host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if f == nil {
		panic("suspend: nil function")
	}
	w := h.world
	if !w.on() {
		return w.timerFromOutside(h, d, f)
	}
	by, id := w.caller()
	w.note(event{kind: sets, host: by, task: id, of: h, data: uint64(d)})
	t := w.after(h.scaled(d), h, f)
	return func() bool { return w.stop(t) }
}

// scaled converts the duration d of the host's clock into a duration of the World's clock. It rounds up, so that no timer fires too early.
func (h *host) scaled(d time.Duration) time.Duration {
	if h.rate == normal || d <= 0 {
		return d
	}
	return ratio(d, normal, h.rate-1, h.rate) // adding h.rate-1 rounds up
}

// Uint64 implements sched.Rand for the tasks of h.
func (h *host) Uint64() uint64 {
	h.world.own()
	return h.world.random.Uint64()
}

// Block implements sched.Blocker. It calls f at once, while no other task runs and no time passes, so that suspend.Blocking is
// deterministic.
func (h *host) Block(f func()) error {
	if h.world.o.open {
		go f()
		return nil
	}
	f()
	return nil
}
