// Package simulation runs a whole distributed program in one process: its nodes, the links between them, crashes, and a virtual clock. A
// seed decides everything that would otherwise be left to chance, so a run that fails can be repeated exactly.
//
//	func TestRegister(t *testing.T) {
//		simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
//			server := w.Node("server")
//			...
//		}, simulation.TestOptions{})
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
//	a native wait: a channel, a sync.Mutex while suspended    stops the World; the run fails
//	the go statement                                          the run fails with ErrForeign if the goroutine calls the World
//	math/rand                                                 no: use World.Rand
//	crypto/rand                                               no: use testing/cryptotest.SetGlobalRandom
//	%p, finalizers, the content of a sync.Pool                no
//
// [Check] and [Test] run a seed twice, and report the first step at which the two runs differ.
package simulation

import (
	"io"
	"math/rand/v2"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/simulation/internal/seeds"
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

	// MaxTime is the virtual time after which a run fails with ErrTime. 0 means no limit. Without a MaxTime, a World with Guests fails with
	// ErrDeadlock after a day without an event.
	MaxTime time.Duration

	// Preempt lets other tasks run before each operation that could wait, even if the operation does not need to wait: each lock, receive
	// and transaction may then end a step. Without Preempt a task runs until it waits, so two critical sections in a row look atomic
	// although they are not. In a Test, Preempt is on unless NoPreempt is set. Guests are not affected, unless simulation/overlay is
	// in use: then each lock, atomic operation and operation on a channel may let other guests run.
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
	// times StallAfter fails the run: under Test and Check at once, and under Run when the wait ends.
	StallAfter time.Duration

	// Guests runs main, and each function passed to Node.Start, as a guest: a goroutine that uses native channels, sync.Mutex and package
	// time. Only Test supports Guests, because it gives each run a bubble, and a process of its own. Guests is experimental.
	Guests bool

	// KeepsNames makes a sync of a file or a folder also keep all changes to names so far, as ext4 and XFS do. Without KeepsNames, a name is
	// durable after a sync of its folder, or of the FS, and not before: POSIX promises no more.
	KeepsNames bool

	fleet  *fleet                  // the fleet that the runs of a Test share, or nil if the run must make a fleet
	watch  func(w *World, e event) // called for each event
	run    seeds.Run               // the changes to the run of the seed
	how    seeds.How               // the records and limits of the run
	record *seeds.Record           // the record of the run, or nil
	open   bool                    // goroutines outside the World may call the World, as in the conformance kit
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
	Hits      map[string]bool   // the names of the nodes that had a fault; true if the node had a task, a guest, a listener, a dial or a file
	came      []seeds.Milestone // the names whose condition was true, in order, with the steps
	record    *seeds.Record     // the record of a run of Test

	// The following fields are set in a run with guests.
	Level   string // A: the order of guests is deterministic; B: also the runtime's draws; C: simulation/overlay is in use; D: also Preempt
	Windows int    // how often all guests have run until each was blocked
	Long    int    // windows that took 5 ms of real time, or ended 1 ms after the clock stopped: the machine may have decided an order
	Ahead   int    // events while the clock of package time was stopped, for example because a guest waited for a sync.Mutex
	Left    int    // goroutines that have not ended with the run, and still use memory
}

// A World is the simulated world of one run. It implements suspend.Spawner, Executor, Timers and Clock. Tasks that World.Go starts belong
// to the test itself, and not to a Node. Only the World's own tasks, guests and callbacks may call its methods.
type World struct {
	host
	o     Options
	fleet *fleet
	ending
	journal

	still  bool // the next operation is a network wait: its condition has been checked, so no other task must run before it
	always []func() error

	ready []ready // unsorted, because the seed decides which entry runs next
	dice  dice
	steps int

	clock   clock
	watches contextWatches

	nodes map[string]*Node // nodes by name; the next field lists them in order
	hosts []*host          // the World itself, and then the nodes in order of creation
	links links

	outside
	guests *guests // the guests, or nil if Options.Guests is not set
}

func newWorld(o Options) *World {
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = 1_000_000
	}
	w := &World{o: o, journal: journal{hash: o.Seed, record: o.record}, clock: clock{start: o.Start.Round(0)}, dice: newDice(o.Seed, o.run.Forks)}
	if w.clock.start.IsZero() {
		w.clock.start = newYear
	}
	w.by = tasks{w}
	w.host = host{world: w, spawner: w, rate: normal}
	w.hosts = []*host{&w.host}
	return w
}

// Seed returns the seed of the run.
func (w *World) Seed() uint64 { return w.o.Seed }

// outside is the part of a World that handles calls from other goroutines. In a bubble, other goroutines may call while the World sleeps,
// because then a timer of package time has caused the call. Packages time and context may call at any time. Any other call must end the
// run, because the run could not be repeated.
type outside struct {
	driver  int64 // the id of Run's goroutine
	current *task // the running task, or nil while the World's own goroutine runs
	parent  suspend.Task
	acting  guestID      // the guest whose call the World is executing
	by      entry        // the entry of the call that is being executed
	defers  bool         // the call is a guest's: its effects on other nodes wait for the end of the window
	called  atomicx.Bool // set if w.foreign is not nil, if w.in is not empty, or if a context has ended

	mu      atomicx.Mutex
	foreign error   // the error of the first call that was not allowed
	admits  bool    // calls are allowed: from the beginning of a sleep until the bubble's goroutines are blocked again
	asleep  bool    // a call must unpark w.parent
	closed  bool    // the run is over
	in      []ready // the calls that were admitted, in order of arrival
}

// The ending of a run says whether the run ends, and why.
type ending struct {
	err         error
	over        bool // the scheduler's loop must end
	ended       bool // main has ended
	failed      bool // err is the reason why the run was ended
	tearingDown bool // the remaining tasks are being ended
}

// fail ends the run with err. Only the first call has an effect. Its error replaces the result of main, if main has returned in the same
// step.
func (e *ending) fail(err error) {
	if !e.failed {
		e.err, e.failed, e.over = err, true, true
	}
}

// mainEnded ends the run with main's error, unless the run has failed. With open, the run continues until nothing is left.
func (e *ending) mainEnded(err error, open bool) {
	if e.ended = true; !e.failed {
		e.err, e.over = err, !open
	}
}

// A host runs tasks. The World itself is a host, and so is each Node.
type host struct {
	world *World
	place
	spawner suspend.Spawner
	born    int // the number of tasks that have begun
	tasks   dlist.List[*task]
	holds   dlist.List[heldWait]
	crashes dlist.List[func() func()]
	dead    bool
	used    bool   // see journal.hits
	reboot  func() // called when the last task has ended
	paused  bool
	held    []ready // the entries of World.ready that wait until Resume

	since  time.Duration // the World's time at which the clock was set
	offset time.Duration // the clock's offset at that time
	rate   uint64        // the clock's speed relative to the World's clock, times 2³²
}

const normal = 1 << 32

// A heldWait is a wait without a task. Its host lists the hold until the hold is released or the host crashes.
type heldWait struct {
	over atomicx.Bool // the hold was released; atomic because goroutines outside the World may read the field
	by   [16]uintptr  // the stack of the call of Hold
}

// A task is a coroutine of a World, with the state of the task that runs on it, if any. In the diagram, -T> is a transition by the task,
// and -U> is a transition by Unpark.
//
//	active -T> parked   Park. The switch follows
//	parked -U> active   and the task is ready
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
type task struct {
	world atomicx.Pointer[World] // the World, or nil while idle; atomic because goroutines outside the World may call Unpark
	coro.Coroutine
	host  *host
	id    int                   // the task's number on its host
	label atomicx.Pointer[host] // this and the next field are copies of host and id for the report of a stall
	nth   atomicx.Int64
	mark  uint8
	under *task    // the task whose call of Crash has resumed this task
	by    *guestID // the guest whose call the task executes, or nil

	place dlist.Node[*task] // the task's place in host.tasks, which lists all tasks that have begun and not ended, the oldest first
	made  dlist.Node[*task] // the task's place in fleet.all
}

const (
	active uint8 = iota
	parked
	woken
)

// A ready is an entry of World.ready: a task to resume, a task to begin, or a callback.
type ready struct {
	host *host
	task *task  // the task to resume, or nil if f is to run
	f    func() // the function of a task to begin, or a callback
	as   *way   // how f is called; nil for an ordinary task
}

// A way says how the function f of a ready is called. It is a separate struct because each step copies a value of type ready.
type way struct {
	gone func()   // called if the task is dropped before it begins
	by   *guestID // the guest whose call the task executes
}

var callback = new(way)

// A fleet is a pool of coroutines. Successive Worlds of a Test share a fleet, because creating a coroutine takes longer than most tasks.
type fleet struct {
	idle   []*task
	stalls *coro.Stalls
	limit  time.Duration // the longest native wait that is allowed
	hangs  chan error    // receives the error of a native wait over the limit
	hung   <-chan Report // receives the report of a hanging run, which still uses these coroutines

	mu  atomicx.Mutex // guards the following list, which goroutines outside the World read, too
	all dlist.List[*task]
}
