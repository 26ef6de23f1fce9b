package suspend

import (
	"context"
	"math/rand/v2"
	"slices"
)

// A Case is an Op as one of the cases of a Select, and its result if it was the one that was performed. It may be used
// again and again, by one Select at a time; the result stays referenced until the next, or until Set. What it waits for
// is begun anew by each Select: in the example, a second of silence ends the loop, and not a second altogether.
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
	prepared prepared[T]
	legs     []arm
	v        T
	err      error
	has      bool
}

// A Selectable is a *Case of any type.
type Selectable interface {
	arms() []arm
	settle(won arm) bool
}

// On returns op as a case.
func On[T any](op Op[T]) *Case[T] {
	c := new(Case[T])
	c.Set(op)
	return c
}

// Set makes c the case of another op; the zero Op disables it.
func (c *Case[T]) Set(op Op[T]) {
	clear(c.legs)
	*c = Case[T]{legs: c.legs[:0]}
	if op.event != nil {
		c.prepared = op.event.prepare()
		c.legs = c.prepared.arms(c.legs)
	}
}

// Result returns what the operation returned when the case was last performed. It panics if it never was.
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

func (c *Case[T]) arms() []arm {
	if c == nil {
		return nil
	}
	return c.legs
}

func (c *Case[T]) settle(won arm) (mine bool) {
	if c == nil || c.prepared == nil {
		return false
	}
	v, err, mine := c.prepared.result(won)
	if mine {
		c.v, c.err, c.has = v, err, true
	}
	return mine
}

// Select performs exactly one of cases and returns it: one that need not wait, chosen at random if there are several,
// or else the first that becomes possible, suspending the caller until then. The others have had no effect, and
// nothing is left of them. An error of the operation itself is the case's Result. If ctx is done first, or already,
// Select returns nil and the error of the cancellation. A case of the zero Op, and a nil one, is never performed.
//
// Two Selects that wait for each other meet; one does not meet itself. How: a Resumer commits one task that waits, so
// the one that commits it must not be waiting itself. Select locks the guards of all its cases, in an order that is
// the same for everybody, looks at each, and if none is possible, queues for all of them before it unlocks. It is
// what Go does in its own select, which locks the channels in the order of their addresses.
func Select(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return performOne(ctx, cases, rand.Uint32(), true)
}

// SelectOrdered is Select, except that of several cases that need not wait it performs the first.
func SelectOrdered(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return performOne(ctx, cases, 0, true)
}

// TrySelect is SelectOrdered without waiting: if none of the cases is possible, it returns nil and nil.
func TrySelect(ctx context.Context, cases ...Selectable) (won Selectable, err error) {
	return performOne(ctx, cases, 0, false)
}

func performOne(ctx context.Context, cases []Selectable, first uint32, wait bool) (Selectable, error) {
	if err := Err(ctx); err != nil {
		return nil, err
	}
	var buf [8]arm
	arms := buf[:0]
	for _, c := range cases {
		if c != nil {
			more := c.arms()
			if len(more) > 0 && slices.Contains(arms, more[0]) {
				panic("suspend: the same case twice")
			}
			arms = append(arms, more...)
		}
	}
	won, err := perform(ctx, arms, first, wait)
	if won == nil {
		return nil, err
	}
	for _, c := range cases {
		if c != nil && c.settle(won) {
			return c, nil
		}
	}
	panic("suspend: a case was changed during its Select")
}

// perform performs one of arms, and returns nil if ctx is done first, or if it is not to wait.
func perform(ctx context.Context, arms []arm, first uint32, wait bool) (won arm, err error) {
	var buf [8]*Guard
	guards := LockAll(guardsOf(arms, buf[:0]))
	if won = lookLocked(arms, first); won != nil || !wait {
		unlockAll(guards)
		return won, nil
	}
	waited := false
	b := current()
	if word, armed := b.armed(ctx, ctx.Done()); armed && len(guards) == len(arms) { // nothing foreign is to be called, see Wait
		enqueueLocked(arms, b, word)
		unlockAll(guards)
		waited = true
		for b.waits(word) {
			b.task.Park()
		}
		if b.word.Load() == with(word, cancelled) {
			err = cancellation(ctx)
		}
	} else {
		unlockAll(guards)
		_, err = Suspend(ctx, func(r Resumer[struct{}]) (struct{}, bool) {
			won = begin(arms, guards, first, r.slot.b, r.word)
			waited = won == nil
			return struct{}{}, !waited
		})
	}
	if waited {
		won = collect(arms)
	}
	return won, err
}

// begin performs one of arms that need not wait, or has all of them wait, and returns nil. guards are theirs. Should a
// level panic as it is begun, nothing is left waiting, and the panic goes on.
func begin(arms []arm, guards []*Guard, first uint32, b *binding, word uint64) (won arm) {
	guards = LockAll(guards)
	if won = lookLocked(arms, first); won != nil {
		unlockAll(guards)
		return won
	}
	enqueueLocked(arms, b, word)
	unlockAll(guards)
	begun := false
	defer func() {
		if !begun {
			for _, a := range arms {
				withdraw(a)
				a.abandon()
			}
		}
	}()
	// Under no lock, since it may call a context. One that is ready by now resumes the caller, unless another has been
	// quicker.
	for _, a := range arms {
		if a.guard() == nil {
			a.enqueue(b, word)
		}
	}
	begun = true
	return nil
}

// lookLocked performs the first of arms that need not wait, nil if there is none.
func lookLocked(arms []arm, first uint32) arm {
	n := uint32(len(arms))
	for i := range n {
		if a := arms[(first%n+i)%n]; a.try() {
			return a
		}
	}
	return nil
}

// enqueueLocked has all arms wait that have a guard. From the first one on, the caller may be resumed.
func enqueueLocked(arms []arm, b *binding, word uint64) {
	for _, a := range arms {
		if a.guard() != nil {
			a.enqueue(b, word)
		}
	}
}

// collect finds the arm that was resumed, if any, and takes the others off.
func collect(arms []arm) (won arm) {
	for _, a := range arms {
		if won == nil && a.won() {
			won = a
		} else {
			withdraw(a)
		}
	}
	return won
}

// withdraw takes a off, where it has been begun.
func withdraw(a arm) {
	if g := a.guard(); g != nil {
		g.Lock()
		defer g.Unlock()
	}
	a.remove()
}

func guardsOf(arms []arm, to []*Guard) []*Guard {
	for _, a := range arms {
		if g := a.guard(); g != nil {
			to = append(to, g)
		}
	}
	return to
}
