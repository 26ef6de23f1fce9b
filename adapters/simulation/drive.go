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

	"github.com/braidgo/braid/internal/chance"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
)

// How a World with guests is driven. Four kinds of goroutines take turns on one processor:
//
//	the driver   outside. It lets all guests run until each is blocked, a window. Then it switches to
//	the World    a coroutine in the bubble of the guests. It does its steps and wakes guests, or it wants time to pass. Then
//	the sleeper  of the bubble sleeps as told. The clock of the bubble goes on meanwhile, and at no other time
//	the guests   call the World, which queues the call and ends the sleep
//
// The World is a coroutine, since a goroutine outside must not wake a wait of the bubble, and a goroutine inside would stop its clock. At
// such a switch the runtime keeps the books of a bubble only if the caller is in a bubble, too. So the driver must have its own bubble.

// The samples of the driver.
const (
	runnable = iota // goroutines that could run: the driver has the only processor, so 0 means that all others are blocked
	inCalls         // goroutines in calls of the system
)

const (
	longWindow  = 5 * time.Millisecond // real time. After 10 ms the runtime may take the processor away
	starving    = time.Millisecond     // real time after which a sync.Mutex changes its order
	collectAt   = 10_000               // windows
	lookAt      = 100                  // windows
	lookOutside = 20                   // events without a move of the clock
)

var (
	busyAfter   = 10 * time.Second // real time
	collectOver = 512 << 20        // bytes, and twice what is in use
)

var errNames = errors.New("simulation: there is no DNS in a World: dial the name of a node, by a Host")

// unnamed returns a resolver that finds only the names of /etc/hosts. A real look-up must not happen: it would leave the World, and
// net.DefaultResolver shares look-ups between bubbles.
func unnamed() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNames }}
}

// inGuests is runApart for a World with guests.
func inGuests(t *testing.T, o Options, random *chance.State, main func(ctx context.Context, w *World) error) Report {
	r := Report{Seed: o.Seed, Err: ErrExited}
	o.Bubble = false // Guests has one already
	g := &guests{
		samples:  []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/not-in-go:goroutines"}},
		commands: make(chan time.Duration, 1), random: random, patience: busyAfter, who: map[labels.Set]guest{},
		heap: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}, limit: uint64(collectOver),
	}
	net.DefaultResolver = unnamed()
	for range 2 { // a sync.Pool keeps the timers of an older bubble for so long
		runtime.GC()
	}
	for range 10 { // goroutines on their way into a call of the system are there then
		runtime.Gosched()
	}
	defer g.watch(o.Seed)()
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
			time.Sleep(time.Until(o.Start)) // returns at once if Start is zero
			g.sleeper(ready)
		})
	}()
	<-ready
	busy := make(chan struct{})
	go func() { // a callback that ends by runtime.Goexit ends this goroutine
		defer close(done)
		synctest.Test(t, func(*testing.T) {
			defer close(busy)
			go func() { <-busy }() // this wait is not durable, so that the clock of this bubble does not move
			defer g.end()
			g.drive()
		})
	}()
	<-done
	r.Level, r.Windows, r.Long, r.Ahead, r.Left = level(random), g.windows, len(g.long), g.ahead, max(0, runtime.NumGoroutine()-before)
	return r
}

// watch reports on standard error, once, that the World itself waits natively: in a task, a callback or a function of Always.
func (g *guests) watch(seed uint64) (stop func()) {
	before, over := int64(-1), new(atomic.Bool)
	var look func()
	look = func() {
		switch now := g.moves.Load(); {
		case over.Load(): // this call had begun
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

// world runs the World, as the coroutine.
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
		g.look()
	}
	switch {
	case g.outside == nil || errors.Is(r.Err, ErrStuck):
	case r.Err == nil:
		r.Err = fmt.Errorf("simulation: seed %d: %w", w.o.Seed, g.outside)
	default:
		r.Err = fmt.Errorf("%w\n\n%w", r.Err, g.outside)
	}
}

// look looks for a guest that waits for real I/O, which only the stack trace of its goroutine shows.
func (g *guests) look() {
	for _, stack := range gid.Stacks() {
		head, calls, _ := bytes.Cut(stack, []byte{'\n'})
		if g.outside != nil || !bytes.Contains(head, []byte(g.bubble)) || !bytes.Contains(head, []byte("[IO wait")) {
			continue
		}
		lines := strings.Split(string(calls), "\n") // a call has two lines
		for len(lines) > 3 && slices.ContainsFunc(standard, func(p string) bool { return strings.HasPrefix(lines[0], p) }) {
			lines = lines[2:]
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[1]), " +0x")
		g.outside = fmt.Errorf("%w: real I/O at %s. Give it the Listen or the Dial of its Host", ErrStuck, at)
	}
}

// standard are the packages that lie between a program and a wait for real I/O.
var standard = []string{"internal/", "net.", "net/", "crypto/", "os.", "os/", "io.", "bufio."}

// sleeper is the main goroutine of the bubble.
func (g *guests) sleeper(ready chan struct{}) {
	g.kick, g.done, g.begun = make(chan struct{}, 1), make(chan struct{}), time.Now()
	g.bubble = strings.TrimSuffix(bubbleOf(), "]:") + " labels:"
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	close(ready)
	for until := range g.commands {
		rang := false
		timer.Reset(until - time.Since(g.begun)) // the World may be ahead
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

// drive is the driver. It holds the lock, except in windows.
func (g *guests) drive() {
	for g.step() {
		g.asleep = g.pausing
		g.window(g.pausing)
		if g.rang {
			g.stands, g.events = 0, 0
		}
		for g.asleep { // a guest waits, and not durably: the World goes on without the clock of the bubble
			g.ahead++
			if g.stands == 0 {
				g.stands = chance.Nanotime()
			}
			if g.events++; g.events == lookOutside {
				g.look()
			}
			if time.Duration(chance.Nanotime()-g.stands) > starving {
				g.long = append(g.long, g.windows)
			}
			switch w := g.w; {
			case len(w.timers.heap) == 0:
				g.look()
				w.fail(w.account(cmp.Or(g.outside, ErrStuck)))
			default:
				w.now = max(w.now, w.timers.heap[0].at)
			}
			if !g.step() {
				return
			}
			g.window(false)
		}
	}
}

// step lets the World run until it sleeps, and reports whether it is not over. It collects garbage here, where all guests are blocked:
// otherwise a guest that runs during the collection would wait for the lock, and at level C the clock of the bubble goes on in such a wait.
func (g *guests) step() bool {
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

// end ends the guests that are in a call, and the bubble.
func (g *guests) end() {
	g.window(false)
	if !g.asleep {
		close(g.commands)
		g.window(false)
	}
	g.mu.Unlock()
}

// window lets all guests run until each is blocked, in any kind of wait, and lets the sleeper sleep. It must not use testing/synctest.Wait,
// which would wait for the guests that wait for a sync.Mutex, too.
func (g *guests) window(sleep bool) {
	g.windows++
	g.moves.Add(1)
	if g.random != nil {
		g.random.Seed(mix(g.w.o.Seed^g.w.salt, uint64(g.windows)))
	}
	begun := chance.Nanotime()
	g.mu.Unlock()
	if sleep {
		g.commands <- g.until
	}
	for blocked := false; !blocked; {
		runtime.Gosched()
		_ = debug.SetGCPercent(-1) // waits for the end of a collection that a guest has begun
		metrics.Read(g.samples)
		blocked = g.samples[runnable].Value.Uint64() == 0 && g.samples[inCalls].Value.Uint64() <= g.baseline
		if !blocked && time.Duration(chance.Nanotime()-begun) > g.patience {
			break
		}
	}
	g.mu.Lock()
	switch took := time.Duration(chance.Nanotime() - begun); {
	case took > g.patience:
		g.patience = longWindow // the guest runs without end
		g.w.fail(g.w.account(ErrBusy))
	case took > longWindow:
		g.long = append(g.long, g.windows)
	}
}

// calm prepares the process for guests, until t ends: one processor, collections of garbage between events, and labels in stacks.
func calm(t *testing.T) {
	t.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")) // panics in a parallel test
	procs, percent, rate, names := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1), runtime.MemProfileRate, net.DefaultResolver
	runtime.MemProfileRate = 0
	_, _ = unnamed().LookupHost(context.Background(), "localhost") // package net makes channels at its first look-up
	_ = t.Context().Done()                                         // a channel that a bubble made would end the process when t ends
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // the goroutines of os/signal must not begin in a bubble
	signal.Stop(signals)
	_ = chance.Calm() // otherwise a busy machine may decide an order, which Report.Long counts
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		runtime.MemProfileRate, net.DefaultResolver = rate, names
	})
}
