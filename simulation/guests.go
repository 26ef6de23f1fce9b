package simulation

import (
	"context"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/simulation/internal/chance"
)

// guests is the part of a World that serves its guests, which are goroutines and not tasks. This file says who the guests are, drive.go when they
// run, and calls.go how they call the World. Package edited has what the runtime does for them.
type guests struct {
	mu sync.Mutex // a guest holds mu during a call, and the driver holds mu except in windows
	w  *World

	// The actions of guests in the current window.
	who     map[labels.Set]guestID // the guests by the labels of their goroutines, unless the runtime has nodes
	asked   []asked
	changed []*conn  // the connections whose effects wait for the end of the window
	told    int      // how many changed connections the World has noticed
	nodes   []uint32 // the ids for chance.SetNode of the guests whose node has not crashed
	calls   uint64   // the number of calls of all guests, for their random numbers
	over    bool     // the run has ended

	// The state that the World and the driver share.
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	born    int           // the number of guests that have been started
	woken   bool          // guests were woken in this step
	pausing bool          // the World waits for time to pass
	until   time.Duration // the time until which the World waits
	naps    time.Duration // how often the World has slept for a nap in which nothing happened

	// The state of the bubble and the driver.
	bubble    string
	begun     time.Time
	kick      chan struct{} // ends the sleeper's sleep
	done      chan struct{} // closed when the run is over
	commands  chan time.Duration
	asleep    bool
	timeIsUp  bool // the sleep ended because its time was over
	random    *chance.State
	ordered   bool // the seed decides the order of guests
	samples   []metrics.Sample
	baseline  uint64 // the number of goroutines in system calls before the run
	heap      []metrics.Sample
	limit     uint64 // the heap size above which the driver collects garbage
	patience  time.Duration
	windows   int
	moves     atomic.Int64 // the number of windows, for reportStall()
	long      []int        // the numbers of the long windows
	ahead     int          // the number of events after which the World was ahead of the bubble's clock
	stoppedAt int64        // the real time at which the bubble's clock stopped, because a guest waits, but not durably; 0 while the clock moves
	events    int          // the number of events since the clock stopped
	outside   error        // the error of a guest that waits for real I/O
	endless   error        // the error of a guest that runs without end, perhaps after the end of the run
}

// A guestID identifies the call of Start that a goroutine descends from. A runtime with the overlay knows the node of each goroutine, see
// chance.SetNode. In another runtime, the goroutines of a guest carry profiler labels, which a go statement copies to the new goroutine; a
// program may replace its labels, and functions that time.AfterFunc calls have none.
type guestID struct {
	host *host
	n    int // the number of the call of Start; main has the number 1
}

// A resident is a guest by the node of its goroutines, for the hooks of packages that the overlay edits.
type resident struct {
	guestID
	h *Host // nil for main
}

// residents holds the guests of all Worlds that are not over, by the id for chance.SetNode. An id is used once in a process.
var residents struct {
	idMap
	last atomic.Uint32
}

// caller returns the guest that the calling goroutine belongs to.
func (g *guests) caller() guestID {
	if !chance.Nodes() {
		return g.who[labels.Here()]
	}
	r, _ := residents.Load(chance.Node())
	if r, ok := r.(resident); ok {
		return r.guestID
	}
	return guestID{}
}

// An asked is a guest's call that the World executes after the window.
type asked struct {
	guestID
	f func()
}

// ask queues f until the end of the window. The queue is sorted by node and guest, so that the order of arrival does not matter. h is nil
// if the call is not for a node.
func (g *guests) ask(h *host, f func()) {
	by := g.caller()
	if h != nil {
		by.host = h
	}
	g.asked = append(g.asked, asked{by, f})
	g.w.called.Store(true)
	g.touch()
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

// start starts f as a guest on h. The Host is nil for main. The caller must be on the World.
func (g *guests) start(h *host, by *Host, f func()) {
	g.born++
	l := pprof.Labels("node", hostName(&h.place), "guest", strconv.Itoa(g.born), "seed", strconv.FormatUint(g.w.o.Seed, 10))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), l))
	who := guestID{h, g.born}
	if chance.Nodes() {
		id := residents.last.Add(1)
		residents.Store(id, resident{who, by})
		g.nodes = append(g.nodes, id)
		go func() {
			chance.SetNode(id)
			if g.ordered {
				chance.Begin(uint64(who.n))
			}
			f()
		}()
	} else {
		g.who[labels.Here()] = who
		go f()
	}
	labels.Clear()
	g.woken = true
}

// kill stops the guests on h. They never run again, and their deferred functions do not run. kill reports whether the runtime can do so. All
// guests must be blocked.
func (g *guests) kill(h *host) bool {
	if !chance.Nodes() {
		return false
	}
	g.nodes = slices.DeleteFunc(g.nodes, func(id uint32) bool {
		r, _ := residents.Load(id)
		ends := r.(resident).host == h
		if ends {
			chance.Crash(id)
			residents.Delete(id)
		}
		return ends
	})
	return true
}
