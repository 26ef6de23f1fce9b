package actor

import (
	"context"
	"sync/atomic"

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
//	reacting   -S,-T,-K> running   and the caller must start a task after it unlocks the guard
//	running    -A> receiving, reacting   if there is no new message and no Stop, Kill or expired timeout
//	running    -A> ended       final; the requests fail and the mail is dead letters. The watchers are told when life.over is set, see end.go
//
// A message is always appended before the waiter is resumed, so that a cancelled wait loses no message.
//
// Invariant: in state reacting the actor has no task. In states receiving and reacting the actor has examined all messages in the
// mailbox. A timer expires for one wait only. A timer that wakes a different wait does not end that wait.
// Debt: the caller that changes the state from reacting to running must start a task, because no other caller does.
type state uint8

const (
	running state = iota
	receiving
	reacting
	ended
)

// A life is the part of an actor that does not depend on the type of its messages. The field guard protects the other fields, unless
// their comments say otherwise.
//
// Senders write the first fields, and the owner reads the field killed for each message. That field is far from the first ones, so that
// they do not share a cache line.
type life struct {
	guard  suspend.Guard
	state  state
	closed bool   // no more messages are accepted; never reset
	over   bool   // the end is published; never reset
	asks   bool   // a message may be a request; never changes
	line   bool   // the actor is a line, see line.go; never changes once other actors know it
	calls  *entry // the youngest request whose home is this actor; all such requests form a ring
	waiter suspend.Resumer[struct{}]
	err    error  // the cause of the Kill, then the error of the end
	ties   *ties  // allocated on demand
	child  *child // the actor's node in its parent; nil without a parent; never changes
	given  *given // nil if there is nothing in it; never changes
	box    box    // the Inbox that contains this life; never changes

	ctx     cancelctx.Context // a Kill and the end cancel ctx
	killed  atomicx.Bool      // set once, under guard, together with the field closed
	fertile atomic.Bool       // the actor has, or had, a child; written under guard, but read without it
	task    atomic.Int64      // the id of the task's goroutine; 0 if there is no task, or no message may be a request

	// Only the owner uses the following fields, except on and enter, which never change.
	within *timer          // the timeout of the owner's wait; nil if there is none
	on     suspend.Spawner // nil in an inbox from Open
	enter  func()          // the function that each of the actor's tasks runs

	// The next task continues with the Next in goOn and, when that is done, with the frames.
	goOn    error
	frames  *frame
	release func()   // ends the scheduler's Hold; nil if there is no Hold
	onEnd   *cleanup // the function that was registered last
}

// A given holds what few actors have, so that the other actors need no room for it. It has three words, because an actor has a part of
// them at most.
type given struct {
	parent *context.Context // ctx's parent, see lineage; nil means context.Background
	name   *string          // Options.Name; nil without a name
	onEnd  func(error)      // Options.OnEnd
}

// A box is the mailbox of a life, an Inbox with messages of any type.
type box interface {
	newsLocked(t *timer) (ok bool, err error)
	restLocked()
	fetchLocked()
	failLocked(receives error)
	keepRequestsLocked(stay map[*call]bool)
	bury() (more bool)
	react(n error, woken bool) (waits bool, err error)
	dropHeld()
	spin()
	countLocked() int
}

func (l *life) name() string {
	if l.given == nil || l.given.name == nil {
		return ""
	}
	return *l.given.name
}

// wakeLocked wakes the actor if it waits. It reports whether the caller must start a task.
func (l *life) wakeLocked() (start bool) {
	switch l.state {
	case receiving:
		l.state = running
		l.waiter.Resume(struct{}{}, nil) // a cancelled wait is not resumed, and the next wait checks the mailbox again
	case reacting:
		l.state = running
		return true
	}
	return false
}

// cancellation returns the error of a wait that a Kill has ended.
func (l *life) cancellation() error {
	if err := suspend.Err(&l.ctx); err != nil {
		return err
	}
	l.guard.Lock() // the Kill is about to cancel the context
	defer l.guard.Unlock()
	return cancelctx.Reason(context.Canceled, l.err)
}

// tasked records the calling goroutine as the actor's task, so that an Ask can recognise its own actor. The actor calls tasked only if
// its messages may be requests.
func (l *life) tasked() { l.task.Store(gid.Get()) }

// untasked removes the goroutine that was recorded by tasked, because this goroutine may run another actor's task next.
func (l *life) untasked() {
	if l.asks {
		l.task.Store(0)
	}
}

// runsHere reports whether the caller runs in the actor's task.
func (l *life) runsHere() bool {
	id := l.task.Load()
	return id != 0 && id == gid.Get()
}

// A ties holds an actor's connections to other actors and to waiters. The life's guard protects it.
type ties struct {
	done     chan struct{}                     // closed at the end; nil until Done is called
	ended    suspend.Queue[struct{}, struct{}] // waiters for the end
	watchers dlist.List[func(err error)]       // called at the end
	stopped  suspend.Queue[struct{}, struct{}] // waiters for the Stop
	children dlist.List[*life]                 // children in the family: they, or descendants of theirs, have not ended
	awaited  int                               // the number of children whose field awaited is set
	left     suspend.Resumer[struct{}]         // the actor's wait for awaited children
	waits    bool                              // the actor's code has ended, and the last child calls publishEnd
	undos    dlist.List[func()]                // the last one is undone first
}

// A watcher is a Watch, or one side of a Link. Its function is called with the error with which the actor ended.
type watcher = dlist.Node[func(err error)]

func (l *life) tiesLocked() *ties {
	if l.ties == nil {
		l.ties = new(ties)
	}
	return l.ties
}

// An ending is a life as a Source: a wait on it ends when the life has ended. The result is the field err of the life.
type ending life

func (e *ending) Guard() *suspend.Guard { return &e.guard }

func (e *ending) Try() (none struct{}, ok bool, _ error) { return none, e.over, nil }

func (e *ending) Enqueue(r suspend.Resumer[struct{}]) {
	(*life)(e).tiesLocked().ended.Push(r, struct{}{})
}

func (e *ending) Remove(r suspend.Resumer[struct{}]) { e.ties.ended.Remove(r) }

// wait implements Actor.Wait.
func (l *life) wait(ctx context.Context) error {
	if by := actorOf(ctx); by != nil && by.cameFrom(l) && !l.hasEnded() {
		return errOwnEnd
	}
	if _, err := suspend.WaitLazily[struct{}](ctx, (*ending)(l)); err != nil {
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

// watch arranges that the function of w is called when the actor ends, or calls it at once if the actor has ended.
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

// popWatcher removes and returns the next watcher, or nil if there is none.
func (l *life) popWatcher() *watcher {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties == nil {
		return nil
	}
	return l.ties.watchers.Pop()
}

// A stopping is a life as a Source: a wait on it ends when the life is stopped or has ended.
type stopping life

func (s *stopping) Guard() *suspend.Guard { return &s.guard }

func (s *stopping) Try() (none struct{}, ok bool, _ error) { return none, s.closed, nil }

func (s *stopping) Enqueue(r suspend.Resumer[struct{}]) {
	(*life)(s).tiesLocked().stopped.Push(r, struct{}{})
}

func (s *stopping) Remove(r suspend.Resumer[struct{}]) { s.ties.stopped.Remove(r) }
