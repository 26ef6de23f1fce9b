package suspend

// Bind calls f with t bound to the calling goroutine, so that a Suspend in f parks t. Other goroutines that f starts are not
// bound. Calls of Bind nest: the earlier binding is restored, however f ends. Under Bind(nil, f) a Suspend panics; a scheduler
// calls hooks and callbacks in this way if they run on its own goroutine. t must be comparable, for example a pointer.
//
// If t is already bound, Bind runs f as a new task with the same Task. A scheduler that uses one goroutine and one Task for many
// tasks calls Bind around each task. Such a call allocates nothing. When f ends, Bind withdraws the task's registration with its
// last context.
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
	if b.doing != inBlock { // while a block runs, the wait that is beginning needs the registration
		defer b.reset()
	}
	f()
}

// rebind calls f with b bound to the calling goroutine. Then it restores the earlier binding.
func rebind(b *binding, f func()) {
	at, before, away := here()
	at.bind(b, before, away, f)
}

// bind implements rebind. p, before and away are the results of here().
func (p *place) bind(b, before *binding, away *level, f func()) {
	p.b = b
	defer p.restore(before, away)
	if b.task != nil {
		b.takeKill(before)
		defer b.giveKill(before)
	}
	f()
}

// Enter binds t to the calling goroutine until Exit is called there. It nests as Bind does. It leaves no frame on the stack, so
// that a small coroutine fits into its first stack of 2 KB.
func Enter(t Task) (Bound, Entered) {
	p, before, away := here()
	p.b = newBinding(t)
	return Bound{p.b, p}, Entered{p, before, away}
}

// Entered holds the earlier binding, which Exit restores.
type Entered struct {
	place  *place
	before *binding
	away   *level
}

// Exit ends the binding that Enter began.
func (e Entered) Exit() {
	defer e.place.restore(e.before, e.away)
	e.place.b.reset()
}

// Exit is Entered.Exit for a goroutine that had no binding before Enter. A coroutine that calls it need not keep an Entered on its stack.
func (b Bound) Exit() { Entered{b.place, nil, b.place.away()}.Exit() }

// A Bound is a Task that Enter has bound. It serves one task after another. Only the scheduler may call its methods, either on the
// task's goroutine or while the task is not running and cannot start to run.
type Bound struct {
	b     *binding
	place *place
}

// top returns the binding whose waits the task performs now: that of the Task that Bind has bound last, which may decorate the
// Switcher, or else b's own. A Bind in the body of a Pull counts while the task is in next or stop. A Kill and a Shield belong to this
// binding, so that a Kill competes with the Resume of its wait. A Pull that is called under Bind(nil, f) or under a Ban is not found, and a
// wait under a Bind in its body cannot be killed.
func (b Bound) top() *binding {
	top := b.b
	if t := b.place.b; t != nil && t.task != nil {
		top = t
	}
	if in := top.via.top(); in != nil {
		return in
	}
	return top
}

// TaskEnded withdraws the task's registration with its last context, and drops a Kill that has not taken effect. A scheduler calls
// TaskEnded at the end of each task.
func (b Bound) TaskEnded() { b.b.reset() }

// Kill ends the task by runtime.Goexit, in its current wait or else in its next wait. A Suspend, Wait, Select or Yield that is
// killed does not return. It first does what a cancelled wait does: Wait and Select remove their nodes, and every later Resume
// returns false. If a Kill and a Resume meet, exactly one wins. If the Resume wins, the wait returns, and the next wait is killed.
// All this is true of a wait under a Task that decorates the Switcher, too.
//
// The task's deferred functions run, and they may wait, as in any goroutine that exits. A Kill ends only one wait; to end a wait in
// a deferred function, call Kill again. While a Kill of this task has not taken effect, a second Kill returns false and changes
// nothing. A Kill inside a Shield takes effect when the Shield ends.
func (b Bound) Kill() bool { return b.top().kill() }

// Shielded reports whether the task is in a Shield, which delays a Kill.
func (b Bound) Shielded() bool { return b.top().shielded() }

// Unshield ends the task's Shield early. A scheduler that ends calls Unshield if nothing will resume the task's wait. If the task
// was killed before, the Kill takes effect at once. Unshield reports whether there was a Shield.
func (b Bound) Unshield() bool { return b.top().lift() }

// ExitIfKilled ends the calling task if a Kill has not taken effect yet. Inside a Shield it does nothing.
func (b Bound) ExitIfKilled() { b.top().exitIfKilled() }

// Park is the Park method of a Switcher. It switches away from the task, and exits if the task was killed, unless it is called for
// a wait, which ends itself. The functions that suspend do not call this method. A Task that decorates the Switcher calls it, and so does
// a scheduler that runs in the task.
func (b Bound) Park() {
	b.exitUnlessInWait()
	switchAway(b.b, false)
	b.exitUnlessInWait()
}

// exitUnlessInWait ends the calling task if it was killed. A wait of a decorator that calls Park was cancelled by the Kill, or it was
// resumed and has a result: after this call it sees which.
func (b Bound) exitUnlessInWait() {
	if t := b.top(); t.doing != inPark {
		t.exitIfKilled()
	}
}

// Yield is the Yield method of a Switcher.
func (b Bound) Yield() {
	switchAway(b.b, true)
	b.top().exitIfKilled()
}

// A Ban forbids suspending in some code, for a stated reason. A program calls NewBan once for each reason.
type Ban struct{ binding binding }

// NewBan returns a Ban. A Suspend under the Ban panics with the given text.
func NewBan(text string) *Ban { return &Ban{binding{slot: text}} }

// Enter puts the calling goroutine under the ban until Exit is called. A Suspend there panics as under Bind(nil, f), but with the
// text of the ban. Bans nest as calls of Bind do. If the caller is already under this ban, Enter returns false and changes nothing.
func (b *Ban) Enter() (e Entered, ok bool) {
	at, before, away := here()
	if before.lender() == &b.binding {
		return Entered{}, false
	}
	at.b = &b.binding
	return Entered{at, before, away}, true
}

// In reports whether the calling goroutine is under the ban.
func (b *Ban) In() bool { return current() == &b.binding }

// Exit ends the ban that Enter began. It must be called on the same goroutine, and usually in a defer statement.
func (b *Ban) Exit(e Entered) { e.place.restore(e.before, e.away) }
