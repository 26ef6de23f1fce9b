package suspend

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
)

// A Select and its exits
//
// A Select locks the guards of all its cases, in the same order for all callers, and tries each case. If no case is possible, it
// queues for all cases before it unlocks the guards.
//
// The idea: the task waits in all queues at once, but all its Resumers change the same word. So the first Resume chooses the case, and
// each later one returns false, and its caller keeps the value.
//
// A leg is one elementary operation of a case, with the guard of its object. A level is a leg without a guard, such as a timeout:
// trying it consumes nothing, and it stays ready once it is ready. The word is the state of the task's wait (word.go), and a
// registration makes the end of ctx change it (context.go). A slot receives the value of a leg (slot.go). A Preparer is a Source that
// may have to be tried again (internal/again).
//
// Invariant: between step 7 and the CAS that ends the wait, each leg is in the queue of its object, and no leg has had an effect. Exactly
// one CAS wins: that of a Resume, of the end of the context, or of a Kill.
//
// These are the steps of a Select of channels in a task, up to a case that is performed:
//
//  1. Select calls ctx.Err, and ctx has not ended.
//  2. The legs are gathered: several for a Choose, none for a nil case or the zero Op. A Select without legs can end only with its
//     context or with a Kill.
//  3. Guards.Lock locks the guards in the same order for all callers, so that two Selects cannot wait for each other's guards.
//  4. lookLocked calls one Try after another. The first Try that returns true has performed its operation. Select then unlocks the
//     guards and continues with step 9.
//  5. Select has to wait, so it needs an open word and a registration with ctx. If the last wait of the task had the same context,
//     it has left both, and Select continues with step 7, and keeps the guards locked. Otherwise it unlocks them and calls arm,
//     which may call methods of ctx.
//  6. Select locks the guards and tries the legs again, since an object may have changed in between. If a Try returns true, Select
//     continues as in step 4.
//  7. enqueueLocked queues all legs, and Select unlocks the guards. The last look and the queueing are one critical section;
//     otherwise a send between them would find no receiver, and Select would wait although the channel is full. Each leg has its own
//     slot for a value.
//  8. The task parks until the word has changed. Then Select finds the leg that was resumed, and withdraws all other legs, one guard
//     after another. If a Resume meets such a leg earlier, it returns false, and its caller keeps the value.
//  9. The function performed moves the result into the case. Functions of Map run here, under no guard.
//
// These are the exits, by their steps, and what they leave behind. Before step 4, nothing was tried. Before step 7, no leg is queued.
//
//   - Step 1: if ctx has ended, Select returns nil and the cancellation error. If Err panics, the panic reaches the caller.
//   - Step 3: if a case is listed twice, Select unlocks the guards and panics.
//   - Step 4: if no Try returns true, TrySelect unlocks the guards and returns nil, nil. A Try must not panic, because the guards
//     would stay locked.
//   - Step 5: if ctx has ended by now, Select returns the cancellation error. If a method of ctx panics, or if the caller must not
//     suspend, Select panics. A task that was killed exits.
//   - Step 6: a Try that returns true wins even if ctx has ended since step 5: no Resumer of this wait exists that could lose a value.
//   - Step 7: the end of the context (see context.go) may have cancelled the word since step 5. Its Unpark then ends step 8 at once. A
//     Resume that finds the context ended cancels the wait itself.
//   - Step 8: if no leg was resumed, the wait was cancelled. All legs are withdrawn, and Select returns nil and the cancellation error, or
//     a killed task exits. If a method of ctx panics, the panic becomes the error. If Park panics or exits, all legs are withdrawn
//     and the panic continues, but a value that was delivered by then is lost.
//   - Step 9: if a function of Map panics, or if Set has changed the case during the Select, Select panics. The operation has taken
//     effect, but its result is lost.
//
// A Select with a level, without a task, with a Preparer, or while the census is on, takes another path: see performSlowly and performAgain.
//
// What is not proved:
//
//   - Sources are trusted. If a Try returns false but leaves its object open, a fast path can bypass the Select before step 7, and
//     the wake-up is lost. If a Remove does not serve the waiters behind it, they wait in vain after step 8. Programs of the model
//     checker look for both mistakes in the primitives of this module, but a new Source needs its own program.
//   - The model checker runs a Select together with only a few other tasks. For three Selects in a cycle it bounds the number of
//     preemptions. No program has a timer or a Done as a case. The tests cover these.
//   - Nothing bounds how long a Select waits, or how often other waiters are served first. In one look of Select, all legs that
//     need not wait have the same chance. A transaction that is stale each time is run again without limit.

// A Case is an Op that serves as one of the cases of a Select. It also retains the result of its last performance, until the next
// performance or Set. A Case may be used any number of times, but not by two Selects at the same time. Each Select starts its
// timers anew. The loop in this example ends after a second without a message:
//
//	msg, quit := suspend.CaseOf(inbox.RecvOp()), suspend.CaseOf(suspend.After(time.Second))
//	for {
//		switch won, err := suspend.Select(ctx, msg, quit); won {
//		case msg:
//			v, err := msg.Result()
//			…
//		case quit:
//			return nil
//		case nil:
//			return err // ctx has ended
//		}
//	}
type Case[T any] struct {
	legs   []leg
	first  [1]leg // the backing array for a single leg
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

// CaseOf returns a Case of op.
func CaseOf[T any](op Op[T]) *Case[T] {
	c := new(Case[T])
	c.legs = c.first[:0]
	c.Set(op)
	return c
}

// Set makes c a Case of another op. The zero Op disables c.
func (c *Case[T]) Set(op Op[T]) {
	clear(c.legs)
	*c = Case[T]{legs: c.legs[:0]}
	if op.performable != nil {
		c.legs, c.result = op.expand(nil, c.legs)
	}
}

// Result returns the result of the operation that the Case last performed. It panics if there is none.
func (c *Case[T]) Result() (T, error) {
	if !c.has {
		panic("suspend: Result of a case that was not performed")
	}
	return c.v, c.err
}

// Value is like Result, but does not return the error.
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

// Select performs exactly one of cases and returns it. If several cases need not wait, Select chooses one at random. If all cases
// have to wait, Select suspends the caller until the first of them becomes possible. The other cases have no effect and leave
// nothing behind. An error of the operation itself is in the Result of the case. If ctx ends first, or has already ended, Select
// returns nil and the cancellation error. A nil case and a case of the zero Op are never performed.
//
// Two Selects can be the two sides of one rendezvous, but a Select cannot be both. A Resume completes the operation of a waiting
// task, so the task that calls Resume must not be waiting itself. Select therefore locks the guards of all its cases, in the same
// order for all callers, and tries each case. If no case is possible, Select queues for all of them before it unlocks the guards.
// Go's own select does the same: it locks the channels in the order of their addresses.
func Select(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return perform(ctx, cases, atRandom)
}

// SelectOrdered is like Select, but if several cases need not wait, it performs the first of them.
func SelectOrdered(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return perform(ctx, cases, inOrder)
}

// TrySelect is like SelectOrdered, but does not wait. If no case is possible, TrySelect returns nil and nil.
func TrySelect(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return perform(ctx, cases, atOnce)
}

// A manner says in which order a Select tries its legs, and whether it waits.
type manner uint8

const (
	atRandom manner = iota
	inOrder
	atOnce // tries the legs in order and does not wait
)

// perform implements Select, SelectOrdered and TrySelect. It calls no method of ctx while it holds guards.
func perform(ctx context.Context, cases []Selectable, how manner) (Selectable, error) {
	ctx = lazily.Plain(ctx)
	if how == atOnce {
		Point()
	} else {
		Preemptible()
	}
	// Step 1.
	if ctx.Err() != nil || preempt.On() && looked(ctx) {
		return nil, cancellation(ctx)
	}
	var legsBuf [4]leg
	var guardsBuf [4]*Guard
	// Step 2.
	legs, prepares := gather(cases, legsBuf[:0])
	if prepares || ledger.On() { // recording would enlarge the frame of the fast path
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
	// Step 3.
	guards = guards.Lock()
	if len(guards) < len(legs) && twice(legs) { // a leg that is listed twice has the same guard twice
		guards.Unlock()
		panic(sameTwice)
	}
	// Step 4.
	won, err := look.lookLocked(legs), error(nil)
	if won == none && how != atOnce {
		if !look.shuffled {
			b = current()
		}
		if b == nil || levels {
			guards.Unlock()
			return performSlowly(ctx, cases, legs, guards, look)
		}
		// Step 5.
		began, armed := b.armed(ctx)
		if armed { // nearly all waits take this path, which saves a call
			// Step 7.
			enqueueLocked(legs, &b.waiter, began, b.last.done)
			guards.Unlock()
		} else {
			began, won, err = b.queueLocked(ctx, legs, guards, look)
		}
		if won == none && err == nil {
			// Step 8.
			if b.switcher == nil {
				b.park(began, func() { drop(legs) })
			}
			for b.word.pending(began) { // another frame here would cost time after each switch
				switchAway(b, false)
			}
			won = collect(legs)
			b.settle()
			if won == none {
				err = b.cancelled(ctx)
			}
		}
	} else {
		guards.Unlock()
	}
	// Step 9.
	return performed(cases, legs, won, err)
}

// queueLocked queues the task of b for legs, none of which is a level. The caller must hold guards, and queueLocked unlocks them
// before it returns. It calls arm while no guard is held, since arm may call methods of ctx. Then it tries the legs again before
// it queues them.
func (b *binding) queueLocked(ctx context.Context, legs []leg, guards Guards, look order) (began state, won int, err error) {
	guards.Unlock()
	began, armed := b.arm(ctx)
	if !armed {
		return began, none, cancellation(ctx)
	}
	// Step 6.
	guards = guards.Lock()
	if won = look.lookLocked(legs); won != none {
		guards.Unlock()
		return began, won, nil
	}
	enqueueLocked(legs, &b.waiter, began, b.last.done)
	guards.Unlock()
	return began, none, nil
}

// performSlowly waits in a Suspend, if there is no task, or if there are levels. The block of the Suspend calls enqueueAll for steps 6 and 7.
// This begins the levels after it has unlocked the guards, since levels call contexts and timers. If a level panics there, all legs are
// withdrawn, and a value that was delivered by then is lost. A killed task exits from Suspend, and a deferred call of drop withdraws the legs.
// The losing levels are stopped after step 9, so that the case has its result even if a context panics then.
func performSlowly(ctx context.Context, cases []Selectable, legs []leg, guards Guards, look order) (Selectable, error) {
	won, waited, err := suspendOn(ctx, legs, guards, look)
	if waited {
		won = collect(legs)
		defer stopOthers(legs, won)
	}
	return performed(cases, legs, won, err)
}

// performAgain takes over after step 2, for legs with a Preparer, and for all legs while the census is on, since recording would enlarge the frame
// of the fast path. It calls Prepare before each look, under no guard, and waits in a Suspend, too. The result again.Err means that the prepared
// state was stale, and that nothing has happened. performAgain then drops the prepared state of the other legs, calls ctx.Err, and prepares and
// looks again. If a Prepare panics, the Drop method of each Preparer is called, and the panic continues.
func performAgain(ctx context.Context, cases []Selectable, legs []leg, how manner) (Selectable, error) {
	if twice(legs) {
		panic(sameTwice)
	}
	pinned := pin(legs)
	defer func() { unpin(pinned) }()
	last := none
	defer func() { stopOthers(legs, last) }() // runs after the case has its result, because a context may panic here
	var guardsBuf [4]*Guard
	for {
		prepare(legs)
		var look order
		if how == atRandom && len(legs) > 1 {
			look = shuffled(current(), len(legs))
		}
		guards := guardsOf(legs, guardsBuf[:0]).Lock()
		won, err := look.lookLocked(legs), error(nil)
		guards.Unlock()
		if won == none && how != atOnce {
			waited := false
			if won, waited, err = suspendOn(ctx, legs, guards, look); waited {
				won = collect(legs)
			}
		}
		if !wantsAgain(legs, won) {
			last = won
			if won != none {
				unprepare(legs, won) // this must precede the functions of a Map
			}
			return performed(cases, legs, won, err)
		}
		stopOthers(legs, won)
		if err := Err(ctx); err != nil {
			return nil, err
		}
	}
}

const sameTwice = "suspend: Select with the same case twice"

// performed stores the result of the winning leg in its case, and returns the case, or err if no leg has won.
func performed(cases []Selectable, legs []leg, won int, err error) (Selectable, error) {
	if won == none {
		return nil, err
	}
	if preempt.On() {
		legs[won].took(0)
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

func guardsOf(legs []leg, guards Guards) Guards {
	for _, l := range legs {
		if l.guard != nil {
			guards = append(guards, l.guard)
		}
	}
	return guards
}

// suspendOn performs one of legs, or waits for them in a Suspend.
func suspendOn(ctx context.Context, legs []leg, guards Guards, look order) (won int, waited bool, err error) {
	won = none
	returned := false
	var b *waiter
	defer func() {
		if waited && !returned { // Park has panicked, or the task was killed
			drop(legs)
		}
		if b != nil {
			b.settle()
		}
	}()
	_, err = Suspend(ctx, func(r Resumer[struct{}]) (struct{}, bool) {
		b = r.slot.b
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

// enqueueAll performs one of legs and returns its index, or queues all of them and returns none. The caller must not hold the
// guards of the legs. If a level panics when its wait begins, enqueueAll withdraws all legs, and the panic continues.
func enqueueAll(legs []leg, guards Guards, look order, b *waiter, wait state, done <-chan struct{}) (won int) {
	guards = guards.Lock()
	if won = look.lookLocked(legs); won != none {
		guards.Unlock()
		return won
	}
	enqueueLocked(legs, b, wait, done)
	guards.Unlock()
	begun := false
	defer func() {
		if !begun {
			drop(legs)
		}
	}()
	// No guard is held, since enqueue may call a context. A level that is ready by now resumes the caller, unless another leg was
	// faster.
	for _, l := range legs {
		if l.guard == nil {
			l.enqueue(b, wait, done)
		}
	}
	begun = true
	return none
}

// drop withdraws legs whose wait was abandoned. It gives up their slots, because a resumer may still write to them.
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

// enqueueLocked queues all legs that have a guard. The caller must hold these guards. Once the first leg is queued, the caller may
// be resumed.
func enqueueLocked(legs []leg, b *waiter, wait state, done <-chan struct{}) {
	for _, l := range legs {
		if l.guard != nil {
			l.enqueue(b, wait, done)
		}
	}
}

// collect returns the index of the leg that was resumed, or none. It withdraws all other legs that have a guard.
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

// stopOthers stops the levels that have not won, and drops what the other Preparers have prepared. It may call a context.
func stopOthers(legs []leg, won int) {
	for i, l := range legs {
		switch {
		case i == won:
		case l.prepares:
			l.preparer().Drop()
		case l.guard == nil:
			l.remove()
		}
	}
}

// abandonAfter abandons l after it has called stop, which may panic.
func (l leg) abandonAfter(stop func()) {
	defer l.abandon()
	stop()
}

// withdraw removes l under its guard. l must not be a level.
func (l *leg) withdraw() {
	l.guard.Lock()
	l.remove()
	l.guard.Unlock()
}

// Do performs op and returns its result. It suspends the caller until op is possible. If ctx ends first, or has already ended, Do
// returns the cancellation error, and op has no effect.
func Do[T any](ctx context.Context, op Op[T]) (T, error) {
	c := CaseOf(op)
	if _, err := Select(ctx, c); err != nil {
		var zero T
		return zero, err
	}
	return c.Result()
}
