package actor

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Errors of this package.
var (
	// ErrEnded is returned by a Send to an actor that has ended or accepts no more messages.
	ErrEnded = outcome.Named("actor: ended", suspend.ErrEnded, suspend.ErrClosed)
	// ErrStopped is returned by a wait for a message if the actor is stopped and its mailbox has no message for the wait. An actor
	// whose body or reaction returns ErrStopped ends normally.
	ErrStopped = errors.New("actor: stopped")
	// ErrFull is returned by a Send to a mailbox that holds Options.Cap messages.
	ErrFull = errors.New("actor: mailbox full")
	// ErrTimeout is returned by HandleWithin if its function has skipped every message until the timeout.
	ErrTimeout = errors.New("actor: timeout")
	// ErrNoReply is returned by an Ask if the request's home has ended or failed, so that there will be no reply.
	ErrNoReply = errors.New("actor: no reply")
)

// A panicked is the error of an actor whose code has panicked.
type panicked struct{ suspend.PanicError }

// newPanicked must be called by the deferred function that has recovered v, so that the stack is the one of the panic.
func newPanicked(v any) *panicked {
	return &panicked{suspend.PanicError{Value: v, Stack: debug.Stack()}}
}

func (e *panicked) Error() string { return "actor: " + e.PanicError.Error() }
func (e *panicked) Unwrap() error { return &e.PanicError }

// A cleanupError is the failure of an actor whose cleanup after another failure has panicked.
type cleanupError struct{ panicked, failure error }

func (e *cleanupError) Error() string   { return e.panicked.Error() + ", after: " + e.failure.Error() }
func (e *cleanupError) Unwrap() []error { return []error{e.panicked, e.failure} }

// An ExitError is the cause with which a Link kills an actor.
type ExitError struct {
	Name string // the failed actor's name
	Err  error  // the error with which it failed
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("actor: linked actor %q failed: %v", e.Name, e.Err)
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }
