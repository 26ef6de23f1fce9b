package suspend

// A Switcher is a Task that is a coroutine. It tells the function that suspends which switches to make, instead of making
// them in Park: after a switch the processor predicts no return correctly, 10 ns each, so there are to be few.
//
// Leave, or LeaveReady in a Yield, returns next, yield or neither. The function calls next until Back returns none, and
// then yield if there is one. next resumes another coroutine, and yield resumes the one that has resumed this.
type Switcher interface {
	Task
	Leave() (next func() (struct{}, bool), yield func(struct{}) bool)
	LeaveReady() (next func() (struct{}, bool), yield func(struct{}) bool)
	Back() (next func() (struct{}, bool), yield func(struct{}) bool)
}

// Enter binds t to the calling goroutine until Exit is called there, and nests as Bind does. It is Bind without a frame on
// the stack, for schedulers whose tasks are coroutines: a small task fits into the first two kilobytes of a stack.
func Enter(t Task) (Bound, Entered) {
	p, before, away := here()
	p.b = newBinding(t)
	return Bound{p.b}, Entered{p, before, away}
}

// Entered is what Exit restores.
type Entered struct {
	place  *place
	before *binding
	away   *level
}

// Exit ends what Enter began.
func (e Entered) Exit() {
	defer e.place.restore(e.before, e.away)
	e.place.b.forget()
}

// A Bound is a Task that Enter has bound. It serves one task after another. Its methods are called by their scheduler: on
// the goroutine of the task, or while the task is not running and cannot begin to.
type Bound struct{ b *binding }

// TaskEnded withdraws the registration of the task with its last context, and forgets a Kill that has not taken effect. A
// scheduler calls it at the end of each task.
func (b Bound) TaskEnded() { b.b.forget() }

// Kill ends the task, by runtime.Goexit, in the wait that it is in, or in the next one. A Suspend, Wait, Select or Yield
// that is killed does not return. Until then it treats a Kill as a cancellation: it takes back the nodes of Wait and Select, and every
// later Resume returns false. If a Kill and a Resume meet, one of them wins. If it is the Resume, the wait returns, and the next one is
// killed.
//
// The deferred functions of the task run, and they may wait like those of any goroutine that exits. A Kill ends one wait:
// to end one of a deferred function takes another Kill. Kill reports false, and changes nothing, while a Kill of this task
// has not taken effect. Under a Shield it takes effect when that ends.
func (b Bound) Kill() bool { return b.b.kill() }

// Shielded reports whether the task is in a Shield: then a Kill changes nothing before the end of that.
func (b Bound) Shielded() bool { return b.b.shielded }

// Unshield lifts a Shield, for a scheduler that ends: nobody is left to end the wait under it. A Kill of the task takes effect at once then.
// Unshield reports whether there was a Shield.
func (b Bound) Unshield() bool { return b.b.lift() }

// ExitIfKilled ends the calling task if a Kill has not taken effect.
func (b Bound) ExitIfKilled() { b.b.exitIfKilled() }

// Shield calls f, and puts off a Kill of the calling task until f has returned. It is for a primitive that must not leave its caller without
// something, such as the lock that a Cond gives back. f should wait only for what comes without the task: until then, its scheduler
// does not end the task. Shield changes nothing but that, and nests. It is not for contexts.
func Shield(f func()) {
	b := current()
	if b == nil || b.task == nil || b.shielded {
		f()
		return
	}
	if t, ok := b.task.(interface{ Shield(f func()) }); ok { // a Task that decorates one that is killed
		t.Shield(f)
		return
	}
	b.shield(f)
}

// Shield is Shield for the task of b, see there.
func (b Bound) Shield(f func()) {
	if b.b.shielded {
		f()
		return
	}
	b.b.shield(f)
}

// Park is the Park of a Switcher: it makes the switches, and it exits if the task was killed. What suspends on the Task does
// not call it. A Task that decorates this one does, and a scheduler that runs in the task.
func (b Bound) Park() {
	b.b.exitIfKilled()
	leave(b.b, false)
	b.b.exitIfKilled()
}

// Yield is the Yield of a Switcher.
func (b Bound) Yield() {
	leave(b.b, true)
}
