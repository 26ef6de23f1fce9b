package suspend

// Bind runs f with t bound to the calling goroutine: while f runs, a Suspend on this goroutine parks t. Other goroutines that f starts are
// not bound. Bind nests, and restores the earlier binding however f ends. Under Bind(nil, f) a Suspend panics; schedulers wrap it around
// hooks and callbacks that run on their own goroutine. A Task is a pointer, or otherwise comparable.
//
// Binding the bound Task again marks the beginning and the end of a task. Schedulers that use one goroutine and one Task for many tasks, one
// after another, do so around each. The registration with the last context is withdrawn at the end of f, and nothing is allocated.
func Bind(t Task, f func()) {
	if t == nil {
		rebind(&forbidden, f)
		return
	}
	b := current()
	if b == nil || b.task != t {
		rebind(newBinding(t), f)
		return
	}
	if !b.blocked { // a wait that has just begun needs it
		defer b.forget()
	}
	f()
}

// rebind binds b to the calling goroutine while f runs, and then restores the binding before.
func rebind(b *binding, f func()) {
	at, before, away := here()
	at.bind(b, before, away, f)
}

// bind is rebind after here.
func (p *place) bind(b, before *binding, away *level, f func()) {
	p.b = b
	defer p.restore(before, away)
	if b.task != nil {
		defer b.forget()
	}
	f()
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
// later Resume returns false. If a Kill and a Resume meet, exactly one wins. If the Resume wins, the wait returns, and the next wait
// is killed.
//
// The deferred functions of the task run, and they may wait, as in any goroutine that exits. A Kill ends one wait: it
// takes another Kill to end a wait in a deferred function. Kill reports false, and changes nothing, while a Kill of this task
// has not taken effect. Under a Shield it takes effect when that ends.
func (b Bound) Kill() bool { return b.b.kill() }

// Shielded reports whether the task is in a Shield: then a Kill changes nothing before the end of that.
func (b Bound) Shielded() bool { return b.b.shielded }

// Unshield lifts a Shield, for a scheduler that ends: nobody is left to end the wait under it. A Kill of the task takes effect at once then.
// Unshield reports whether there was a Shield.
func (b Bound) Unshield() bool { return b.b.lift() }

// ExitIfKilled ends the calling task if a Kill has not taken effect.
func (b Bound) ExitIfKilled() { b.b.exitIfKilled() }

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

// Shield is Shield for the task of b, see there.
func (b Bound) Shield(f func()) {
	if b.b.shielded {
		f()
		return
	}
	b.b.shield(f)
}

// A Ban is a reason why suspending is a mistake in some code. NewBan makes one, once for each reason.
type Ban struct{ binding binding }

// NewBan returns a Ban of this text: a Suspend under it panics with the text.
func NewBan(text string) *Ban { return &Ban{binding{slot: text}} }

// Enter puts the calling goroutine under the ban until Exit: a Suspend there panics, as under Bind(nil, f), but with the
// text of the ban. It nests as Bind does. If the caller is under this ban already, Enter reports false, and changes nothing.
func (b *Ban) Enter() (e Entered, ok bool) {
	at, before, away := here()
	if before == &b.binding || before != nil && before.via != nil && before.via.bound == &b.binding {
		return Entered{}, false
	}
	at.b = &b.binding
	return Entered{at, before, away}, true
}

// In reports whether the calling goroutine is under the ban.
func (b *Ban) In() bool { return current() == &b.binding }

// Exit ends what Enter began, on the same goroutine. A deferred call does so however the code in between ends.
func (b *Ban) Exit(e Entered) { e.place.restore(e.before, e.away) }
