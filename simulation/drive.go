package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/simulation/internal/chance"
)

// This file drives a World with guests. Four kinds of goroutines take turns on one processor:
//
//	driver    runs outside the guests' bubble. It lets all guests run until each is blocked; this is a window. Then it resumes the World
//	World     is a coroutine in the guests' bubble. It runs steps until it has woken guests or must wait. Then it yields to the driver
//	sleeper   is a goroutine in the guests' bubble. It sleeps while the World waits. Only then does the bubble's clock advance
//	guests    call the World. A call is queued, and ends the sleep
//
// In short:
//
//	for the World resumes, runs its steps, and yields {            resumeWorld
//		let the sleeper sleep until the World's next timer
//		let the guests run, until each of them waits               window
//		for the sleeper still sleeps {                             a guest waits, but not durably, so the bubble's clock has stopped
//			set the World's clock to its next timer, and resume it
//			let the guests run, until each of them waits
//		}
//	}
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
	longWindow   = 5 * time.Millisecond // real time; after 10 ms the runtime may preempt a goroutine
	starving     = time.Millisecond     // real time; a sync.Mutex switches to starvation mode after a wait of 1 ms
	collectAt    = 10_000               // windows between two garbage collections
	lookAt       = 100                  // windows between two checks of the heap size
	realIOAfter  = 20                   // events after the clock has stopped, until findRealIO() is called
	outsideAfter = 1000                 // events after the clock has stopped, until findOutsideWait() is called
)

var (
	busyAfter   = 10 * time.Second // the real time, and then the processor time, that a guest may run without a wait
	collectOver = 512 << 20        // bytes; the driver collects garbage above this size plus twice the live heap
)

// world is the function of the World's coroutine. It stores the report of the run in r.
func (g *guests) world(o Options, main func(ctx context.Context, w *World) error, r *Report, yield func(struct{}) bool) {
	w := newWorld(o)
	w.guests, g.w, g.yield = g, w, yield
	defer func() {
		g.over = true
		close(g.done)
		g.touch()
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			w.nodes[name].cancelGuests()
		}
	}()
	w.run(main)
	*r = w.report()
	if g.stoppedAt != 0 || r.Err != nil {
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

// sleeper is the main goroutine of the guests' bubble. It receives times from g.commands, and sleeps until each of these times, or until it
// receives from g.kick.
func (g *guests) sleeper(ready chan struct{}) {
	g.kick, g.done, g.begun = make(chan struct{}, 1), make(chan struct{}), time.Now()
	g.bubble = strings.TrimSuffix(bubbleOf(), "]:") + " labels:"
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	close(ready)
	for until := range g.commands {
		timeIsUp := false
		timer.Reset(until - time.Since(g.begun)) // the World may be ahead of the bubble's clock
		select {
		case <-timer.C:
			timeIsUp = true
		case <-g.kick:
		}
		timer.Stop()
		g.mu.Lock()
		g.asleep, g.timeIsUp = false, timeIsUp
		g.mu.Unlock()
	}
}

// drive is the driver's loop. The driver holds g.mu except during windows.
func (g *guests) drive() {
	for g.resumeWorld() {
		g.asleep = g.pausing
		g.window(g.pausing)
		if g.timeIsUp {
			g.stoppedAt, g.events = 0, 0
		}
		for g.asleep { // a guest waits, but not durably: the World continues while the bubble's clock stops
			g.ahead++
			if g.stoppedAt == 0 {
				g.stoppedAt = chance.Nanotime()
			}
			switch g.events++; g.events {
			case realIOAfter:
				g.findRealIO()
			case outsideAfter:
				g.findOutsideWait()
			}
			if time.Duration(chance.Nanotime()-g.stoppedAt) > starving {
				g.long = append(g.long, g.windows)
			}
			switch w := g.w; {
			case len(w.clock.timers.heap) == 0 && w.err == nil && time.Duration(chance.Nanotime()-g.stoppedAt) < busyAfter && g.someRuns():
				g.window(false)
				continue
			case len(w.clock.timers.heap) == 0:
				g.findRealIO()
				w.fail(w.account(cmp.Or(g.outside, ErrStuck)))
			default:
				w.clock.now = max(w.clock.now, w.clock.timers.heap[0].at)
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
		g.random.Seed(uint64(g.w.dice.of(g.windows)))
	}
	if g.ordered {
		chance.Order(g.w.o.Seed, uint64(g.w.dice.of(g.windows)))
	}
	begun := chance.Nanotime()
	g.mu.Unlock()
	if sleep {
		g.commands <- g.until
	}
	used, endless := time.Duration(0), false
	for blocked := false; !blocked; {
		runtime.Gosched()
		_ = debug.SetGCPercent(-1) // SetGCPercent waits for the end of a collection that a guest has started
		metrics.Read(g.samples)
		blocked = g.samples[runnable].Value.Uint64() == 0 && g.samples[inCalls].Value.Uint64() <= g.baseline
		if !blocked && time.Duration(chance.Nanotime()-begun) > g.patience {
			if used == 0 { // a busy machine may have run other processes until now
				used = chance.Used()
			}
			if endless = chance.Used()-used >= g.patience; endless {
				break
			}
		}
	}
	g.mu.Lock()
	g.findOrphanedLock()
	switch took := time.Duration(chance.Nanotime() - begun); {
	case endless:
		g.patience = longWindow // a guest runs forever, so the next windows must be short
		g.endless = cmp.Or(g.endless, g.w.account(ErrBusy))
		g.w.fail(g.endless)
	case took > longWindow:
		g.long = append(g.long, g.windows)
	}
}
