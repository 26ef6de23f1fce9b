// Package simulation runs a distributed program whole, in one process, under a seed: hosts, links that delay and hold,
// crashes, a virtual clock. The seed decides everything, so a seed that fails fails again, byte for byte.
//
//	func TestRegister(t *testing.T) {
//		simulation.Test(t, simulation.TestOptions{}, func(ctx context.Context, w *simulation.World) error {
//			server := w.Node("server")
//			...
//		})
//	}
//
// A program of Braid's tasks needs no change: its waits suspend, and the scheduler decides the order of its tasks. Its network is the
// net.Listener and net.Conn of a [Node]. Its time is [suspend.Now], [suspend.Sleep] and cancel.WithTimeout, or in a synctest bubble also
// package time. In a callback, in a function of Always and in a transaction there is no calling task: suspend.Now and cancel.WithTimeout
// have the clock of package time there. Use the Now and AfterFunc methods of the World or the Node instead.
//
// # Sources of chance, and control
//
//	the order of tasks, Select, timers, latency, World.Rand      under control
//	context.WithCancel                                           under control
//	time.Now, context.WithTimeout, time.AfterFunc                in a bubble; elsewhere use suspend.Now and cancel.WithTimeout
//	context.AfterFunc                                            in a bubble; elsewhere use cancel.AfterFunc
//	several stock timers of one moment in a bubble               the wake-ups are ordered; functions of time.AfterFunc are not
//	a range over a map that decides an order                     no: use slices.Sorted(maps.Keys(m))
//	a native select with several ready cases                     no: use suspend.Select
//	a native wait: a channel, a sync.Mutex across a suspension   it stops everything: ErrNative
//	the go statement                                             outside the World: ErrForeign as soon as it touches the World
//	math/rand                                                    no: use World.Rand
//	crypto/rand                                                  no: testing/cryptotest.SetGlobalRandom
//	%p, finalizers, the content of a sync.Pool                   no
//
// [Check] and [Test] run a seed twice, and name the first step at which the runs differ.
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

// Options are the choices that a run is made with. The zero value is the default.
type Options struct {
	// Seed decides the order of steps and all random draws. 0 means a new seed, which the Report names.
	Seed uint64

	// Start is the time of the virtual clock at the beginning. The default is midnight UTC 2000-01-01, as in a bubble.
	Start time.Time

	// MaxSteps is the number of steps after which a run fails with ErrSteps. 0 means a million.
	MaxSteps int

	// MaxTime is the virtual time after which a run fails with ErrTime. 0 means no limit.
	MaxTime time.Duration

	// Preempt says that other tasks may run where an operation begins that could wait, also if it need not: each lock, receive and
	// transaction may end a step then. Without it a task runs until it waits, and two sections that are not atomic together look as if they
	// were. In a Test it is on, unless NoPreempt is set.
	Preempt bool

	// Trace gets one line for each event: a step, a timer, a segment, a Log.
	Trace io.Writer

	// Bubble says that the caller is in a testing/synctest bubble. Then time.Now, time.AfterFunc and context.WithTimeout are virtual, too,
	// and Start must be zero. In a Test each run gets its own bubble. Beside a stock ticker set MaxTime: without it, a deadlock is found
	// only after ten years of ticks.
	Bubble bool

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. Then the task ends, and
	// the run goes on. By default the run fails with a *suspend.PanicError. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is the real time that a task may run without suspending. Then its stack is reported on standard error. 0 means a second,
	// and a negative value means never. In a bubble nothing is reported. A task that waits natively for eight times as long fails the run
	// with ErrNative: at once in Test and Check, and in a Run when the wait ends.
	StallAfter time.Duration

	// Guests says that main is no task but a guest, a goroutine, and so is what Node.Start starts: a program of goroutines, native
	// channels, sync.Mutex and package time. It is for Test, which gives each run a bubble. Experimental.
	Guests bool

	fleet   *fleet                  // a Test's fleet; nil means a new fleet for this run
	watch   func(w *World, e event) // called for each event
	variant *variant                // a variant of the seed; nil means the seed itself
	open    bool                    // other goroutines may call, as the conformance kit does
}

// A Report says how a run went.
type Report struct {
	Seed    uint64
	Hash    uint64        // a hash of all events: two runs that did the same have the same hash
	Steps   int           // steps of tasks, callbacks and timers
	Elapsed time.Duration // virtual time
	Err     error         // main's error, or the reason for which the run was ended

	// Sometimes has the names of the calls of World.Sometimes, and whether the run has reached them.
	Sometimes map[string]bool
	came      []mark // where the run reached them, in order
	failed    bool   // main has marked the test as failed, in another process

	// Of a run with guests.
	Level   string // chance under control: A, the order; B, also the draws of the runtime; C, with adapters/simulation/overlay
	Windows int    // times that all guests have run until each was blocked
	Long    int    // windows in which the machine may have decided an order: of more than 5 ms of real time, or Ahead for more than 1 ms
	Ahead   int    // events while a guest waited for a sync.Mutex, say, so that the clock of package time did not move
	Left    int    // goroutines that had not ended at the end. They keep their memory
}

// Run runs main as the first task of a World, and everything that main starts, until main returns. Tasks that are left
// are then ended as by Crash. Run does not suspend its caller, but in a bubble it parks while nothing is runnable.
//
// The run fails, with all tasks ended, if nothing can happen any more and main has not returned (ErrDeadlock), if a goroutine outside the
// World calls into it (ErrForeign), if a task panics (*suspend.PanicError), at MaxSteps (ErrSteps) and at MaxTime (ErrTime). If main ends
// by runtime.Goexit, as t.FailNow does, the error is ErrExited. A callback, or a function of Always, that ends so ends the caller of Run,
// too, but under Check and Test the error is ErrExited. ctx of main is never done.
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

// A World is one run. It is a suspend.Spawner, an Executor, and has Timers and a Clock; its tasks are the tasks of the test itself, and
// belong to no Node. All its methods are for its own tasks, guests and callbacks.
type World struct {
	host
	o     Options
	fleet *fleet
	err   error

	over    bool // the loop ends
	ended   bool // main has ended
	failed  bool // err is a reason that ended the run
	still   bool // the next operation is a wait of the network: its condition was checked, and must not change before the wait
	leaving bool // the tasks that are left are being ended
	always  []func() error

	ready   []ready // unsorted: the seed picks
	order   source  // picks
	net     source  // latency, faults
	disk    source
	random  source // draws of the tasks
	rand    *rand.Rand
	choices source // draws of rand
	steps   int
	hash    uint64

	now     time.Duration // virtual time after the start
	timers  timers
	watches []*watch
	start   time.Time

	nodes map[string]*Node // nodes by name; hosts has their order
	hosts []*host          // the first is the World itself
	links map[pair]*Link
	all   []*Link
	base  Faults
	marks map[string]bool // names of Sometimes
	came  []mark
	rare  map[string]*bug // names of Buggify
	forks []fork          // forks that are ahead
	salt  uint64          // the salt of the forks so far; 0 means no salt

	outside
	guests *guests // nil means no guests
	acting guest   // the guest whose call the World does
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

// Rand returns the random source for the test's own choices. It is separate from the sources of the order and the network.
func (w *World) Rand() *rand.Rand {
	if w.guests != nil || !w.enter() {
		return rand.New(draws{w})
	}
	if w.rand == nil {
		w.rand = rand.New(draws{w})
	}
	return w.rand
}

// RandOf returns a Rand over s, which the caller has seeded by Rand. Its draws do not move the draws of other sources, so that a nemesis
// may draw at any time. They are s's own, except in a run that is continued with other chance: see TestOptions.Guided.
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

// draws is the source of Rand. A draw outside the World ends the run: it would come at another time in another run.
type draws struct{ w *World }

func (d draws) Uint64() uint64 {
	x, drawn := uint64(0), false
	d.w.do(func() { x, drawn = d.w.choices.Uint64(), true })
	if !drawn {
		return rand.Uint64()
	}
	return x
}

// Log adds a line to the trace, and to the hash: two runs that log different lines count as different.
func (w *World) Log(format string, args ...any) {
	text := fmt.Sprintf(format, args...) // first: a String may call the World, or lock what another guest holds in a call
	w.tell(func() { w.log(text) })
}

func (w *World) log(text string) {
	host, id := w.caller()
	w.note(event{kind: logged, host: host, task: id, data: hashString(0, text), text: text})
}

// tell calls f on the World. A guest does not wait for f.
func (w *World) tell(f func()) {
	switch guest, ok := w.begin(); {
	case guest:
		defer w.guests.exit()
		w.guests.ask(nil, f)
	case ok:
		f()
	}
}

// Always calls holds after each step from now on. The run fails with the first error that it returns, also after the last step, in
// which main has returned. holds must not suspend.
func (w *World) Always(holds func() error) {
	if holds == nil {
		panic("suspend: nil function")
	}
	w.do(func() { w.always = append(w.always, holds) })
}

// Here returns the World of the calling task, nil elsewhere.
func Here() *World {
	if h, ok := suspend.As[interface{ owner() *World }](suspend.Here()); ok {
		return h.owner()
	}
	return nil
}

func (h *host) owner() *World { return h.world }

// A source is SplitMix64 (Steele, Lea and Flood, 2014).
type source uint64

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	*s += splitmix.Golden
	return splitmix.Mix(uint64(*s))
}

// upTo returns a duration from 0 to d.
func (s *source) upTo(d time.Duration) time.Duration {
	hi, _ := bits.Mul64(s.Uint64(), uint64(d)+1)
	return time.Duration(hi)
}

// below returns a number below n.
func (s *source) below(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// chance reports true with probability p.
func (s *source) chance(p float64) bool {
	return p > 0 && float64(s.Uint64()>>11)/(1<<53) < p
}
