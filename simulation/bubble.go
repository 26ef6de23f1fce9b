package simulation

import (
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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/simulation/internal/chance"
)

var errNames = errors.New("simulation: a World has no DNS: dial the name of a node with Host.Dial")

// unnamed returns a resolver that finds only the names in /etc/hosts. A real lookup must not happen: it would leave the World, and
// net.DefaultResolver shares lookups between bubbles.
func unnamed() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNames }}
}

// inGuests does for a World with guests what runApart does for a World of tasks.
func inGuests(t *testing.T, o Options, random *chance.State, main func(ctx context.Context, w *World) error) Report {
	r := Report{Seed: o.Seed, Err: errExited}
	o.Bubble = false // the caller is in no bubble: this function makes one
	g := &guests{
		samples:  []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/not-in-go:goroutines"}},
		commands: make(chan time.Duration, 1), random: random, patience: busyAfter, who: map[labels.Set]guestID{},
		heap: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}, limit: uint64(collectOver), ordered: ordersGuests(o),
	}
	if g.ordered {
		defer chance.EndOrder()
	}
	if !chance.Nodes() { // the overlay resolves names of nodes
		net.DefaultResolver = unnamed()
	}
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
	for id := range slices.Values(g.nodes) {
		residents.Delete(id)
	}
	if g.endless != nil && !errors.Is(r.Err, ErrBusy) { // the guest runs since the end of the run
		r.Err = afterwards(r.Err, g.endless)
	}
	g.removeFiles()
	r.Level, r.Windows, r.Long, r.Ahead, r.Left = level(random, o), g.windows, len(g.long), g.ahead, max(0, runtime.NumGoroutine()-before)
	return r
}

// afterwards adds to the error of a run that a guest runs on after the run.
func afterwards(err, endless error) error {
	if err == nil {
		return fmt.Errorf("after the end of the run: %w", endless)
	}
	return fmt.Errorf("%w\n\nafter the end of the run: %w", err, endless)
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
			fmt.Fprintf(os.Stderr, "simulation: seed %d: a task, a callback or a function of Always blocks natively, which stops the World\n", seed)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		}
	}
	first := time.AfterFunc(2*busyAfter, look)
	return func() {
		over.Store(true)
		first.Stop()
	}
}

// inUTC sets the time zone for the rest of the process: at its end, a run may leave goroutines that read the zone. It changes what time.Local
// points to, as TZ=UTC does, because time.Now reads the variable itself, and other goroutines may call it meanwhile.
var inUTC = sync.OnceFunc(func() {
	_ = time.Local.String() // reads the zone of the machine, which would otherwise replace the new one later
	*time.Local = *time.UTC
})

// calm prepares the process for guests until t ends. It sets one processor, turns off automatic garbage collection, and adds labels to
// stack traces.
func calm(t *testing.T) {
	t.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")) // Setenv panics in a parallel test
	procs, percent, rate, names := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1), runtime.MemProfileRate, net.DefaultResolver
	runtime.MemProfileRate = 0
	inUTC()
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

// openChance returns access to the runtime's random draws, or nil and the reason if the draws cannot be set. A new goroutine looks for them,
// because with the overlay the goroutine of a test does not draw from the states of its thread.
func openChance() (random *chance.State, why string) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		random, err = chance.Open()
	}()
	<-done
	if err != nil {
		return nil, ": " + err.Error()
	}
	return random, ""
}

// ordersGuests reports whether the seed decides the order of guests.
func ordersGuests(o Options) bool { return o.Preempt && chance.Orders() }

// level returns the value of Report.Level.
func level(random *chance.State, o Options) string {
	switch {
	case random == nil:
		return "A"
	case random.Overlaid() && ordersGuests(o):
		return "D"
	case random.Overlaid():
		return "C"
	}
	return "B"
}
