// Package eventloop is a scheduler that performs I/O with its own event loop. A Loop has one or several reactors. Each
// reactor runs tasks in the order in which they become runnable, waits for events of descriptors, and runs timers.
//
// A task that holds its reactor for 10 ms loses it: another goroutine continues with the other tasks. The task itself
// runs in parallel until it next suspends. So tasks of one reactor may run in parallel, and must protect shared data as
// goroutines do. To prevent hand-overs, set Options.HandOver to a negative value. Tasks that hold their reactor are
// then reported; see Options.StallAfter.
//
//	loop, err := eventloop.New(eventloop.Options{})
//	...
//	ln, err := loop.Listen("tcp", ":8080")
//	...
//	err = ln.Serve(ctx, func(ctx context.Context, c net.Conn) { // a task of the loop
//		for lines := bufio.NewScanner(c); lines.Scan(); {
//			fmt.Fprintln(c, lines.Text())
//		}
//	})
//
// A Loop's Listener and Conn implement net.Listener and net.Conn. An operation that would block suspends only the
// calling task. The caller may be a task of any scheduler, or a plain goroutine. So one task per connection can read,
// write and handle requests in direct style. Code that uses only net.Conn, such as crypto/tls, bufio and
// http.ReadRequest, runs unchanged. Native waits also work, for example for a channel, a sync.Mutex or a pool of
// connections. A native wait may hold the reactor for the time Options.HandOver, and occupies a goroutine, as it does
// without a Loop.
//
// Loop.Open opens a file whose reads and writes suspend the calling task. File operations use io_uring on Linux, and
// suspend.Blocking on other systems.
//
// If latency matters, run computations on adapters/workstealing, and blocking calls with suspend.Blocking. Tasks that
// compute or block on a reactor for too long are reported; see Options.StallAfter. adapters/eventloop/README.md lists clients for databases
// and services.
//
// Package net with goroutines is just as good for few connections, and for handlers that mostly compute.
package eventloop

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Options configure a Loop. The zero value selects all defaults.
type Options struct {
	// Loops is the number of reactors; 0 means 1. Each reactor runs on one goroutine, so several reactors help only if
	// one core is not enough.
	Loops int

	// BlockingWidth is the initial limit on functions of suspend.Blocking that run concurrently; 0 means 64. Further
	// functions wait in a queue. All running functions might wait for a connection that only a queued function can
	// release. So the limit doubles, up to MaxBlocking, whenever functions are queued and no function has ended for 100
	// ms. A MaxBlocking of 0 means 4096. OnStall receives a report of the first growth, and of the first time that
	// MaxBlocking is too small. When no function is running, the limit returns to BlockingWidth.
	BlockingWidth, MaxBlocking int

	// OnPanic is called in a task or a callback that has panicked, with the value and the stack of the panic. Then the
	// task or callback ends, but the Loop continues. By default the process ends, as it does when a goroutine panics.
	// OnPanic must not suspend if it is called in a callback.
	OnPanic func(value any, stack []byte)

	// OnAcceptError is called by an accepting task when descriptors or memory have run out. The argument retry is the
	// time until the next try. By default, package slog logs the error.
	OnAcceptError func(err error, retry time.Duration)

	// IdleTimeout limits how long ServeParked keeps a connection parked, also before the first byte. Zero means no limit. It has no effect
	// on systems without epoll, where connections are not parked.
	IdleTimeout time.Duration

	// StallAfter is how long a task may run without suspending or yielding before its stack is reported to OnStall. The
	// report is late by at most a fortieth of StallAfter, and is repeated whenever the time has doubled. A task that
	// has lost its reactor is also reported, but only once for each line of source code. Tasks that wait natively one
	// after another are reported if together they delay a runnable task by StallAfter. If OnStall is nil, reports are
	// written to standard error. A StallAfter of 0 means one second, and a negative value disables reports. In a
	// testing/synctest bubble nothing is reported. On a busy machine a report may come later. With more than 16,000 goroutines reports come later, because a
	// report stops the process for 15 µs per goroutine.
	StallAfter time.Duration
	OnStall    func(report []byte)

	// HandOver is how long a task or a callback may hold its reactor by computing or by a native wait. After 1 to 1.5
	// times HandOver, another goroutine takes over the reactor. The task runs in parallel until its next suspension,
	// and then returns to the reactor. A step of a task ends when the task suspends. After a hand-over, the reactor is
	// careful for ten times HandOver, or for 256 tasks: it runs the next two steps of each task in parallel with its
	// other work. The next 64 steps of the task that held the reactor are parallel. The same is true of a task whose
	// parallel step takes half of HandOver, and the reactor is then careful for 16 more tasks. While the reactor is
	// careful, tasks run in no particular order. Callbacks keep their order, except for a callback that has lost the
	// reactor.
	//
	// Shorter waits and computations cause no hand-over. If several steps together hold the reactor for HandOver, the
	// reactor handles events before it runs more tasks. If these steps took more than a twentieth of HandOver on
	// average, the reactor becomes careful.
	//
	// A HandOver of 0 means 10 ms. A negative value disables hand-overs, so that no two tasks of one reactor run in
	// parallel. In a testing/synctest bubble there are no hand-overs.
	HandOver time.Duration
}

const handOverAfter = 10 * time.Millisecond // the default of Options.HandOver

// A Loop is a scheduler with one or several reactors. New starts a Loop, and Close ends it. Its methods may be called
// from any goroutine and from its own tasks.
type Loop struct {
	opts     Options
	base     time.Time // origin of the timers' clock
	reactors []*reactor
	turns    atomicx.Uint32 // counts the calls of nextReactor, which takes the reactors in turn
	block    *blocking.Goroutines
	rings    rings
	busy     atomicx.Int32 // reactors that are open or have work left
	live     atomicx.Int32 // reactors that have not ended
	running  countdown     // counts the reactors, plus one for the goroutines of Block
}

// errLoopClosed is the error of work that a closed Loop refuses.
var errLoopClosed = outcome.Named("eventloop: closed", suspend.ErrClosed)

// New starts a Loop. New fails if the system cannot provide the descriptors that the reactors need.
func New(o Options) (*Loop, error) {
	if o.Loops <= 0 {
		o.Loops = 1
	}
	if o.HandOver == 0 {
		o.HandOver = handOverAfter
	}
	l := &Loop{opts: o, base: time.Now()}
	l.block = blocking.New(blocking.Limits{Width: o.BlockingWidth, Max: o.MaxBlocking, Closed: errLoopClosed, Tell: coro.Reports(o.StallAfter, o.OnStall)}, l.running.done)
	for range o.Loops {
		r, err := newReactor(l)
		if err != nil {
			for _, r := range l.reactors {
				r.discard()
			}
			return nil, err
		}
		l.reactors = append(l.reactors, r)
	}
	l.busy.Store(int32(len(l.reactors)))
	l.live.Store(int32(len(l.reactors)))
	l.running.add(len(l.reactors) + 1)
	for _, r := range l.reactors {
		go r.run()
	}
	return l, nil
}

// Go runs f as a task. A task of the Loop starts f on its own reactor, also through another Spawner that
// decorates its tasks. For other callers the reactors take turns. After Close, Go returns an error that wraps suspend.ErrClosed,
// and f never runs.
func (l *Loop) Go(f func()) error { return l.pick().Go(f) }

// Execute runs f as a callback. Like Go, Execute chooses a reactor, and fails after Close. Callbacks and tasks share one
// queue. The function must not suspend: suspend.Suspend panics in a callback.
func (l *Loop) Execute(f func()) error { return l.pick().Execute(f) }

// AfterFunc runs f as a callback after d has passed, unless the function stop is called first. That function reports
// whether it has prevented the call. The callbacks of one reactor run in the order of their times. Callbacks with equal
// times run in the order in which AfterFunc was called. AfterFunc chooses the reactor as Go does. Close does not wait for
// timers: if the Loop has ended before d has passed, f is called on a goroutine of its own.
func (l *Loop) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return l.pick().AfterFunc(d, f)
}

// Block runs f on a separate goroutine. The function may block in any way. While Options.BlockingWidth functions are
// running, further functions wait in a queue. When the Loop is closed and all tasks have ended, Block returns an error
// that wraps suspend.ErrClosed. Until then, tasks may still use suspend.Blocking, which calls Block, to clean up.
func (l *Loop) Block(f func()) error { return l.block.Block(f) }

// Same reports whether s is the Loop or one of its reactors. In a task of the Loop, suspend.Here returns a reactor, but
// suspend.Within(l) returns true.
func (l *Loop) Same(s suspend.Spawner) bool {
	switch s := s.(type) {
	case *Loop:
		return s == l
	case *reactor:
		return s.loop == l
	}
	return false
}

// Hold keeps Close from returning until release is called; see sched.Holder.
func (l *Loop) Hold() (release func(), err error) { return l.pick().Hold() }

// Stats returns the statistics of all reactors together.
func (l *Loop) Stats() sched.Stats {
	var sum sched.Stats
	for _, r := range l.reactors {
		s := r.core.Stats()
		sum.Live += s.Live
		sum.Running += s.Running
		sum.Suspended += s.Suspended
		sum.Wakes += s.Wakes
		sum.HandOvers += s.HandOvers
		sum.Outside += s.Outside
		sum.Coroutines += s.Coroutines
	}
	sum.Blocking, sum.BlockingQueued = l.block.Counts()
	return sum
}

// Close makes the Loop refuse new work, and closes every Listener and Conn of the Loop: their operations fail with
// net.ErrClosed. Files stay open. Close suspends its
// caller until every task, callback and function of Block has ended. Close does not abandon tasks: it waits even for a
// task that it does not wake, such as one in suspend.Sleep. To end such a task, cancel its context.
//
// Later calls of Close wait, too. Close panics in a task of the Loop. In a scheduler nested in such a task, or in the
// task's suspend.Blocking, Close never returns.
func (l *Loop) Close() error {
	l.checkCaller("eventloop: Close called from a task of the loop")
	l.closeNow()
	l.running.wait()
	return nil
}

// Shutdown lets the tasks finish: it makes the Loop refuse new work, even that of its own tasks, and closes every Listener.
// The tasks keep their connections, and may open further ones. Shutdown suspends its caller until every task, callback and
// function of Block has ended. The connections that are then open, for example those of tasks of other schedulers, are
// closed.
//
// If ctx ends first, Shutdown closes the connections as Close does, and returns the cancellation error without waiting for
// the tasks. A later Close waits for them. Once the Loop has ended, Shutdown returns nil even if ctx has ended; but the reactors
// of a Loop without tasks need a moment to end. Like Close, Shutdown panics in a task of the Loop.
//
// A handler of Serve is a task, also while its connection is idle and the client keeps it open, and Shutdown waits for it. To end
// such handlers, cancel the context of Serve, or call Close. Tasks of the Loop cannot start tasks there after a Close or
// Shutdown: a scope.Map on suspend.Here() fails, and a continuation of suspend.Then whose result comes later runs on a goroutine
// of its own. So shut down listeners and stages first, and the Loop last.
func (l *Loop) Shutdown(ctx context.Context) error {
	l.checkCaller("eventloop: Shutdown called from a task of the loop")
	for _, r := range l.reactors {
		r.refuseWork()
	}
	err := l.running.waitFor(ctx)
	if err == nil || l.running.isZero() {
		return nil
	}
	l.closeNow()
	return err
}

func (l *Loop) checkCaller(inTask string) {
	if suspend.Within(l) {
		panic(inTask)
	}
	suspend.Self() // panics in a callback, before anything is closed
}

// closeNow implements Close, but does not wait.
func (l *Loop) closeNow() {
	for _, r := range l.reactors {
		r.close()
	}
}

// pick returns the reactor of the calling task, or otherwise the next reactor in turn.
func (l *Loop) pick() *reactor {
	for t := suspend.Current(); t != nil; {
		if own, ok := t.(interface{ Spawner() suspend.Spawner }); ok {
			if r, ok := own.Spawner().(*reactor); ok && r.loop == l {
				return r
			}
		}
		decorates, ok := t.(interface{ Unwrap() suspend.Task })
		if !ok {
			break
		}
		t = decorates.Unwrap()
	}
	return l.nextReactor()
}

func (l *Loop) nextReactor() *reactor {
	if len(l.reactors) == 1 {
		return l.reactors[0]
	}
	return l.reactors[int(l.turns.Add(1)%uint32(len(l.reactors)))]
}

// ended is called by each reactor when its last task has ended. The last reactor closes l.block, because no task can
// call Block any more.
func (l *Loop) ended() {
	if l.live.Add(-1) == 0 {
		l.block.Close()
	}
	l.running.done()
}

func (l *Loop) now() int64 { return int64(time.Since(l.base)) }
