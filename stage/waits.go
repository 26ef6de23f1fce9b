package stage

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
)

// The type waits has the handlers of a stage that wait for another task, or for room.
//
// Invariant: len(asking) <= blocked <= slots.taken. A wait may be unknown, and a handler keeps its slot while it waits.
// Invariant: lentLater <= lent. A handler lends its slot to one task, so at most min(lent-lentLater, blocked) slots are lent to tasks that
// can begin. The number lent may be larger than the number of handlers, after Dos were cancelled.
// Debt: see asking.
type waits struct {
	blocked   int       // tasks in progress that wait for another task, or for room
	asking    []*asking // the known waits of tasks in progress, for a Do or for room
	seen      uint64    // the number of the last search that visited the stage
	lent      int       // tasks for which a handler of this stage waits, or has waited, directly or through a chain of Dos
	lentLater int       // lent tasks that are delayed

	blocking context.Context // the context of the workers that wait for room in the next stage with submitted tasks; made when it is needed
	unblock  func(cause error)
}

// addWait adds a wait. The argument a is nil if the wait is unknown.
func (w *waits) addWait(a *asking) {
	w.blocked++
	if a != nil {
		a.index = len(w.asking)
		w.asking = append(w.asking, a)
	}
}

func (w *waits) dropWait(a *asking) {
	w.blocked--
	if a != nil {
		last := len(w.asking) - 1
		w.asking[a.index] = w.asking[last]
		w.asking[a.index].index = a.index
		w.asking[last] = nil
		w.asking = w.asking[:last]
	}
}

// An asking is a wait in a handler, for the task of its Do or for room. During the wait, the asking is in the list of the handler's
// stage.
//
// A handler keeps its slot while it waits, so handlers may wait for each other's slots without end. The handlers then form a cycle:
// they hold every slot of a stage, and wait for a slot of the next stage of the cycle. Such waits follow the OR model of Chandy,
// Misra and Haas, because a queued task can begin as soon as any slot of its stage is free. There is a deadlock if no running
// handler can be reached by following the waits.
//
// Invariant: each asking can go on, or is a suspect of a pool, or a suspect can be reached by following the waits.
// Debt: code must add a suspect when a wait begins (block), when the task enters a queue (pass, tryAgain, letIn), and when a stage
// loses a handler or a slot that could end a wait (lose). The call of unlockAndPay that follows must examine the suspect; otherwise a
// cycle could wait without end.
type asking struct {
	from  *core // the stage of the handler
	task  *task
	at    atomicx.Pointer[core] // the stage that the task has entered last, or wants to enter
	in    atomicx.Pointer[core] // the stage in which the task waits, or nil; written under the guard of that stage
	ctx   context.Context       // the context of a wait for room; nil for a Do
	index int                   // the index in from.asking; protected by the guard of that stage
	fails bool                  // the wait was in a cycle, and has been ended; protected like the index
	stop  func(cause error)     // ends a wait for room; nil for a Do
}

// A suspect is a wait that the next call of unlockAndPay examines for a cycle. Suspects form a list.
type suspect struct {
	a    *asking
	next *suspect
}

// moved records that the task of a is in the queue of c, or waits for room in c.
func (a *asking) moved(c *core) {
	a.at.Store(c)
	a.in.Store(c)
}

// suspect makes the next call of unlockAndPay examine a, unless a is nil.
func (p *Pool) suspect(a *asking) {
	if a != nil {
		p.suspects = &suspect{a, p.suspects}
	}
}

// lose adds a suspect if every handler of c waits and no slot is free. Call lose after each change that may have this effect: a
// handler or a hold has ended, the width has shrunk, or a task was given up.
func (c *core) lose() {
	if n := len(c.asking); n > 0 && n == c.taken && c.free() <= 0 {
		c.pool.suspect(c.asking[0])
	}
}

// block gives back the permit of a handler of c that is going to wait; otherwise waiting handlers could hold all permits. The
// argument a is the wait, or nil if the wait is unknown. goOn takes the permit again.
func (c *core) block(a *asking) {
	c.pool.guard.Lock()
	c.addWait(a)
	c.pool.suspect(a)
	c.pool.running--
	c.pool.unlockAndPay()
}

func (c *core) goOn(a *asking) {
	c.pool.guard.Lock()
	c.dropWait(a)
	c.pool.running++
	c.pool.guard.Unlock()
}

// waits reports whether a is in a.from.asking, that is, whether its handler still waits.
func (a *asking) waits() bool {
	return a.index < len(a.from.asking) && a.from.asking[a.index] == a
}
