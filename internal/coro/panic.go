package coro

import "fmt"

// taskPanic is the value of the panic that ends the process. The runtime prints the result of its Error method.
type taskPanic struct {
	value any
	stack []byte
}

func (p *taskPanic) Error() string {
	return fmt.Sprintf("%v\n\nthe task that panicked:\n%s", p.value, p.stack)
}

// Unwrap returns the panic value if it is an error.
func (p *taskPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Crash ends the process as an unrecovered panic does, and prints the stack of the task. A panic that passed through
// the coroutine would lose that stack. Crash does not return.
func Crash(value any, stack []byte) {
	go func() { panic(&taskPanic{value, stack}) }()
	select {}
}
