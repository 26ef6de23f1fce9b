package explore

import (
	"math/bits"
	"slices"
	"unsafe"
)

const maxProcs = 24

// procs is a set of tasks, or of contexts.
type procs uint32

func one(id int) procs          { return 1 << id }
func (s procs) has(id int) bool { return s>>id&1 != 0 }
func (s procs) first() int      { return bits.TrailingZeros32(uint32(s)) }
func (s procs) len() int        { return bits.OnesCount32(uint32(s)) }

// A clock is the vector clock of a step. It counts, for each task, the steps up to this step.
type clock [maxProcs]uint16

func (c *clock) join(d *clock, n int) {
	for i, k := range d[:n] {
		if k > c[i] {
			c[i] = k
		}
	}
}

// A footprint is the address and the kind of an access.
type footprint struct {
	at   unsafe.Pointer
	kind accessKind
}

// Each kind of access belongs to side 0 or side 1. The bits of conflicts[k] are the sides with which an access of kind k conflicts:
//
//	kind           side   of the accesses to the same address, it conflicts with
//	read           0      write, parks
//	write, parks   1      read, write, parks
//	locks          0      locks
//	called         0      returned
//	returned       1      called
var (
	side      = [...]uint8{nothing: 0, read: 0, locks: 0, called: 0, write: 1, parks: 1, returned: 1}
	conflicts = [...]uint8{nothing: 0, read: 2, write: 3, parks: 3, locks: 1, called: 2, returned: 1}
)

func conflicting(as, bs []footprint) bool {
	for _, a := range as {
		for _, b := range bs {
			if a.at == b.at && b.kind != nothing && conflicts[a.kind]>>side[b.kind]&1 != 0 {
				return true
			}
		}
	}
	return false
}

// A thing records the accesses to one address.
type thing struct {
	last   [2][maxProcs]int32 // one plus the index of each task's last step on each side
	users  [2]procs           // the tasks that have accessed each side
	unlock int                // one plus the last step that unlocked the lock, if the thing is a lock
}

// reducible holds the fields of a task that only a reduction uses.
type reducible struct {
	pending footprint   // the access with which the next step begins
	awaits  []footprint // what has to change before the next step, if the task goes round in a loop; see loop
	held    bool        // nothing of awaits has changed yet
	changes int         // the number of steps that have changed something of awaits; the index of the last of them is changer
	changer int
	act     footprint // the access with which the last step began, and what it has awaited
	awaited []footprint
	quiet   bool       // the last access has changed nothing
	last    accessKind // the kind of the access before the next one
	looked  []look
	live    bool // the task is a canceller that may run
}

// A look records that a task has looked at a context.
type look struct {
	at   *taskContext
	over bool // the task has seen the context cancelled
}

// canStep reports whether t can take a step.
func (t *task) canStep() bool {
	switch {
	case t.ended, t.early, t.held:
		return false
	case t.cancels != nil:
		return t.live && (t.lock == nil || t.lockIsFree()) // it calls the heirs of the wait, which lock the guards of objects
	case t.parked:
		return t.permit || t.spurious < t.w.e.Spurious
	case t.lock != nil:
		return t.lockIsFree()
	}
	return true
}

// footprints appends the accesses of a step of t to a slice, and returns the slice. The step begins with the access a. If quiet is true, a
// has changed nothing. If the step had to wait for a change, the parameter awaited has the accesses of the loop.
func (t *task) footprints(to []footprint, a footprint, quiet bool, awaited []footprint) []footprint {
	to = append(to, awaited...)
	if a.kind == nothing {
		return to
	}
	if a.kind == write {
		for _, l := range t.looked {
			if l.at.canceller.live && !l.over && l.at.at() != a.at {
				to = append(to, footprint{l.at.at(), read})
			}
		}
	}
	if a.kind == write && quiet {
		a.kind = read
	}
	return append(to, a)
}

// looksAt is called when t looks at c, or registers a function with c.
func (t *task) looksAt(c *taskContext, kind accessKind) {
	r := t.w.e.search.(*reduction)
	c.used = true
	for i, x := range t.w.contexts {
		if x == c {
			r.used |= one(i)
		}
	}
	i := slices.IndexFunc(t.looked, func(l look) bool { return l.at == c })
	if c.canceller.live && (i < 0 || !t.looked[i].over) {
		t.access(kind, c.at())
	}
	if i < 0 { // the task looks at c for the first time
		i = len(t.looked)
		t.looked = append(t.looked, look{at: c})
	}
	t.looked[i].over = c.err != nil
}

func (c *taskContext) at() unsafe.Pointer { return unsafe.Pointer(&c.err) }

func (t *task) parkReduced() {
	t.parked = true
	if !t.permit {
		t.eventHere("suspended")
	}
	access(t, parks, &t.permit)
	t.parked = false
	if t.permit {
		t.permit = false
	} else {
		t.spurious++
	}
}

// unparkReduced implements Unpark in a reduction. u is the calling task, or nil.
func (t *task) unparkReduced(u *task) {
	if u == nil {
		t.w.fail("%s was woken by a goroutine outside the program", t.name)
		return
	}
	r := t.w.e.search.(*reduction)
	if r.current >= 0 {
		r.stack[r.current].could = t.permit || t.spurious < t.w.e.Spurious
	}
	u.quiet = t.permit
	if t.parked && !t.permit {
		t.w.wakes(t)
	}
	t.permit = true
}
