package suspend

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/ledger"
)

// A Select with all its exits
//
// Step by step, a Select of channels in a task. Each step names the ways out that it has, and what they leave behind.
//
//  1. Select calls ctx.Err. If ctx is done, Select returns nil and the cancellation error. If Err panics, the panic
//     reaches the caller. In both exits nothing was looked at, locked or queued.
//  2. gather lists the legs: several for a Choose, none for a nil case or the zero Op. A Select without legs can end
//     only by its context or a Kill.
//  3. LockAll locks the guards, in the same order for all callers, so that two Selects cannot wait for each other's
//     guards. If a case is listed twice, Select unlocks and panics, before any Try.
//  4. lookLocked calls one Try after another. The first true decides: the operation has taken effect. Select unlocks
//     and goes to step 9. If there is none, TrySelect unlocks and returns nil, nil. A Try must not panic: the guards
//     would stay locked.
//  5. Select has to wait. If the last wait of the task was with the same context, the word is open and the registration
//     in place, and Select goes to step 7 with the guards still locked. Otherwise it unlocks and arms the task, which
//     may call ctx. It returns the cancellation error if ctx is done by now. It panics if ctx does, or if suspending is
//     forbidden here. A task that was killed exits. No leg was queued in any of these exits.
//  6. Select locks and looks again, since an object may have changed while the guards were free. If a Try says true,
//     Select goes on as in step 4. The word stays open, but no Resumer of this wait exists.
//  7. enqueueLocked queues all legs and unlocks. The last look and the queueing are one critical section; otherwise a
//     send between them would find no receiver, and Select would sleep beside a full channel. The legs share the word.
//     Each has its own slot. From here on Resumes, the end of the context (registration.Ended, context.go) and a Kill
//     compete for the word, and one CAS wins. A Resume that finds the context done cancels the wait itself. A Resume
//     that does not win returns false, and its value is still the sender's.
//  8. The task parks until the word has moved. Then it calls collect, which looks for the leg that was resumed, and withdraws
//     all other legs, one guard after another. A Resume that meets such a leg before returns false. If no leg was resumed, the
//     wait was cancelled: Select returns the cancellation error, or a killed task exits. A panic of ctx becomes the
//     error. If Park panics or exits, drop withdraws all legs and the panic goes on, but a value that was delivered by
//     then is lost.
//  9. performed moves the result into the case. Functions of Map run here, under no guard. If one panics, or if Set has
//     changed the case during the Select, Select panics: the operation has taken effect, and its result is lost.
//
// Three kinds of Select take another way after step 4:
//
//   - With a level, or without a task, the wait is a Suspend, and its block is enqueueAll. It does steps 6 and 7, and
//     begins the levels after the guards are unlocked, since they call contexts and timers. If a level panics there,
//     drop withdraws all legs, and a value that was delivered by then is lost. A killed task exits from Suspend, and a
//     deferred drop runs. The levels that lost are stopped after step 9, so that the case has its result even if a stop
//     panics.
//   - With a Preparer, performAgain runs its Prepare before each look, under no guard, and waits in a Suspend too. A
//     result again.Err means that the run was stale, and nothing has happened: Select drops what other legs have
//     prepared, calls ctx.Err, and prepares and looks again. If a Prepare panics, each Preparer gets its Drop, and the
//     panic goes on.
//   - While the census is on, each Select goes through performAgain, since the fast way has no room for records.
//
// What is not proved:
//
//   - Sources are trusted. If Try says false and leaves its object open, a fast path can pass by the Select before step
//     7, and the wake-up is lost. If Remove does not serve the waiters behind it, these wait in vain after step 8.
//     Programs of the model checker look for both in primitives of this module, but a new Source needs a program too.
//   - The model checker runs a Select beside a few other tasks. Three Selects in a circle are searched with a bound on
//     preemptions. No program has a timer or a Done as a case: these are left to the tests.
//   - Nothing bounds how long a Select waits, or how often other waiters are served first. In one look of Select all
//     legs that need not wait have the same chance. A transaction that is stale each time is run again without limit.

// A Case is an Op as one of the cases of a Select, with its result if it was performed. It may be used again and again, but not by
// two Selects at once. The result stays referenced until the next Select, or until Set. Each Select begins its waits anew: in the example, a
// second of silence ends the loop, and not a second altogether.
//
//	msg, quit := suspend.On(inbox.RecvOp()), suspend.On(suspend.After(time.Second))
//	for {
//		switch won, err := suspend.Select(ctx, msg, quit); won {
//		case msg:
//			v, err := msg.Result()
//			…
//		case quit:
//			return nil
//		case nil:
//			return err // ctx is done
//		}
//	}
type Case[T any] struct {
	legs   []leg
	first  [1]leg // where the first is listed
	result result[T]
	v      T
	err    error
	has    bool
}

// A Selectable is a *Case of any type.
type Selectable interface {
	parts() []leg
	keepResult() (won bool)
}

// On returns op as a case.
func On[T any](op Op[T]) *Case[T] {
	c := new(Case[T])
	c.legs = c.first[:0]
	c.Set(op)
	return c
}

// Set makes c the case of another op; the zero Op disables it.
func (c *Case[T]) Set(op Op[T]) {
	clear(c.legs)
	*c = Case[T]{legs: c.legs[:0]}
	if op.performable != nil {
		c.legs, c.result = op.begin(nil, c.legs)
	}
}

// Result returns the results of the operation when the case was last performed. It panics if it never was.
func (c *Case[T]) Result() (T, error) {
	if !c.has {
		panic("suspend: Result of a case that was not performed")
	}
	return c.v, c.err
}

// Value is Result without the error.
func (c *Case[T]) Value() T {
	v, _ := c.Result()
	return v
}

func (c *Case[T]) parts() []leg {
	if c == nil {
		return nil
	}
	return c.legs
}

func (c *Case[T]) keepResult() (won bool) {
	if c.result != nil {
		if v, err, ok := c.result.result(); ok {
			c.v, c.err, c.has, won = v, err, true, true
		}
	}
	return won
}

// Select performs exactly one of cases and returns it: a case that need not wait, chosen at random if there are several,
// or else the first that becomes possible, suspending the caller until then. The other cases have had no effect, and
// nothing is left of them. An error of the operation itself is the case's Result. If ctx is done first, or already,
// Select returns nil and the error of the cancellation. A case of the zero Op, and a nil one, is never performed.
//
// Two Selects that wait for each other meet; one does not meet itself. How: a Resumer commits a task that waits, so
// the task that calls Resume must not be waiting itself. Select locks the guards of all its cases, in an order that is
// the same for everybody, looks at each, and if none is possible, queues for all of them before it unlocks. It is
// what Go does in its own select, which locks the channels in the order of their addresses.
func Select(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return perform(ctx, cases, atRandom)
}

// SelectOrdered is Select, but of several cases that need not wait it performs the first.
func SelectOrdered(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return perform(ctx, cases, inOrder)
}

// TrySelect is SelectOrdered without waiting: if none of the cases is possible, it returns nil and nil.
func TrySelect(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return perform(ctx, cases, atOnce)
}

// A manner is the order of looking, and whether to wait.
type manner uint8

const (
	atRandom manner = iota
	inOrder
	atOnce // looks in order and does not wait
)

// perform is all three. While guards are held it calls no method of ctx.
func perform(ctx context.Context, cases []Selectable, how manner) (Selectable, error) {
	if l, ok := ctx.(*lazyPermit); ok {
		ctx = l.Context
	}
	if how == atOnce {
		Point()
	} else {
		Preemptible()
	}
	if ctx.Err() != nil {
		return nil, cancellation(ctx)
	}
	var legsBuf [4]leg
	var guardsBuf [4]*Guard
	legs, prepares := gather(cases, legsBuf[:0])
	if prepares || ledger.On() { // the fast way has no room for records
		return performAgain(ctx, cases, legs, how)
	}
	guards := guardsOf(legs, guardsBuf[:0])
	levels := len(guards) < len(legs)
	var b *binding
	var look order
	if how == atRandom && len(legs) > 1 {
		b = current()
		look = shuffled(b, len(legs))
	}
	guards = LockAll(guards)
	if len(guards) < len(legs) && twice(legs) { // levels, or two legs on one object; or else they are different legs
		UnlockAll(guards)
		panic(sameTwice)
	}
	won, err := look.lookLocked(legs), error(nil)
	if won == none && how != atOnce {
		if !look.shuffled {
			b = current()
		}
		if b == nil || levels {
			UnlockAll(guards)
			return performSlowly(ctx, cases, legs, guards, look)
		}
		began, armed := b.armed(ctx)
		if armed { // saves a call in nearly all waits
			enqueueLocked(legs, &b.waiter, began, b.last.done)
			UnlockAll(guards)
		} else {
			began, won, err = b.queueLocked(ctx, legs, guards, look)
		}
		if won == none && err == nil {
			if b.switcher == nil {
				b.park(began, func() { drop(legs) })
			}
			for b.word.pending(began) { // leave is called in this frame, see there
				leave(b, false)
			}
			if won = collect(legs); won == none {
				err = b.cancelled(ctx)
			}
		}
	} else {
		UnlockAll(guards)
	}
	return performed(cases, legs, won, err)
}

// queueLocked queues the task of b for legs, none of which is a level. It arms the task first, and unlocks the guards for it, since arm may
// call ctx. It does not queue if a leg is possible by then, or ctx is done.
func (b *binding) queueLocked(ctx context.Context, legs []leg, guards []*Guard, look order) (began state, won int, err error) {
	UnlockAll(guards)
	began, armed := b.arm(ctx)
	if !armed {
		return began, none, cancellation(ctx)
	}
	guards = LockAll(guards)
	if won = look.lookLocked(legs); won != none {
		UnlockAll(guards)
		return began, won, nil
	}
	enqueueLocked(legs, &b.waiter, began, b.last.done)
	UnlockAll(guards)
	return began, none, nil
}

// performSlowly waits where no task is bound, and for levels. It stops the levels after the case has its
// result, since a context may panic.
func performSlowly(ctx context.Context, cases []Selectable, legs []leg, guards []*Guard, look order) (Selectable, error) {
	won, waited, err := suspendOn(ctx, legs, guards, look)
	if waited {
		won = collect(legs)
		defer stopOthers(legs, won)
	}
	return performed(cases, legs, won, err)
}

// performAgain is perform where some of legs are prepared, and while waits are recorded. It begins anew as long as a leg
// requests another look.
func performAgain(ctx context.Context, cases []Selectable, legs []leg, how manner) (Selectable, error) {
	if twice(legs) {
		panic(sameTwice)
	}
	pinned := pin(legs)
	defer func() { unpin(pinned) }()
	last := none
	defer func() { stopOthers(legs, last) }() // after the case has its result: a context may panic
	var guardsBuf [4]*Guard
	for {
		prepare(legs)
		var look order
		if how == atRandom && len(legs) > 1 {
			look = shuffled(current(), len(legs))
		}
		guards := LockAll(guardsOf(legs, guardsBuf[:0]))
		won, err := look.lookLocked(legs), error(nil)
		UnlockAll(guards)
		if won == none && how != atOnce {
			waited := false
			if won, waited, err = suspendOn(ctx, legs, guards, look); waited {
				won = collect(legs)
			}
		}
		if !wantsAgain(legs, won) {
			last = won
			if won != none && ledger.On() {
				legs[won].took(0)
			}
			if won != none {
				unprepare(legs, won) // before the functions of a Map are called
			}
			return performed(cases, legs, won, err)
		}
		stopOthers(legs, won)
		if err := Err(ctx); err != nil {
			return nil, err
		}
	}
}

const sameTwice = "suspend: the same case twice"

// performed returns the case whose leg has won, with its result.
func performed(cases []Selectable, legs []leg, won int, err error) (Selectable, error) {
	if won == none {
		return nil, err
	}
	c := cases[legs[won].of]
	if c == nil || !c.keepResult() {
		panic("suspend: a case was changed during its Select")
	}
	return c, nil
}

func gather(cases []Selectable, legs []leg) (_ []leg, prepares bool) {
	for i, c := range cases {
		if c != nil {
			for _, l := range c.parts() {
				l.of = int32(i)
				prepares = prepares || l.prepares
				legs = append(legs, l)
			}
		}
	}
	return legs, prepares
}

func guardsOf(legs []leg, guards []*Guard) []*Guard {
	for _, l := range legs {
		if l.guard != nil {
			guards = append(guards, l.guard)
		}
	}
	return guards
}

// suspendOn suspends goroutines without a task, and waits that have levels.
func suspendOn(ctx context.Context, legs []leg, guards []*Guard, look order) (won int, waited bool, err error) {
	won = none
	returned := false
	defer func() {
		if waited && !returned { // Park has panicked, or the task was killed
			drop(legs)
		}
	}()
	_, err = Suspend(ctx, func(r Resumer[struct{}]) (struct{}, bool) {
		won = enqueueAll(legs, guards, look, r.slot.b, r.wait, r.done)
		if waited = won == none; waited && ledger.On() {
			recordSelect(current(), legs, r.slot.b, r.wait, r.done != nil)
		}
		return struct{}{}, !waited
	})
	returned = true
	return won, waited, err
}

func twice(legs []leg) bool {
	for i, l := range legs {
		if slices.ContainsFunc(legs[:i], func(x leg) bool { return x.does == l.does }) {
			return true
		}
	}
	return false
}

// enqueueAll performs one of legs that need not wait, or makes all of them wait, and returns none. guards are theirs. If a level panics when
// it begins, nothing is left waiting, and the panic goes on.
func enqueueAll(legs []leg, guards []*Guard, look order, b *waiter, wait state, done <-chan struct{}) (won int) {
	guards = LockAll(guards)
	if won = look.lookLocked(legs); won != none {
		UnlockAll(guards)
		return won
	}
	enqueueLocked(legs, b, wait, done)
	UnlockAll(guards)
	begun := false
	defer func() {
		if !begun {
			drop(legs)
		}
	}()
	// No lock is held, since enqueue may call a context. A level that is ready by now resumes the caller, unless another leg
	// was quicker.
	for _, l := range legs {
		if l.guard == nil {
			l.enqueue(b, wait, done)
		}
	}
	begun = true
	return none
}

// drop takes legs off that were begun, and leaves them as new: nobody waits any more, and somebody may still resume them.
func drop(legs []leg) {
	for i := range legs {
		if l := &legs[i]; l.guard != nil {
			l.withdraw()
			l.abandon()
		}
	}
	for _, l := range legs {
		if l.guard == nil {
			l.abandonAfter(l.remove)
		}
	}
}

// enqueueLocked queues all legs that have a guard. From the first one on, the caller may be resumed.
func enqueueLocked(legs []leg, b *waiter, wait state, done <-chan struct{}) {
	for _, l := range legs {
		if l.guard != nil {
			l.enqueue(b, wait, done)
		}
	}
}

// collect finds the leg that was resumed, if any, and removes all other legs that have a guard.
func collect(legs []leg) (won int) {
	won = none
	for i := range legs {
		if l := &legs[i]; won == none && l.won() {
			won = i
		} else if l.guard != nil {
			l.withdraw()
		}
	}
	return won
}

// stopOthers stops the levels that have not won, and drops what the Preparers have prepared. It may call a context.
func stopOthers(legs []leg, won int) {
	for i, l := range legs {
		switch {
		case i == won:
		case l.prepares:
			l.does.(preparing).Drop()
		case l.guard == nil:
			l.remove()
		}
	}
}

// abandonAfter abandons l after stop, which may panic.
func (l leg) abandonAfter(stop func()) {
	defer l.abandon()
	stop()
}

// withdraw takes l off, which has a guard.
func (l *leg) withdraw() {
	l.guard.Lock()
	l.remove()
	l.guard.Unlock()
}

// Do performs op and returns its result, suspending the caller until it is possible. If ctx is done first, or already,
// it returns the error of the cancellation, and op has had no effect.
func Do[T any](ctx context.Context, op Op[T]) (T, error) {
	c := On(op)
	if _, err := Select(ctx, c); err != nil {
		var zero T
		return zero, err
	}
	return c.Result()
}
