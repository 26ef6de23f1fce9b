package suspend

import (
	"context"
	"runtime"
)

// Enter binds t to the calling goroutine until exit is called there, and nests as Bind does. It is Bind without a frame on
// the stack, for schedulers whose tasks are coroutines: a small task fits into the first two kilobytes of a stack.
func Enter(t Task) (b Bound, exit func()) {
	p, before, away := here()
	b = Bound{newBinding(t)}
	p.b = b.b
	return b, func() {
		defer p.restore(before, away)
		b.b.forget()
	}
}

// A Bound is a Task that Enter has bound. It serves one task after another. Its methods are called by their scheduler: on
// the goroutine of the task, or while the task is not running and cannot begin to.
type Bound struct{ b *binding }

// TaskEnded withdraws what the task has left with its last context, and forgets a Kill that has not taken effect. A
// scheduler calls it at the end of each task.
func (b Bound) TaskEnded() { b.b.forget() }

// Kill ends the task, by runtime.Goexit, in the wait that it is in, or in the next one. A Suspend, Wait, Select or Yield
// that is killed does not return. Until then it does what it does for a cancellation: it takes back what Wait and Select
// have queued, and every later Resume returns false. Of a Kill and a Resume that meet, one wins; if that is the Resume, the
// wait returns, and the next one is killed.
//
// The deferred functions of the task run, and they may wait like those of any goroutine that exits. A Kill ends one wait:
// to end one of a deferred function takes another Kill. Kill reports false, and changes nothing, while a Kill of this task
// has not taken effect.
func (b Bound) Kill() bool { return b.b.kill() }

// ExitIfKilled ends the calling task if a Kill has not taken effect yet. It is for a Park of the scheduler, which a
// decorated Task and a nested scheduler call directly.
func (b Bound) ExitIfKilled() { b.b.exitIfKilled() }

// kill leaves the mark, and ends the wait as a context that is done would. Between two waits the word is open as well. Then
// the mark, and a status that no word has, send the next wait to arm.
func (b *binding) kill() bool {
	if b.killed {
		return false
	}
	b.killed = true
	b.last = wait{status: unarmed}
	for w := b.word.Load(); w&statusMask <= openLazily; w = b.word.Load() {
		if b.word.CompareAndSwap(w, with(w, cancelled)) {
			b.task.Unpark()
			break
		} // or a Resume, or a context, has come first, and unparks the task
	}
	return true
}

// exitIfKilled is called where nothing of the task is queued any more.
func (b *binding) exitIfKilled() {
	if b.killed {
		b.killed = false
		runtime.Goexit()
	}
}

// cancelled returns the error of a wait with ctx whose word was cancelled: by ctx, or else by Kill.
func (b *binding) cancelled(ctx context.Context) error {
	b.exitIfKilled()
	return cancellation(ctx)
}
