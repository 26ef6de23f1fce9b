package actor

import (
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// Options configure an actor or an inbox. The zero value is the default.
type Options[M any] struct {
	// Name identifies the actor in errors.
	Name string

	// Cap bounds the number of messages that are accepted and not yet received. Zero means no bound. Messages from Watch and SendAfter
	// are accepted even if the mailbox is full, and are not counted. Replies do not enter the mailbox. While the mailbox is full, a
	// Send is refused and a SendOp waits, even if a waiting RecvOp would match the message.
	Cap int

	// Dead is called with each accepted message that will never be received. OnEnd is called with the error with which the actor has
	// ended. The ending actor calls both functions, which must not suspend.
	Dead  func(M)
	OnEnd func(error)
}

// An Inbox is the receiving end of a mailbox. Only its owner may call its methods, except Ref. Open returns an Inbox, and a Self
// contains one.
type Inbox[M any] struct {
	arrived mail[M] // guarded; senders append to it
	ops     *ops[M] // guarded; allocated if there is a Cap, or when a RecvOp first waits
	life
	mail stock[M] // used by the owner only, like the fields below; but while the owner waits, senders append to mail

	within *timer    // the timeout of the owner's wait; nil if there is none
	hooks  *hooks[M] // is nil if there are no hooks
	self   *Self[M]  // is nil in an inbox from Open
}

// A hooks holds the functions Dead and OnEnd from the Options. The whole Options would take 64 bytes in each actor.
type hooks[M any] struct {
	dead  func(M)
	onEnd func(error)
}

// A Self is an actor's handle for its own code. Only that code may call its methods, except Ref.
type Self[M any] struct {
	Inbox[M]
	on    suspend.Spawner
	enter func() // the function that each task runs, from the method step

	// The next task continues with the Next in goOn and, when that is done, with the frames.
	goOn    error
	frames  *frame
	at      place[M] // the last message that the waiting reaction has skipped
	release func()   // ends the scheduler's Hold; nil if there is no Hold
	onEnd   *cleanup // the function that was registered last
}

// A frame is a Loop, an AndThen or a Catch around another Next. It continues when the Next inside it is done.
type frame struct {
	up    *frame
	loop  *loop
	then  func() error
	catch *caught
}

// A caught is a Catch that has begun.
type caught struct {
	*catch
	onEnd *cleanup // the last function registered before the Catch
	left  leaving  // a mark; the leavings made inside the Catch follow it
}

// A cleanup is a function that was registered with OnEnd.
type cleanup struct {
	older *cleanup
	f     func()
}

// A timer is the timeout of a single wait, so that it never ends a later one.
type timer struct {
	expired bool // protected by the mailbox's guard, like the next field
	looked  bool // the wait has noticed that expired is set, and has fetched all earlier messages
	cancel  func() bool
}

// stop stops the timer at the end of the wait. t may be nil.
func (t *timer) stop() {
	if t != nil && t.cancel != nil {
		t.cancel()
	}
}

// An offer is a waiting RecvOp.
type offer[M any] struct {
	r     suspend.Resumer[M]
	match func(M) bool
}

// An ops holds the waiting Ops of a mailbox and, if there is a Cap, the number of its messages. Most mailboxes have no ops.
type ops[M any] struct {
	offers  []offer[M]
	cap     int // zero means no bound; then the next field has no meaning
	used    int // number of messages that count towards cap
	senders suspend.Queue[struct{}, sending[M]]
}

type sending[M any] struct {
	m M
	q pending
}

// full reports whether the mailbox is full. x may be nil.
func (x *ops[M]) full() bool { return x != nil && x.cap > 0 && x.used >= x.cap }

// A leaving is something that the actor has left elsewhere, and undoes when it ends or fails: a SendAfter, a Watch or a Link. Its value
// is the function that undoes it. A leaving without a function is a mark, which shows where a Catch begins.
type leaving = dlist.Node[func()]
