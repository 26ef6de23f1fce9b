package actor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// The state of a mailbox. -S> is a sender, -T> a timer, -K> a Stop or a Kill, -A> the actor:
//
//	running    -S> running     the message is appended
//	receiving  -S,-T,-K> running   and the actor's waiter is resumed
//	reacting   -S,-T,-K> running   and the caller owes the start of a task, after the guard
//	running    -A> receiving, reacting   only with nothing new, not stopped, not killed, not expired
//	running    -A> ended       for good; the rest of the mail, requests and watchers are taken out, and told outside
//
// A message is always appended before the waiter is resumed, so a wake-up that meets a cancellation loses nothing.
//
// Invariant: reacting implies that no task of the actor exists; receiving or reacting implies that the actor has looked at
// all that is there. A timer expires for one wait only; the wake-up of another wait is harmless.
// Debt: whoever moves reacting to running owes a task, since no other caller starts it.
type state uint8

const (
	running state = iota
	receiving
	reacting
	ended
)

// A life is the part of an actor that does not depend on the type of its messages. All but killed is guarded by guard, where
// nothing else is said.
//
// Senders write the first fields, and the owner reads killed for each message. So the two are far apart: on one cache line, each
// side would take it from the other.
type life struct {
	guard  suspend.Guard
	state  state
	closed bool   // no more messages are accepted; for good
	over   bool   // the end is published; for good
	asks   bool   // a message may be a request; never changes
	calls  *entry // requests whose home this is: the youngest; they are a ring
	waiter suspend.Resumer[struct{}]
	err    error            // the cause of killed, then the error of ended
	ties   *ties            // made on demand
	child  *child           // its place in the parent; nil without a parent. Never changes
	parent *context.Context // ctx's parent, see lineage; nil means context.Background. Never changes
	who    *who             // may be nil: the actor has no name, and takes no part in cycles. Never changes

	ctx     cancelctx.Context // Kill and the end cancel it
	killed  atomicx.Bool      // written under guard, once; implies closed
	fertile atomic.Bool       // it has, or had, a child; written under guard, so that most ends need not look there
	task    atomic.Int64      // the goroutine of the task, while there is one; 0 for an inbox, and where no message may be a request
}

// A who is what reports call an actor.
type who struct {
	name   string
	asking *asking    // guarded by cycles; the Ask in which an actor with an OnStuck waits
	stuck  stuckActor // may be nil: no OnStuck. Never changes, like the rest

	after   time.Duration
	onStuck func(chain []string)
}

// Cycles of requests. An actor with an OnStuck notes its Ask while it waits. When an Ask has waited for StuckAfter, its chain is
// followed: from the request to its home, to the request for which the home waits, and so on. If the chain comes back, it is a cycle.
//
// The chain changes while it is followed, so it is followed twice: a chain that is the same both times was there at one moment in between.

// An asking is an Ask of an actor with an OnStuck that waits.
type asking struct {
	by       *life
	q        pending
	timer    func() bool
	reported bool // a cycle with it was reported; guarded by cycles
}

// A stuckActor is an actor with an OnStuck.
type stuckActor interface {
	lifeOf() *life
	stuckAfter(f func()) (stop func() bool)
	onStuck(chain []string)
}

// cycles guards the asking of all lives. Its holder locks nothing else.
var cycles atomicx.Mutex

// watched says whether there has been an actor with an OnStuck. Without one, Ask need not look at its context.
var watched atomicx.Bool

func (l *life) name() string {
	if l.who == nil {
		return ""
	}
	return l.who.name
}

// wakeLocked wakes an actor that waits, since something is new. It reports whether the caller must start a task.
func (l *life) wakeLocked() (start bool) {
	switch l.state {
	case receiving:
		l.state = running
		l.waiter.Resume(struct{}{}, nil) // false: cancelled, and it will look again in its next wait
	case reacting:
		l.state = running
		return true
	}
	return false
}

// cancellation is the error of a wait that a Kill has ended.
func (l *life) cancellation() error {
	if err := suspend.Err(&l.ctx); err != nil {
		return err
	}
	l.guard.Lock() // the Kill is about to cancel the context
	defer l.guard.Unlock()
	return cancelctx.Reason(context.Canceled, l.err)
}

// tasked notes the task that begins, so that an Ask can recognise its own actor. It is called if l.asks.
func (l *life) tasked() { l.task.Store(gid.Get()) }

// untasked is the end of a task. A goroutine serves one task after another.
func (l *life) untasked() {
	if l.asks {
		l.task.Store(0)
	}
}

// runsHere reports whether the caller is the actor's task.
func (l *life) runsHere() bool {
	id := l.task.Load()
	return id != 0 && id == gid.Get()
}

// A ties is what an actor has to do with others. It is guarded by the guard of the life.
type ties struct {
	done     chan struct{}                     // closed at the end; nil until the first Done
	ended    suspend.Queue[struct{}, struct{}] // waiters for the end
	watchers dlist.List[func(err error)]       // called at the end
	stopped  suspend.Queue[struct{}, struct{}] // waiters for the Stop
	children dlist.List[member]                // live children
	left     dlist.List[func()]                // see leaving
}

// A watcher is one Watch, or one side of a Link. It is called with the error of the end.
type watcher = dlist.Node[func(err error)]

func (l *life) tiesLocked() *ties {
	if l.ties == nil {
		l.ties = new(ties)
	}
	return l.ties
}

// An ending is the end of a life as a Source. Its result is the err of the life.
type ending life

func (e *ending) Guard() *suspend.Guard { return &e.guard }

func (e *ending) Try() (none struct{}, ok bool, _ error) { return none, e.over, nil }

func (e *ending) Enqueue(r suspend.Resumer[struct{}]) {
	(*life)(e).tiesLocked().ended.Push(r, struct{}{})
}

func (e *ending) Remove(r suspend.Resumer[struct{}]) { e.ties.ended.Remove(r) }

// wait is Wait of an Actor.
func (l *life) wait(ctx context.Context) error {
	if by := actorOf(ctx); by != nil && by.cameFrom(l) && !l.hasEnded() {
		return errOwnEnd
	}
	if _, err := suspend.Wait[struct{}](ctx, (*ending)(l), true); err != nil {
		return err
	}
	return l.err
}

func (l *life) hasEnded() bool {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.over
}

func (l *life) waitOp() suspend.Op[error] {
	return suspend.Map(suspend.OpOf[struct{}]((*ending)(l)), func(struct{}, error) (error, error) { return l.err, nil })
}

func (l *life) done() <-chan struct{} {
	l.guard.Lock()
	defer l.guard.Unlock()
	t := l.tiesLocked()
	if t.done == nil {
		t.done = make(chan struct{})
		if l.over {
			close(t.done)
		}
	}
	return t.done
}

// watch calls w at the end, at once if the actor has ended.
func (l *life) watch(w *watcher) {
	l.guard.Lock()
	over, err := l.over, l.err
	if !over {
		l.tiesLocked().watchers.Push(w)
	}
	l.guard.Unlock()
	if over {
		w.Value(err)
	}
}

func (l *life) unwatch(w *watcher) {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties != nil {
		l.ties.watchers.Remove(w)
	}
}

// nextWatcher takes out the next watcher to be called, nil if there is none.
func (l *life) nextWatcher() *watcher {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties == nil {
		return nil
	}
	return l.ties.watchers.Pop()
}

// A stopping is the Stop of a life, or its end, as a Source.
type stopping life

func (s *stopping) Guard() *suspend.Guard { return &s.guard }

func (s *stopping) Try() (none struct{}, ok bool, _ error) { return none, s.closed, nil }

func (s *stopping) Enqueue(r suspend.Resumer[struct{}]) {
	(*life)(s).tiesLocked().stopped.Push(r, struct{}{})
}

func (s *stopping) Remove(r suspend.Resumer[struct{}]) { s.ties.stopped.Remove(r) }
