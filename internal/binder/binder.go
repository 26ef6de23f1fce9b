// Package binder binds the coroutines of the bundled schedulers to their Tasks. Bind of package suspend does it around a
// function; its frames would be on the stack of each of ten thousand tasks, and more than two kilobytes of stack are
// twice as many.
package binder

// Goroutine binds the calling goroutine, which is bound to nothing, to task, a suspend.Task. Whoever runs one task after
// another on the goroutine calls forget at the end of each: what the task has left with its last context is withdrawn.
// unbind is called last, on the goroutine. Package suspend sets it.
var Goroutine func(task any) (forget, unbind func())
