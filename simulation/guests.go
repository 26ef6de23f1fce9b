package simulation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/gid"
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

// residents has the guests of all Worlds that are not over, by the id for chance.SetNode. An id is used once in a process.
var residents struct {
	idMap
	last atomic.Uint32
}

// hostHere returns the Host of the guest that the calling goroutine belongs to. It returns nil for main, and for a goroutine that belongs to no
// guest; to know a guest needs the overlay. It takes no lock of a World.
func hostHere() *Host {
	if id := chance.Node(); id != 0 {
		r, _ := residents.Load(id)
		if r, ok := r.(resident); ok {
			return r.h
		}
	}
	return nil
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

// findOrphanedLock fails the run if a guest waits for a mutex that a guest of a crashed node has locked.
func (g *guests) findOrphanedLock() {
	id := chance.Blocked()
	if id == 0 || g.w.err != nil {
		return
	}
	at := frame(frames(maps.Collect(gid.Stacks())[id]))
	g.w.fail(fmt.Errorf("simulation: seed %d, step %d, %v: %w. It waits for a mutex that a guest of a crashed node has locked. Nodes share the "+
		"variables of packages:\n%s", g.w.o.Seed, g.w.steps, g.w.clock.now, ErrStuck, at))
}

// byNode returns the stacks of the guests, grouped by node.
func (g *guests) byNode(stacks map[int64][]byte) string {
	of := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		head, _, _ := bytes.Cut(stacks[id], []byte{'\n'})
		if _, node, ok := bytes.Cut(head, []byte(`"node": "`)); ok && bytes.Contains(head, []byte(g.bubble)) && !bytes.Contains(head, []byte("[crashed")) {
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

// findRealIO searches the stack traces of all guests for a wait for real I/O, and stores the first such wait in g.outside as an error.
func (g *guests) findRealIO() {
	if at := g.findWait("[IO wait"); at != "" && g.outside == nil {
		g.outside = fmt.Errorf("%w: real I/O at %s. Use the Listen or the Dial of its Host", ErrStuck, at)
	}
}

// findOutsideWait fails the run if a guest waits for a channel or a WaitGroup that belongs to no bubble. With the overlay there is no such
// wait.
func (g *guests) findOutsideWait() {
	if at := g.findWait("[chan receive", "[chan send", "[select", "[sync.WaitGroup.Wait"); at != "" {
		g.w.fail(g.w.account(fmt.Errorf("%w: the clock of package time stands still, because a guest waits at %s for a channel or a WaitGroup that "+
			"was made outside of the run, such as a variable of a package. Use simulation/overlay", ErrStuck, at)))
	}
}

// findWait returns the place where a guest is in a wait of one of the given kinds that is not durable, or "".
func (g *guests) findWait(kinds ...string) string {
	stacks := maps.Collect(gid.Stacks())
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		head, calls, _ := bytes.Cut(stacks[id], []byte{'\n'})
		of := func(kind string) bool { return bytes.Contains(head, []byte(kind)) }
		if !of(g.bubble) || of("(durable)") || !slices.ContainsFunc(kinds, of) || bytes.Contains(calls, []byte("(*guests).sleeper(")) {
			continue
		}
		lines := strings.Split(string(calls), "\n") // each call has two lines
		for len(lines) > 3 && slices.ContainsFunc(standard, func(p string) bool { return strings.HasPrefix(lines[0], p) }) {
			lines = lines[2:]
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[1]), " +0x")
		return at
	}
	return ""
}

// someRuns reports whether a guest waits for nothing although no goroutine was runnable or in a system call: the runtime without the overlay
// counts a goroutine that returns from a call for a moment as neither, and on a busy machine this moment may be long.
func (g *guests) someRuns() bool {
	for _, text := range gid.Stacks() {
		head, _, _ := bytes.Cut(text, []byte{'\n'})
		if of := func(kind string) bool { return bytes.Contains(head, []byte(kind)) }; of(g.bubble) && (of("[run") || of("[syscall")) {
			return true
		}
	}
	return false
}

// standard lists the packages whose functions lie between a program and a wait for real I/O.
var standard = []string{"internal/", "sync.", "net.", "net/", "crypto/", "os.", "os/", "io.", "bufio."}
