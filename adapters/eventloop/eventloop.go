// Package eventloop is a scheduler that drives itself and does I/O: one or several reactors. Each runs tasks in the order in which they
// become runnable, waits for descriptors and keeps timers. A task that holds its reactor for 10 ms loses it: another goroutine goes on with the
// other tasks, and the task runs beside them up to its next suspension. So tasks of one reactor may run in parallel. Data that they share is
// protected as among goroutines. If tasks are to be alone on their reactor, set Options.HandOver negative: StallAfter then reports a
// task that holds it.
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
// A Loop's Listener and Conn are a net.Listener and a net.Conn. An operation that would block suspends the calling task
// and no other. The task may be one of any scheduler, or a plain goroutine. So one task per connection reads, writes
// and handles, in direct style. Code that uses only net.Conn (crypto/tls, bufio, http.ReadRequest) runs unchanged. So
// does code that waits natively: for a channel, a sync.Mutex, a pool of connections. It holds up its reactor for
// HandOver now and then, and each such wait costs a goroutine, as it does without a loop.
//
// Loop.Open opens a file, whose reads and writes suspend the calling task: by io_uring on Linux, and otherwise by suspend.Blocking.
//
// Where latency counts, computation belongs on adapters/workstealing, and calls that block belong in suspend.Blocking. StallAfter finds both.
// STOCK.md lists clients of databases and services.
//
// Package net with goroutines is as good for few connections, and for handlers that mostly compute.
package eventloop

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Loop is made with. The zero value is the default.
type Options struct {
	// Loops is the number of reactors; 0 means 1. Each is a goroutine, so more than one is of use where one
	// core is not enough.
	Loops int

	// BlockingWidth is how many functions of suspend.Blocking run concurrently at first; 0 means 64. Further functions
	// are queued. All functions that run may wait for a queued function, such as transactions for a connection. So the
	// width doubles whenever no function has ended for 100 ms and the queue is not empty, up to MaxBlocking; 0 means
	// 4096. The first growth is reported to OnStall, and so is the first time that MaxBlocking is too small. The width
	// is back at BlockingWidth when no function runs.
	BlockingWidth, MaxBlocking int

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then,
	// and nothing else. By default the process ends, as it does when a goroutine panics. In a callback it must not
	// suspend.
	OnPanic func(value any, stack []byte)

	// OnAcceptError is called when a Listener has run out of descriptors or memory; retry is the time until the next
	// try. It is called in the task that accepts. By default package slog logs the error.
	OnAcceptError func(err error, retry time.Duration)

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, at
	// most a fortieth later, and again whenever the time has doubled. A task that has lost its reactor is also
	// reported, but only once for each line of the program. Tasks that wait natively one after another are reported if
	// together they keep a runnable task waiting for as long. A nil OnStall writes to standard error. 0 means a second;
	// a negative StallAfter means never. In a testing/synctest bubble nothing is reported, and among more than 16,000
	// goroutines later: a report stops the process, for 15 µs each.
	StallAfter time.Duration
	OnStall    func(report []byte)

	// HandOver is how long a task or a callback may hold its reactor by computing, or by waiting natively, or up to 1.5
	// times as long. Then another goroutine is given the reactor. The task goes on beside it up to its next suspension,
	// and is a task of the reactor again after that. From then on the reactor is careful, for ten times HandOver or 256
	// tasks: each of them makes two steps beside it. A task that was stuck, or made a step beside it that took half of
	// HandOver, makes 64 more, and 16 more tasks make two. While the reactor is careful tasks run in no order.
	// Callbacks keep their order, except for a callback that is stuck.
	//
	// Waits and computations that are shorter make no hand-over. If a turn lasts for HandOver by them, it ends, and if its steps took a
	// twentieth of HandOver on average, the reactor is careful from then on.
	//
	// 0 means 10 ms. A negative HandOver means never, and then no two tasks of one reactor run in parallel. A hand-over
	// is never made in a testing/synctest bubble.
	HandOver time.Duration
}

const handOverAfter = 10 * time.Millisecond // the default

// A Loop is made by New and ends by Close. Its methods may be called from any goroutine and from its own tasks.
type Loop struct {
	opts     Options
	base     time.Time // timers count from it
	reactors []*reactor
	turns    atomicx.Uint32 // counts the choices of a reactor for work from elsewhere
	block    *blocking.Goroutines
	rings    rings
	live     atomicx.Int32 // reactors that have not ended
	running  countdown     // reactors, and one for the goroutines of Block
}

// New starts a Loop. It fails if the system refuses the descriptors that the reactors need.
func New(o Options) (*Loop, error) {
	if o.Loops <= 0 {
		o.Loops = 1
	}
	if o.HandOver == 0 {
		o.HandOver = handOverAfter
	}
	l := &Loop{opts: o, base: time.Now()}
	l.block = blocking.New(blocking.Limits{Width: o.BlockingWidth, Max: o.MaxBlocking, Tell: coro.Reports(o.StallAfter, o.OnStall)}, l.running.done)
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
	l.live.Store(int32(len(l.reactors)))
	l.running.add(len(l.reactors) + 1)
	for _, r := range l.reactors {
		go r.run()
	}
	return l, nil
}

// Go runs f as a task: on the reactor of the calling task if it is one of the loop's, otherwise on one after
// the other. A task of an idle.Group counts as one from elsewhere. After Close it returns suspend.ErrClosed and f never runs.
func (l *Loop) Go(f func()) error { return l.pick().Go(f) }

// Execute runs f as a callback, on the same terms as Go, in the same order as tasks. f must not suspend;
// suspend.Suspend panics in it.
func (l *Loop) Execute(f func()) error { return l.pick().Execute(f) }

// AfterFunc runs f as a callback once d has passed, unless stop comes first; stop reports whether it did. On one
// reactor callbacks run in the order of their times, and in the order of the AfterFuncs where the times are equal. The
// reactor is chosen as by Go. After Close a callback runs only if it becomes due while tasks are left.
func (l *Loop) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return l.pick().AfterFunc(d, f)
}

// Block runs f, which may block in any way, on a separate goroutine when its turn comes, see Options.BlockingWidth. It
// refuses, with suspend.ErrClosed, once Close has waited for all tasks: until then suspend.Blocking in a task, which
// comes here, is of use for cleaning up.
func (l *Loop) Block(f func()) error { return l.block.Block(f) }

// Now returns the time by the clock of the timers.
func (l *Loop) Now() time.Time { return time.Now() }

// Same reports whether s is the loop or one of its reactors. suspend.Here returns a reactor in a task of the loop.
// suspend.Within reports whether the caller is such a task.
func (l *Loop) Same(s suspend.Spawner) bool {
	switch s := s.(type) {
	case *Loop:
		return s == l
	case *reactor:
		return s.loop == l
	}
	return false
}

// Sleep suspends the calling task, of whatever scheduler, for d. If ctx is done first, or already, it returns the
// error of the cancellation; if the loop is closed first, or already, suspend.ErrClosed. A d of zero or less is over
// already.
func (l *Loop) Sleep(ctx context.Context, d time.Duration) error {
	return l.pick().timers.sleep(ctx, d)
}

// Hold keeps Close from returning until release is called, see suspend.Holder.
func (l *Loop) Hold() (release func(), err error) { return l.pick().Hold() }

// Stats returns the statistics of the loop, all reactors together.
func (l *Loop) Stats() suspend.Stats {
	var sum suspend.Stats
	for _, r := range l.reactors {
		s := r.core.Stats()
		sum.Live += s.Live
		sum.Running += s.Running
		sum.Suspended += s.Suspended
		sum.Wakes += s.Wakes
		sum.HandOvers += s.HandOvers
		sum.Outside += s.Outside
	}
	sum.Blocking, sum.BlockingQueued = l.block.Counts()
	return sum
}

// Close refuses new work from now on and closes every Listener and Conn of the loop: their operations fail with
// net.ErrClosed. Files stay open. A Sleep of the loop ends with suspend.ErrClosed. Close returns once every task,
// callback and Block has ended; it suspends only its caller. No task is abandoned: Close waits even for a task that
// waits for something else, a suspend.Sleep included. The context of such a task is to cancel it.
//
// Further Closes also wait. In a task of the loop itself Close panics; in a scheduler that is nested in such a task, or
// in its Blocking, Close never returns.
func (l *Loop) Close() error {
	if suspend.Within(l) {
		panic("eventloop: Close called from a task of the loop")
	}
	suspend.Self() // panics in a callback, before anything is closed
	for _, r := range l.reactors {
		r.close()
	}
	l.running.wait()
	return nil
}

// pick returns the reactor for new work.
func (l *Loop) pick() *reactor {
	if r, ok := suspend.Here().(*reactor); ok && r.loop == l {
		return r
	}
	return l.nextReactor()
}

func (l *Loop) nextReactor() *reactor {
	if len(l.reactors) == 1 {
		return l.reactors[0]
	}
	return l.reactors[int(l.turns.Add(1)%uint32(len(l.reactors)))]
}

// ended is called by each reactor when its last task has ended. The last reactor ends the Blocks, which no task can
// start any more.
func (l *Loop) ended() {
	if l.live.Add(-1) == 0 {
		l.block.Close()
	}
	l.running.done()
}

func (l *Loop) now() int64 { return int64(time.Since(l.base)) }
