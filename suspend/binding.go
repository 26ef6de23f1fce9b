package suspend

import (
	"context"
	"runtime"

	"github.com/braidgo/braid/internal/atomicx"
)

// A waiter can be suspended: a task, a goroutine without one, or a continuation.
type waiter struct {
	task    Task // never changes; nil: suspending is forbidden here
	word    word
	watched atomicx.Pointer[registration] // written by the waiter, before it opens the word to it
}

// A binding ties a goroutine to the Task that parks it, for the extent of one Bind. All of it but the waiter belongs to the
// task.
type binding struct {
	waiter
	switcher Switcher // the task, if it is one
	slot     any      // a *slot[T], of the T that was waited for first; without a task: the text of the panic
	slots    *list    // and those for others
	via      *pulled  // not nil: this stands for whatever is bound to the caller of next
	blocked  bool     // block is running
	large    bool     // the slots are more than are kept
	killed   bool     // by a Kill that has not taken effect; written by the scheduler while the task does not run
	shielded bool     // no Kill takes effect, see Shield; like killed
	coins    uint32   // random bits that are left, see coin
	last     wait
	random   func() uint64 // of the task's scheduler, once it was drawn from
	// 128 bytes: it begins at a cache line then
}

// A wait is left behind by the last suspension of a binding: with this context, a word of this status is open.
type wait struct {
	ctx    context.Context // nil if its Done may be another some day, or its type cannot be compared
	done   <-chan struct{} // nil also if it was not asked for
	status state
}

func newBinding(t Task) *binding {
	b := &binding{waiter: waiter{task: t}}
	b.switcher, _ = t.(Switcher)
	return b
}

// check panics where suspending is a mistake.
func (b *binding) check() {
	if b.blocked {
		panic("suspend: Suspend inside block")
	}
	if b.task == nil {
		panic(b.slot)
	}
}

// armed reports whether a wait with ctx can begin with the word as it is, and returns its state. It does not call ctx.
func (b *binding) armed(ctx context.Context) (s state, ok bool) {
	if b == nil || b.blocked {
		return 0, false
	}
	s = b.word.load()
	return s, s.status() == b.last.status && ctx == b.last.ctx
}

// arm opens the word to a wait with ctx, unless that is done by now.
func (b *binding) arm(ctx context.Context) (s state, ok bool) {
	b.check()
	e := endOf(ctx)                // which is foreign code
	b.last = wait{status: unarmed} // should the context panic, or be done
	w := wait{done: e.done, status: open}
	if lasting(ctx) {
		w.ctx = ctx
	}
	fresh := false
	if e != (end{}) {
		if e.over(ctx) {
			return 0, false
		}
		if w.status = openLazily; isLazy(ctx) {
			b.unwatch() // one context is kept
		} else {
			w.status, fresh = openToContext, b.watch(ctx, e)
		}
	}
	s = b.word.load()
	if fresh || s.status() != w.status {
		s = b.word.open(w.status)
		// From here on the registration cancels this wait. If it was notified before, it found nothing to cancel, and is
		// not notified again: so look once more.
		if e.over(ctx) {
			return 0, false
		}
		if !b.word.load().sameWait(s) { // Err has waited, which it is not to do
			return b.arm(ctx)
		}
	}
	b.last = w
	b.exitIfKilled()
	return s, true
}

// leave makes the switches of a Switcher whose task is parked, or ready. Without a b it is Yield. After a switch the
// processor predicts no return correctly, 10 ns each. So Wait has this loop in its own frame, and this one serves all others.
func leave(b *binding, ready bool) {
	if b == nil {
		if b = current(); b == nil || b.switcher == nil {
			b.giveWay()
			return
		}
	}
	var next func() (struct{}, bool)
	var yield func(struct{}) bool
	if ready {
		next, yield = b.switcher.LeaveReady()
	} else {
		next, yield = b.switcher.Leave()
	}
	for next != nil {
		next()
		next, yield = b.switcher.Back()
	}
	if yield != nil {
		yield(struct{}{})
	}
	if ready {
		b.exitIfKilled()
	}
}

// giveWay is Yield without a Switcher.
func (b *binding) giveWay() {
	if b != nil {
		if t, ok := b.task.(interface{ Yield() }); ok {
			t.Yield()
			return
		}
	}
	runtime.Gosched()
}

// park parks a Task that is no Switcher until the wait that began with s has ended. If its Park panics or exits, undo withdraws the
// waiter.
func (b *binding) park(s state, undo func()) {
	ended := false
	defer func() {
		if !ended {
			b.word.abandon(s)
			b.last, b.slot, b.slots = wait{}, nil, nil // a value may be in a slot
			undo()
		}
	}()
	for b.word.pending(s) {
		b.task.Park()
	}
	ended = true
}

// cancelled returns the error of a wait with ctx that was cancelled, by ctx or else by Kill.
func (b *binding) cancelled(ctx context.Context) error {
	b.exitIfKilled()
	return cancellation(ctx)
}

// forget ends a task: it withdraws what the task has left with its last context.
func (b *binding) forget() {
	if b.last.status != unarmed || b.coins != 0 || b.random != nil || b.killed {
		b.last, b.random, b.coins, b.killed = wait{status: unarmed}, nil, 0, false // the next task may be on another scheduler
	}
	b.shrink()
	if b.watched.Load() != nil {
		b.unwatch()
	}
}

// kill leaves the mark, and ends the wait as a context that is done would. Between two waits the word is open as well. Then
// the mark, and a status that no word has, send the next wait to arm. Under a Shield there is only the mark.
func (b *binding) kill() bool {
	if b.killed {
		return false
	}
	b.killed = true
	if !b.shielded {
		b.endWait()
	}
	return true
}

func (b *binding) endWait() {
	b.last = wait{status: unarmed}
	if b.word.cancelAny() {
		b.task.Unpark()
	} // or a Resume, or a context, has come first, and unparks the task
}

// shield is Shield. After a panic of f, a Kill ends the next wait.
func (b *binding) shield(f func()) {
	b.shielded = true
	defer func() {
		if b.shielded = false; b.killed {
			b.last = wait{status: unarmed}
		}
	}()
	f()
	b.shielded = false
	b.exitIfKilled()
}

// lift lifts a Shield. The Kill that waits for its end takes effect.
func (b *binding) lift() bool {
	if !b.shielded {
		return false
	}
	b.shielded = false
	if b.killed {
		b.endWait()
	}
	return true
}

// exitIfKilled is called where nothing of the task is queued any more.
func (b *binding) exitIfKilled() {
	if b.killed && !b.shielded {
		b.killed = false
		runtime.Goexit()
	}
}
