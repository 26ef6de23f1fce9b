package suspend

import (
	"errors"
	"fmt"
)

// These errors are shared by the packages of this module. Each package wraps them in errors with its own names.
var (
	// ErrClosed is the class of the errors of all that was closed and accepts no more work. Each package of this module returns an error of
	// its own, such as "workstealing: closed", that wraps ErrClosed and is made once, so that a refusal does not allocate. A scheduler of
	// another module may return ErrClosed itself. The connections, listeners and files of package adapters/eventloop, and the connections
	// and listeners of adapters/netstack, are an exception: their error is net.ErrClosed or os.ErrClosed, because their users test for it.
	ErrClosed = errors.New("suspend: closed")
	// ErrEnded is the error of a call that comes after the end of its scope, session, actor or task.
	ErrEnded = errors.New("suspend: ended")
	// ErrAbandoned is the error of a result that does not exist, because the function that computes it has panicked or called
	// runtime.Goexit.
	ErrAbandoned = errors.New("suspend: the function did not return")
)

// A PanicError reports the panic of a task as an error, to a caller that should not panic itself.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprint("panic: ", e.Value) }

// Unwrap returns the value of the panic if it is an error, or else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
