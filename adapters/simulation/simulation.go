// Package simulation runs a whole distributed program in one process: its nodes, the links between them, crashes, and a virtual clock. A
// seed decides everything that would otherwise be left to chance, so a run that fails can be repeated exactly.
//
//	func TestRegister(t *testing.T) {
//		simulation.Test(t, simulation.TestOptions{}, func(ctx context.Context, w *simulation.World) error {
//			server := w.Node("server")
//			...
//		})
//	}
//
// A program that runs in Braid's tasks needs no changes: its waits suspend, and the scheduler decides the order of its tasks. The program
// gets its net.Listener and net.Conn from a [Node]. For time, the program uses [suspend.Now], [suspend.Sleep] and cancel.WithTimeout; in a
// synctest bubble it may also use package time. Callbacks, functions passed to Always, and transactions have no calling task, so
// suspend.Now and cancel.WithTimeout use the clock of package time there. Use the Now and AfterFunc methods of the World or the Node
// instead.
//
// # Sources of nondeterminism
//
//	the order of tasks, Select, timers, latency, World.Rand   controlled by the seed
//	context.WithCancel                                        controlled by the seed
//	time.Now, context.WithTimeout, time.AfterFunc             in a bubble; elsewhere use suspend.Now and cancel.WithTimeout
//	context.AfterFunc                                         in a bubble; elsewhere use cancel.AfterFunc
//	timers of package time for one moment, in a bubble        wake-ups are ordered; functions of time.AfterFunc are not
//	a range over a map that decides an order                  no: use slices.Sorted(maps.Keys(m))
//	a native select with several ready cases                  no: use suspend.Select
//	a native wait: a channel, a sync.Mutex while suspended    stops the World; the run fails with ErrNative
//	the go statement                                          the run fails with ErrForeign if the goroutine calls the World
//	math/rand                                                 no: use World.Rand
//	crypto/rand                                               no: use testing/cryptotest.SetGlobalRandom
//	%p, finalizers, the content of a sync.Pool                no
//
// [Check] and [Test] run a seed twice, and report the first step at which the two runs differ.
package simulation

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/braidgo/braid/internal/splitmix"
	"github.com/braidgo/braid/suspend"
)

// Options configure a run. The zero value is the default.
type Options struct {
	// Seed decides the order of steps and all random draws. 0 means a random seed, which Report.Seed contains.
	Seed uint64

	// Start is the virtual clock's initial time. The default is 2000-01-01, midnight UTC, as in a bubble.
	Start time.Time

	// MaxSteps is the number of steps after which a run fails with ErrSteps. 0 means a million.
	MaxSteps int

	// MaxTime is the virtual time after which a run fails with ErrTime. 0 means no limit.
	MaxTime time.Duration

	// Preempt lets other tasks run before each operation that could wait, even if the operation does not need to wait: each lock, receive
	// and transaction may then end a step. Without Preempt a task runs until it waits, so two critical sections in a row look atomic
	// although they are not. In a Test, Preempt is on unless NoPreempt is set.
	Preempt bool

	// Trace receives a line for each event, such as a step, a timer, a segment or a Log.
	Trace io.Writer

	// Bubble says that the caller of Run is in a testing/synctest bubble. Then time.Now, time.AfterFunc and context.WithTimeout are virtual,
	// too, and Start must be zero. Test creates a bubble for each run. If the program uses a ticker of package time, also set MaxTime:
	// otherwise a deadlock is found only after ten years of ticks.
	Bubble bool

	// OnPanic, if it is not nil, is called with the value and the stack of each panic, by the task or callback that panicked. The task then
	// ends, and the run continues. If OnPanic is nil, a panic fails the run with a *suspend.PanicError. In a callback, OnPanic must not
	// suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is the real time for which a task may run without suspending. After this time the task's stack is printed to standard
	// error. 0 means one second, and a negative value means never. In a bubble no stack is printed. A task that waits natively for eight
	// times StallAfter fails the run with ErrNative: under Test and Check at once, and under Run when the wait ends.
	StallAfter time.Duration

	// Guests runs main, and each function passed to Node.Start, as a guest: a goroutine that uses native channels, sync.Mutex and package
	// time. Only Test supports Guests, because it gives each run a bubble. Guests is experimental.
	Guests bool

	fleet   *fleet                  // the fleet that the runs of a Test share, or nil if the run must make a fleet
	watch   func(w *World, e event) // called for each event
	variant *variant                // the variant to run, or nil to run the seed itself
	open    bool                    // goroutines outside the World may call the World, as in the conformance kit
}

// A Report describes the result of a run.
type Report struct {
	Seed    uint64
	Hash    uint64        // a hash of all events; two identical runs have the same hash
	Steps   int           // the number of steps of tasks, callbacks and timers
	Elapsed time.Duration // virtual time
	Err     error         // main's error, or the reason why the run was ended

	// Sometimes contains each name that was passed to World.Sometimes. The value is true if the condition was true at
	// least once in the run.
	Sometimes map[string]bool
	came      []mark // the names whose condition was true, in order, with the steps
	failed    bool   // main has marked the test as failed in another process

	// The following fields are set in a run with guests.
	Level   string // A: the order of guests is deterministic; B: also the runtime's draws; C: adapters/simulation/overlay is in use
	Windows int    // how often all guests have run until each was blocked
	Long    int    // windows that took 5 ms of real time, or ended 1 ms after the clock stopped: the machine may have decided an order
	Ahead   int    // events while the clock of package time was stopped, for example because a guest waited for a sync.Mutex
	Left    int    // goroutines that have not ended with the run, and still use memory
}

// Run runs main as the first task of a new World, with all tasks that main starts, until main returns. Then Run ends the remaining tasks as
// Crash does. Run does not suspend its caller, except in a bubble, where it parks the caller while no task can run.
//
// The run fails, and all its tasks end, in these cases:
//
//   - Nothing more can happen, but main has not returned: ErrDeadlock.
//   - A goroutine outside the World calls into the World: ErrForeign.
//   - A task panics: *suspend.PanicError.
//   - The run reaches MaxSteps or MaxTime: ErrSteps or ErrTime.
//   - main calls runtime.Goexit, as t.FailNow does: ErrExited.
//
// If a callback or a function passed to Always calls runtime.Goexit, Run's caller ends, too; under Check and Test the error is ErrExited
// instead. The context that Run passes to main is never cancelled.
func Run(o Options, main func(ctx context.Context, w *World) error) Report {
	w := newWorld(o)
	if o.Guests {
		return Report{Seed: w.o.Seed, Err: errGuests}
	}
	w.run(main)
	return w.report()
}

func (w *World) report() Report {
	return Report{Seed: w.o.Seed, Hash: w.hash, Steps: w.steps, Elapsed: w.now, Err: w.err, Sometimes: w.marks, came: w.came}
}

// A World is the simulated world of one run. It implements suspend.Spawner, Executor, Timers and Clock. Tasks that World.Go starts belong
// to the test itself, and not to a Node. Only the World's own tasks, guests and callbacks may call its methods.
type World struct {
	host
	o     Options
	fleet *fleet
	err   error

	over        bool // the scheduler's loop must end
	ended       bool // main has ended
	failed      bool // w.err is the reason why the run was ended
	still       bool // the next operation is a network wait: its condition has been checked, so no other task must run before it
	tearingDown bool // the remaining tasks are being ended
	always      []func() error

	ready   []ready // unsorted, because the seed decides which entry runs next
	order   source  // draws the next entry of ready
	net     source  // draws latencies and faults of the network
	disk    source
	random  source // the source for sched.Rand
	rand    *rand.Rand
	choices source // the source behind rand
	steps   int
	hash    uint64

	now     time.Duration // virtual time since the start
	timers  timers
	watches []*watch
	start   time.Time

	nodes map[string]*Node // nodes by name; the next field lists them in order
	hosts []*host          // the World itself, and then the nodes in order of creation
	links map[pair]*Link
	all   []*Link
	base  Faults
	marks map[string]bool // names that were passed to Sometimes; true means that the run has reached the name
	came  []mark
	rare  map[string]*bug // names that were passed to Buggify
	forks []fork          // forks at later steps, in order
	salt  uint64          // the combined salts of the forks so far; 0 means no fork

	outside
	guests *guests // the guests, or nil if Options.Guests is not set
	acting guest   // the guest whose call the World is executing
	conns  int
}

var newYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(o Options) *World {
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = 1_000_000
	}
	if o.variant != nil {
		o = o.variant.options(o)
	}
	w := &World{o: o, hash: o.Seed, start: o.Start.Round(0)}
	if w.start.IsZero() {
		w.start = newYear
	}
	for i, s := range []*source{&w.order, &w.net, &w.disk, &w.random, &w.choices} {
		*s = source(mix(o.Seed, uint64(i)))
	}
	w.host = host{world: w, spawner: w, rate: normal}
	w.hosts = []*host{&w.host}
	if o.variant != nil {
		w.forks = o.variant.forks
	}
	return w
}

// Seed returns the seed of the run.
func (w *World) Seed() uint64 { return w.o.Seed }

// Rand returns a random source for the test's own choices. Draws from this source do not affect the order of tasks or the network.
func (w *World) Rand() *rand.Rand {
	if w.guests != nil || !w.beginTaskCall() {
		return rand.New(draws{w})
	}
	if w.rand == nil {
		w.rand = rand.New(draws{w})
	}
	return w.rand
}

// RandOf returns a Rand that draws from s. The caller must seed s with draws from w.Rand. Draws from the new Rand do not affect other
// sources, so that a package such as nemesis may draw at any time. The Rand returns s's own values, except in a run that Test continues
// with new random draws: see TestOptions.Guided.
func (w *World) RandOf(s rand.Source) *rand.Rand { return rand.New(apart{w, s}) }

type apart struct {
	w *World
	s rand.Source
}

func (a apart) Uint64() uint64 {
	x := a.s.Uint64()
	if a.w.salt != 0 {
		x = splitmix.Mix(x ^ a.w.salt)
	}
	return x
}

// draws is the source behind Rand. A draw on a goroutine outside the World ends the run, because the draw would come at a different time in
// the next run.
type draws struct{ w *World }

func (d draws) Uint64() uint64 {
	x, drawn := uint64(0), false
	d.w.do(func() { x, drawn = d.w.choices.Uint64(), true })
	if !drawn {
		return rand.Uint64()
	}
	return x
}

// Log adds a line to the trace. The line also changes the hash, so two runs that log different lines count as different.
func (w *World) Log(format string, args ...any) {
	text := fmt.Sprintf(format, args...) // formatted first, because a String method may call the World, or may lock a mutex that a guest holds
	w.post(func() { w.log(text) })
}

func (w *World) log(text string) {
	host, id := w.caller()
	w.note(event{kind: logged, host: host, task: id, data: hashString(0, text), text: text})
}

// post calls f on the World. A guest does not wait for the call.
func (w *World) post(f func()) {
	switch guest, ok := w.beginCall(); {
	case guest:
		defer w.guests.endCall()
		w.guests.ask(nil, f)
	case ok:
		f()
	}
}

// Always registers a function that the World calls after each further step, including the step in which main returns. If the function
// returns an error, the run fails with this error. The function must not suspend.
func (w *World) Always(holds func() error) {
	if holds == nil {
		panic("suspend: nil function")
	}
	w.do(func() { w.always = append(w.always, holds) })
}

// Here returns the World of the calling task, or nil if the caller is not a task of a World.
func Here() *World {
	if h, ok := suspend.As[interface{ owner() *World }](suspend.Here()); ok {
		return h.owner()
	}
	return nil
}

func (h *host) owner() *World { return h.world }

// A source is a SplitMix64 generator (Steele, Lea and Flood, 2014).
type source uint64

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	*s += splitmix.Golden
	return splitmix.Mix(uint64(*s))
}

// upTo returns a random duration from 0 to d.
func (s *source) upTo(d time.Duration) time.Duration {
	hi, _ := bits.Mul64(s.Uint64(), uint64(d)+1)
	return time.Duration(hi)
}

// below returns a random number from 0 to n-1.
func (s *source) below(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// chance returns true with probability p.
func (s *source) chance(p float64) bool {
	return p > 0 && float64(s.Uint64()>>11)/(1<<53) < p
}
