package actor

import (
	"errors"
	"fmt"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Errors of this package.
var (
	// ErrEnded is the error of a message to an actor that has ended, or that accepts no more.
	ErrEnded = outcome.Named("actor: ended", suspend.ErrEnded)
	// ErrStopped ends a wait for a message when the actor is stopped and no message that the wait takes is left. A body or a
	// reaction that returns it ends normally.
	ErrStopped = errors.New("actor: stopped")
	// ErrFull is the error of a Send to a mailbox that holds Options.Cap messages.
	ErrFull = errors.New("actor: mailbox full")
	// ErrTimeout ends a wait for which no message came in time.
	ErrTimeout = errors.New("actor: timeout")
	// ErrNoReply is the error of an Ask whose request will not be answered, since the actor that had it ended or failed.
	ErrNoReply = errors.New("actor: no reply")
)

// panicked is the error of an actor whose own code has panicked.
type panicked struct{ suspend.PanicError }

func (e *panicked) Error() string { return "actor: " + e.PanicError.Error() }
func (e *panicked) Unwrap() error { return &e.PanicError }

// An ExitError is the cause with which a Link kills an actor.
type ExitError struct {
	Name string // the failed actor's name
	Err  error  // says why it failed
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("actor: linked actor %q failed: %v", e.Name, e.Err)
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }
