package actor

import (
	"time"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that an actor or an inbox is made with. The zero value is the default.
type Options[M any] struct {
	// Name is for errors and reports.
	Name string

	// Cap bounds the messages that are accepted and not received. Zero: no bound. Replies, and the messages of Watch and
	// SendAfter, are accepted in any case, and are not counted. While the mailbox is full, a Send is refused and a SendOp
	// waits, also with a message that a waiting RecvOp would take.
	Cap int

	// Dead is called with each message that was accepted and will never be received. OnEnd is called with the error with which
	// the actor has ended. Both are called by the ending actor and must not suspend.
	Dead  func(M)
	OnEnd func(error)

	// OnStuck is called when an Ask of this actor has waited for StuckAfter and is part of a cycle, once for a cycle,
	// with the names of its actors. A timer calls it, and it must not suspend. An Ask counts only if its actor has an OnStuck, and
	// if it was made with the context of the body or one derived from it. The cycle goes on waiting, but a context can end it.
	StuckAfter time.Duration
	OnStuck    func(chain []string)
}

// An Inbox is the receiving end of a mailbox. It has one owner, and only the owner may call its methods, except Ref.
// It is made by Open, or is a part of a Self.
type Inbox[M any] struct {
	arrived mail[M] // guarded; senders append to it
	ops     *ops[M] // guarded; nil: no Cap, and no RecvOp has waited
	life
	mail stock[M] // the owner's, like what follows; while the owner waits, senders append to it

	within *timer    // ends the owner's wait; nil without a timeout
	hooks  *hooks[M] // may be nil: no hooks
	self   *Self[M]  // is nil in an inbox of Open
}

// A hooks is Dead and OnEnd of the Options, which are not kept whole: that would be 64 bytes for each actor.
type hooks[M any] struct {
	dead  func(M)
	onEnd func(error)
}

// A Self is an actor as its own code sees it. Its methods are for the actor alone.
type Self[M any] struct {
	Inbox[M]
	on    suspend.Spawner
	enter func() // calls step

	// The next task goes on with goOn, and with frames when that is done.
	goOn    error
	frames  *frame
	at      place[M] // the last message that the waiting reaction has skipped
	release func()   // ends the scheduler's Hold; nil without one
	onEnd   *cleanup // the last one
}

// A frame is a Next around another one: it goes on when the inner one is done. It is a Loop, an AndThen or a Catch.
type frame struct {
	up    *frame
	loop  *loop
	then  func() error
	catch *caught
}

// A caught is a Catch that has begun.
type caught struct {
	*catch
	onEnd *cleanup // the last one before
	left  leaving  // the mark behind which the Catch leaves its own
}

// A cleanup is a function that was left with OnEnd.
type cleanup struct {
	older *cleanup
	f     func()
}

// A timer belongs to one wait, so that it never expires a later wait when it fires.
type timer struct {
	expired bool // guarded by the guard of the mailbox, like looked
	looked  bool // expired, and the wait has fetched all that was there then
	cancel  func() bool
}

// stop is for the end of the wait.
func (t *timer) stop() {
	if t != nil && t.cancel != nil {
		t.cancel()
	}
}

// An offer is a RecvOp that waits.
type offer[M any] struct {
	r     suspend.Resumer[M]
	match func(M) bool
}

// An ops has the Ops that wait at a mailbox. It counts the messages of a mailbox with a Cap. Most mailboxes have none.
type ops[M any] struct {
	offers  []offer[M]
	cap     int // 0: no bound, and nothing is counted
	used    int // messages accepted and not received; those handed over at once do not count
	senders suspend.Queue[struct{}, sending[M]]
}

type sending[M any] struct {
	m M
	q pending
}

// full reports whether a message has to wait. x may be nil.
func (x *ops[M]) full() bool { return x != nil && x.cap > 0 && x.used >= x.cap }

// A leaving is a SendAfter, a Watch or a Link that the actor may have to take back, with the function that does so. A leaving
// without a function marks the beginning of a Catch.
type leaving = dlist.Node[func()]
