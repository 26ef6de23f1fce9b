// Package binder binds the coroutines of the bundled schedulers to their Tasks. Bind of package suspend does it around a
// function; its frames would be on the stack of each of ten thousand tasks, and what does not fit into two kilobytes of
// stack takes four.
package binder

// Goroutine binds the calling goroutine, which is bound to nothing, to task, a suspend.Task. unbind is called last, on the
// goroutine. Package suspend sets it.
var Goroutine func(task any) (b Binding, unbind func())

// A Binding is used for one task after another. Whoever runs them calls Forget at the end of each: what the task has left
// with its last context is withdrawn.
type Binding interface{ Forget() }
