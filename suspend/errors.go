package suspend

import (
	"errors"
	"fmt"
)

// The packages on top of suspend define errors with their own names, which wrap these errors.
var (
	// ErrClosed is the error of a scheduler, a channel or a stage that takes no more work.
	ErrClosed = errors.New("suspend: closed")
	// ErrEnded is the error of a call that comes after the end of its scope, session, actor or task.
	ErrEnded = errors.New("suspend: ended")
	// ErrAbandoned is the error of a result that will not come, since the function for it did not return: it called runtime.Goexit,
	// or it panicked.
	ErrAbandoned = errors.New("suspend: the function did not return")
)

// A PanicError is the error of a task that has panicked, where the caller gets an error and does not panic itself.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprint("panic: ", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
