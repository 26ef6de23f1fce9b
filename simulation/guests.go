package simulation

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/draws"
)

// guests is the part of a World that serves its guests, which are goroutines and not tasks.
type guests struct {
	mu sync.Mutex // a guest holds mu during a call, and the driver holds mu except in windows
	w  *World

	// The actions of guests in the current window.
	who     map[labels.Set]guestID // the guests by the labels of their goroutines
	asked   []asked
	touched []*conn
	calling bool // a guest holds mu
	calls   uint64
	over    bool
	stops   []context.CancelFunc // these functions cancel the contexts that Start has made

	// The state that the World and the driver share.
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	born    int
	woken   bool          // guests were woken in this step
	pausing bool          // the World waits for time to pass
	until   time.Duration // the time until which the World waits

	// The state of the bubble and the driver.
	bubble   string
	begun    time.Time
	kick     chan struct{} // ends the sleeper's sleep
	done     chan struct{} // closed when the run is over
	commands chan time.Duration
	asleep   bool
	rang     bool // the sleep ended because its time was over
	random   *chance.State
	ordered  bool // the seed decides the order of guests
	samples  []metrics.Sample
	baseline uint64
	heap     []metrics.Sample
	limit    uint64 // the heap size above which the driver collects garbage
	patience time.Duration
	windows  int
	moves    atomic.Int64 // the number of windows, for reportStall()
	long     []int        // the numbers of the long windows
	ahead    int
	stands   int64 // the real time at which the bubble's clock stopped, because a guest waits, but not durably; 0 while the clock moves
	events   int   // the number of events since the clock stopped
	outside  error // the error of a guest that waits for real I/O
}

// A guestID identifies the call of Start that a goroutine descends from. The goroutines of a guest carry profiler labels, which a go
// statement copies to the new goroutine. Functions that time.AfterFunc calls have no labels.
type guestID struct {
	host *host
	n    int // the number of the call of Start; main has the number 1
}

// An asked is a guest's call that the World executes after the window.
type asked struct {
	guestID
	f func()
}

// start starts f as a guest on h. The caller must be on the World.
func (g *guests) start(h *host, f func()) {
	g.born++
	l := pprof.Labels("node", hostName(h), "guest", strconv.Itoa(g.born), "seed", strconv.FormatUint(g.w.o.Seed, 10))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), l))
	g.who[labels.Here()] = guestID{h, g.born}
	if g.ordered {
		unordered, id := f, uint64(g.born)
		f = func() {
			chance.Begin(id)
			unordered()
		}
	}
	go f()
	labels.Clear()
	g.woken = true
}

// beginCall begins a guest's call, and g.endCall ends the call. Once the run is over, beginCall ends the guest instead.
func (g *guests) beginCall() {
	if g.again(); g.over {
		g.endCall()
		runtime.Goexit()
	}
}

func (g *guests) endCall() {
	g.calling = false
	g.mu.Unlock()
}

// calling returns w.guests while a guest calls, and nil otherwise.
func (w *World) calling() *guests {
	if g := w.guests; g != nil && g.calling {
		return g
	}
	return nil
}

// call calls f on the World, and waits until f has called its argument. If ctx is cancelled first, g.call ends the sleeper's sleep, so that
// the World notices the cancellation.
func (g *guests) call(ctx context.Context, h *host, f func(done func())) {
	g.beginCall()
	defer g.endCall()
	woke, returns := make(chan struct{}), false
	g.ask(h, func() {
		f(func() {
			returns, g.woken = true, true
			close(woke)
		})
	})
	g.wait(ctx, woke)
	if !returns {
		g.touch()
		g.wait(context.Background(), woke)
	}
}

// wait waits, within a call, until it can receive from the given channel, or until ctx is cancelled. It unlocks g.mu during the wait.
func (g *guests) wait(ctx context.Context, woke <-chan struct{}) {
	g.endCall()
	defer g.again()
	select {
	case <-woke:
	case <-ctx.Done():
	case <-g.done:
		runtime.Goexit()
	}
}

func (g *guests) again() {
	g.mu.Lock()
	g.calling = true
	g.calls++
	if g.random != nil { // seeded again, because the runtime also draws for its caches, which outlive a run
		g.random.SeedCheap(draws.Mix(g.w.o.Seed, g.calls))
	}
}

// touch ends the sleeper's sleep, so that the World runs.
func (g *guests) touch() {
	if g.asleep {
		select {
		case g.kick <- struct{}{}:
		default:
		}
	}
}

// ask queues f until the end of the window. The queue is sorted by node and guest, so that the order of arrival does not matter. h is nil
// if the call is not for a node.
func (g *guests) ask(h *host, f func()) {
	by := g.who[labels.Here()]
	if h != nil {
		by.host = h
	}
	g.asked = append(g.asked, asked{by, f})
	g.w.called.Store(true)
	g.touch()
}

// later queues f until the end of the window, together with the other actions of guests on c.
func (g *guests) later(c *conn, f func()) {
	if len(c.later) == 0 {
		g.touched = append(g.touched, c)
		g.w.called.Store(true)
		g.touch()
	}
	c.later = append(c.later, f)
}

// deadline sets a deadline of c to t, a time of package time's clock.
func (g *guests) deadline(c *conn, s *endpoint, t time.Time) {
	s.expired = false
	s.set++ // cancels a deadline that was set in this window
	s.clear(g.w)
	if t.IsZero() {
		return
	}
	if time.Until(t) <= 0 {
		s.expire()
		return
	}
	at, set := t.Sub(g.begun), s.set
	g.later(c, func() {
		if set == s.set && !c.closed {
			s.timer = g.w.after(at-g.w.now, nil, s.expire)
		}
	})
}

// executeCalls executes the calls that guests have queued.
func (g *guests) executeCalls() {
	all, conns := g.asked, g.touched
	g.asked, g.touched = nil, nil
	slices.SortFunc(conns, func(a, b *conn) int { return cmp.Or(a.node.index-b.node.index, a.id-b.id) })
	for _, c := range conns {
		later := c.later
		c.later = nil
		g.w.acting = guestID{&c.node.host, 0}
		for _, f := range later {
			f()
		}
	}
	slices.SortStableFunc(all, func(a, b asked) int { return cmp.Or(a.host.number()-b.host.number(), a.n-b.n) })
	g.w.steps += len(all) // calls count as steps, otherwise a guest could call forever
	for _, a := range all {
		g.w.acting = a.guestID
		a.f()
	}
	g.w.acting = guestID{}
}

// sleep yields to the driver until the guests have run, or until the World's next timer is due.
func (g *guests) sleep() {
	w := g.w
	g.pausing = !g.woken
	g.woken, g.rang, g.until = false, false, plus(w.now, w.alarm())
	select {
	case <-g.kick: // a kick that came after the end of the last sleep must not end the next sleep
	default:
	}
	g.yield(struct{}{})
	if g.rang && len(w.timers.heap) == 0 && !w.called.Load() && w.o.MaxTime == 0 { // the alarm of ten years has rung, so no guest sleeps
		w.stuck()
		return
	}
	w.pass()
	w.admit()
}

// fromOutside implements World.fromOutside for guests. It must not end the guest, which may hold locks of package suspend.
func (g *guests) fromOutside(r ready) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return errOver
	case r.host == nil && r.task == nil: // only tasks may make this call
		err := fmt.Errorf("simulation: %w: a guest calls what is for tasks; its network is that of a Host\n%s", ErrForeign, debug.Stack())
		g.ask(nil, func() { g.w.fail(err) })
		return ErrForeign
	}
	g.ask(r.host, func() { g.w.letIn(r) })
	return nil
}

// byNode returns the stacks of the guests, grouped by node.
func (g *guests) byNode(stacks map[int64][]byte) string {
	of := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		head, _, _ := bytes.Cut(stacks[id], []byte{'\n'})
		if _, node, ok := bytes.Cut(head, []byte(`"node": "`)); ok && bytes.Contains(head, []byte(g.bubble)) {
			name, _, _ := bytes.Cut(node, []byte{'"'})
			of[string(name)] = append(of[string(name)], fmt.Sprintf("\n\n%s\n%s", head, frame(frames(stacks[id]))))
		}
	}
	var b strings.Builder
	for _, node := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "\n\nguests of %s:%s", node, strings.Join(of[node], ""))
	}
	return b.String()
}
