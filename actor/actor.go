package actor

import "github.com/braidgo/braid/internal/dlist"

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
	arrived mail[M]  // guarded; senders append to it
	ops     *ops[M]  // guarded; allocated if there is a Cap, or when a RecvOp first waits
	life    life     // a named field: the compiler would repeat the methods of an embedded one for each type of message
	mail    stock[M] // used by the owner only, like the field at; but while the owner waits, senders append to mail
	at      place[M] // the last message that the waiting reaction has skipped
	dead    func(M)  // Options.Dead
}

// A Self is an actor's handle for its own code. Only that code may call its methods, except Ref.
type Self[M any] struct{ Inbox[M] }

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
	onEnd   *cleanup // the last function registered before the Catch
	mark    undo     // the undos made inside the Catch follow it
	failure error    // the failure that the Catch handles
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

// An undo holds the function that the actor calls when it ends or fails, to undo a SendAfter, a Watch or a Link. An undo without a
// function is a mark, which shows where a Catch begins.
type undo = dlist.Node[func()]
