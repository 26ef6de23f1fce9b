package fifo

import "fmt"

// panicError is what Run returns if main has panicked and OnPanic has dealt with it.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("fifo: main panicked: %v", e.value) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
