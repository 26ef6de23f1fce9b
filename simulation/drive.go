package simulation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/draws"
)

// This file drives a World with guests. Four kinds of goroutines take turns on one processor:
//
//	driver    runs outside the guests' bubble. It lets all guests run until each is blocked; this is a window. Then it resumes the World
//	World     is a coroutine in the guests' bubble. It runs steps until it has woken guests or must wait. Then it yields to the driver
//	sleeper   is a goroutine in the guests' bubble. It sleeps while the World waits. Only then does the bubble's clock advance
//	guests    call the World. A call is queued, and ends the sleep
//
// The World is a coroutine because a goroutine outside the bubble must not wake a goroutine inside, and another goroutine inside would stop
// the bubble's clock. When the driver switches to this coroutine, the runtime counts the bubble's running goroutines correctly only if the
// driver is in a bubble, too. So the driver has its own bubble.

// Indexes into guests.samples.
const (
	runnable = iota // the number of runnable goroutines; 0 means that all goroutines but the driver are blocked
	inCalls         // the number of goroutines in system calls
)

const (
	longWindow  = 5 * time.Millisecond // real time; after 10 ms the runtime may preempt a goroutine
	starving    = time.Millisecond     // real time; a sync.Mutex switches to starvation mode after a wait of 1 ms
	collectAt   = 10_000               // windows between two garbage collections
	lookAt      = 100                  // windows between two checks of the heap size
	realIOAfter = 20                   // events after the clock has stopped, until findRealIO() is called
)

var (
	busyAfter   = 10 * time.Second // the real time that a guest may run without a wait
	collectOver = 512 << 20        // bytes; the driver collects garbage above this size plus twice the live heap
)

var errNames = errors.New("simulation: there is no DNS in a World: dial the name of a node, by a Host")

// unnamed returns a resolver that finds only the names in /etc/hosts. A real lookup must not happen: it would leave the World, and
// net.DefaultResolver shares lookups between bubbles.
func unnamed() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNames }}
}

// inGuests does for a World with guests what runApart does for a World of tasks.
func inGuests(t *testing.T, o Options, random *chance.State, main func(ctx context.Context, w *World) error) Report {
	r := Report{Seed: o.Seed, Err: ErrExited}
	o.Bubble = false // the caller is in no bubble: this function makes one
	g := &guests{
		samples:  []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/not-in-go:goroutines"}},
		commands: make(chan time.Duration, 1), random: random, patience: busyAfter, who: map[labels.Set]guestID{},
		heap: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}, limit: uint64(collectOver), ordered: ordered(o),
	}
	if g.ordered {
		defer chance.EndOrder()
	}
	net.DefaultResolver = unnamed()
	for range 2 { // a sync.Pool keeps the timers of an older bubble for two collections
		runtime.GC()
	}
	for range 10 { // lets goroutines enter the system calls that they are about to make
		runtime.Gosched()
	}
	defer g.reportStall(o.Seed)()
	before := runtime.NumGoroutine()
	metrics.Read(g.samples)
	g.baseline = g.samples[inCalls].Value.Uint64()
	g.mu.Lock()
	ready, ended, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { // the bubble panics if goroutines are left in it
			if v := recover(); v != nil && !strings.HasPrefix(fmt.Sprint(v), "deadlock: ") {
				panic(v)
			}
		}()
		synctest.Test(t, func(*testing.T) {
			g.next, _ = iter.Pull(func(yield func(struct{}) bool) { g.world(o, main, &r, yield) })
			time.Sleep(time.Until(o.Start)) // Sleep returns at once if Start is zero
			g.sleeper(ready)
		})
	}()
	<-ready
	busy := make(chan struct{})
	go func() { // a callback that calls runtime.Goexit ends this goroutine
		defer close(done)
		synctest.Test(t, func(*testing.T) {
			defer close(busy)
			go func() { <-busy }() // this wait is not durable, so the clock of the driver's bubble does not move
			defer g.shutDown()
			g.drive()
		})
	}()
	<-done
	r.Level, r.Windows, r.Long, r.Ahead, r.Left = level(random, o), g.windows, len(g.long), g.ahead, max(0, runtime.NumGoroutine()-before)
	return r
}

// reportStall prints a report to standard error, once, if the World itself waits natively: in a task, a callback or a function passed to
// Always.
func (g *guests) reportStall(seed uint64) (stop func()) {
	before, over := int64(-1), new(atomic.Bool)
	var look func()
	look = func() {
		switch now := g.moves.Load(); {
		case over.Load(): // stop was called after this timer had fired
		case now != before:
			before = now
			time.AfterFunc(2*busyAfter, look)
		default:
			fmt.Fprintf(os.Stderr, "simulation: seed %d: a task, a callback or a function of Always waits natively, and stops the World\n", seed)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		}
	}
	first := time.AfterFunc(2*busyAfter, look)
	return func() {
		over.Store(true)
		first.Stop()
	}
}

// world is the function of the World's coroutine. It stores the report of the run in r.
func (g *guests) world(o Options, main func(ctx context.Context, w *World) error, r *Report, yield func(struct{}) bool) {
	w := newWorld(o)
	w.guests, g.w, g.yield = g, w, yield
	defer func() {
		g.over = true
		close(g.done)
		g.touch()
		for _, stop := range g.stops {
			stop()
		}
	}()
	w.run(main)
	*r = w.report()
	if g.stands != 0 || r.Err != nil {
		g.findRealIO()
	}
	switch {
	case g.outside == nil || errors.Is(r.Err, ErrStuck):
	case r.Err == nil:
		r.Err = fmt.Errorf("simulation: seed %d: %w", w.o.Seed, g.outside)
	default:
		r.Err = fmt.Errorf("%w\n\n%w", r.Err, g.outside)
	}
}

// findRealIO searches the stack traces of all guests for a wait for real I/O, and stores the first such wait in g.outside as an error.
func (g *guests) findRealIO() {
	for _, stack := range gid.Stacks() {
		head, calls, _ := bytes.Cut(stack, []byte{'\n'})
		if g.outside != nil || !bytes.Contains(head, []byte(g.bubble)) || !bytes.Contains(head, []byte("[IO wait")) {
			continue
		}
		lines := strings.Split(string(calls), "\n") // each call has two lines
		for len(lines) > 3 && slices.ContainsFunc(standard, func(p string) bool { return strings.HasPrefix(lines[0], p) }) {
			lines = lines[2:]
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[1]), " +0x")
		g.outside = fmt.Errorf("%w: real I/O at %s. Give it the Listen or the Dial of its Host", ErrStuck, at)
	}
}

// standard lists the packages whose functions lie between a program and a wait for real I/O.
var standard = []string{"internal/", "net.", "net/", "crypto/", "os.", "os/", "io.", "bufio."}

// sleeper is the main goroutine of the guests' bubble. It receives times from g.commands, and sleeps until each of these times, or until it
// receives from g.kick.
func (g *guests) sleeper(ready chan struct{}) {
	g.kick, g.done, g.begun = make(chan struct{}, 1), make(chan struct{}), time.Now()
	g.bubble = strings.TrimSuffix(bubbleOf(), "]:") + " labels:"
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	close(ready)
	for until := range g.commands {
		rang := false
		timer.Reset(until - time.Since(g.begun)) // the World may be ahead of the bubble's clock
		select {
		case <-timer.C:
			rang = true
		case <-g.kick:
		}
		timer.Stop()
		g.mu.Lock()
		g.asleep, g.rang = false, rang
		g.mu.Unlock()
	}
}

// drive is the driver's loop. The driver holds g.mu except during windows.
func (g *guests) drive() {
	for g.resumeWorld() {
		g.asleep = g.pausing
		g.window(g.pausing)
		if g.rang {
			g.stands, g.events = 0, 0
		}
		for g.asleep { // a guest waits, but not durably: the World continues while the bubble's clock stops
			g.ahead++
			if g.stands == 0 {
				g.stands = chance.Nanotime()
			}
			if g.events++; g.events == realIOAfter {
				g.findRealIO()
			}
			if time.Duration(chance.Nanotime()-g.stands) > starving {
				g.long = append(g.long, g.windows)
			}
			switch w := g.w; {
			case len(w.timers.heap) == 0:
				g.findRealIO()
				w.fail(w.account(cmp.Or(g.outside, ErrStuck)))
			default:
				w.now = max(w.now, w.timers.heap[0].at)
			}
			if !g.resumeWorld() {
				return
			}
			g.window(false)
		}
	}
}

// resumeWorld resumes the World until the World sleeps, and reports whether the run continues. It first collects garbage at intervals,
// because all guests are blocked at this point. A guest that ran during a collection would wait for g.mu, and at level C (see Report.Level)
// the bubble's clock advances during such a wait.
func (g *guests) resumeWorld() bool {
	if g.windows > 0 && g.windows%lookAt == 0 {
		if metrics.Read(g.heap); g.windows%collectAt == 0 || g.heap[0].Value.Uint64() > g.limit {
			runtime.GC()
			metrics.Read(g.heap)
			g.limit = uint64(collectOver) + 2*g.heap[0].Value.Uint64()
		}
	}
	_, ok := g.next()
	return ok
}

// shutDown ends the guests that wait in a call, and then the bubble.
func (g *guests) shutDown() {
	g.window(false)
	if !g.asleep {
		close(g.commands)
		g.window(false)
	}
	g.mu.Unlock()
}

// window lets all guests run until each is blocked in a wait of any kind. If sleep is set, window also starts the sleeper. It must not use
// synctest.Wait, which would not return while a guest waits for a sync.Mutex.
func (g *guests) window(sleep bool) {
	g.windows++
	g.moves.Add(1)
	if g.random != nil {
		g.random.Seed(draws.Mix(g.w.o.Seed^g.w.salt, uint64(g.windows)))
	}
	if g.ordered {
		chance.Order(g.w.o.Seed, draws.Mix(g.w.o.Seed^g.w.salt, uint64(g.windows)))
	}
	begun := chance.Nanotime()
	g.mu.Unlock()
	if sleep {
		g.commands <- g.until
	}
	for blocked := false; !blocked; {
		runtime.Gosched()
		_ = debug.SetGCPercent(-1) // SetGCPercent waits for the end of a collection that a guest has started
		metrics.Read(g.samples)
		blocked = g.samples[runnable].Value.Uint64() == 0 && g.samples[inCalls].Value.Uint64() <= g.baseline
		if !blocked && time.Duration(chance.Nanotime()-begun) > g.patience {
			break
		}
	}
	g.mu.Lock()
	switch took := time.Duration(chance.Nanotime() - begun); {
	case took > g.patience:
		g.patience = longWindow // a guest runs forever, so the next windows must be short
		g.w.fail(g.w.account(ErrBusy))
	case took > longWindow:
		g.long = append(g.long, g.windows)
	}
}

// calm prepares the process for guests until t ends. It sets one processor, turns off automatic garbage collection, and adds labels to
// stack traces.
func calm(t *testing.T) {
	t.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")) // Setenv panics in a parallel test
	procs, percent, rate, names := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1), runtime.MemProfileRate, net.DefaultResolver
	runtime.MemProfileRate = 0
	_, _ = unnamed().LookupHost(context.Background(), "localhost") // package net makes channels during its first lookup
	_ = t.Context().Done()                                         // a Done channel that was made in a bubble would end the process when t ends
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // the goroutines of os/signal must not start in a bubble
	signal.Stop(signals)
	_ = chance.Calm() // otherwise a busy machine may decide an order, see Report.Long
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		runtime.MemProfileRate, net.DefaultResolver = rate, names
	})
}

// openChance returns access to the runtime's random draws, or nil and the reason if the draws cannot be set.
func openChance() (random *chance.State, why string) {
	random, err := chance.Open()
	if err != nil {
		return nil, ": " + err.Error()
	}
	return random, ""
}

// ordered reports whether the seed decides the order of guests.
func ordered(o Options) bool { return o.Preempt && chance.Orders() }

// level returns the value of Report.Level.
func level(random *chance.State, o Options) string {
	switch {
	case random == nil:
		return "A"
	case random.Overlaid() && ordered(o):
		return "D"
	case random.Overlaid():
		return "C"
	}
	return "B"
}
