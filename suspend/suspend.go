package suspend

import (
	"context"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
)

// A party is one that can be suspended. Its word holds the state of the one suspension that it may have at a time: a
// generation that only grows, and a status.
// A suspension that ends, in whatever way, leaves the word open for the next one. -S> is the suspending
// task, -R> a resumer, -C> a cancelled context; g is the generation.
//
//	g open       -R> g+1 open     there is no value to write
//	g open       -R> g+2 open     the resumer holds the guard of a Queue, and has left the value in the node
//	g open       -R> g claimed    Resume has won and is writing the value
//	g claimed    -R> g+1 open     the value is there: generation g is decided
//	g open       -C> g cancelled  only where the status says that a context may
//	g open       -R> g cancelled  the resumer has found the context done
//	g open       -S> g+1 open     block returned a value, or it, or Park, did not return
//	g claimed    -S> g+1 open     block, or Park, did not return: the value is lost with it
//	g cancelled  -S> g+1 open     Suspend begins the next generation
//
// Invariant: nobody but its own task takes the word into a generation that has no value. So whoever holds
// a Resumer of an older generation finds nothing to change.
// Debt: who moves the word on another's behalf (-R>, -C>) owes one Unpark.
type party struct {
	task    Task // never changes; nil: suspending is forbidden here
	word    atomicx.Uint64
	watched atomicx.Pointer[registration] // written by the task, before it opens the word to it
}

// A binding ties a goroutine to the Task that parks it, for the extent of one Bind. All of it but the party is the
// task's own.
type binding struct {
	party
	leaver  leaver  // the task, if it is one
	slot    any     // a *slot[T], of the T that was waited for first; without a task: the text of the panic
	slots   *list   // and those for others
	via     *pulled // not nil: this stands for whatever is bound to the caller of next
	blocked bool    // block is running
	large   bool    // the slots are more than are kept
	killed  bool    // by a Kill that has not taken effect; written by the scheduler while the task does not run
	last    wait
	random  func() uint64 // of the task's scheduler, once it was drawn from
	// 128 bytes: it begins at a cache line then
}

// A list is of what a task has of each type, but for one.
type list struct {
	x    any
	next *list
}

func (l *list) len() (n int) {
	for ; l != nil; l = l.next {
		n++
	}
	return n
}

// A wait is what the last suspension of a binding has left: with this context, a word of this status is open.
type wait struct {
	ctx    context.Context // nil if its Done may be another some day
	done   <-chan struct{} // nil also if it was not asked for
	status uint64
}

// The statuses. A suspension that no context can cancel is kept apart from one that the registration
// can, so that a registration which an earlier wait has left behind finds nothing to cancel.
const (
	open          uint64 = iota
	openToContext        // its registration cancels it
	openLazily           // only a resumer cancels it, which finds the context done
	claimed              // and two more, one for each kind of open
	cancelled     = claimed + 3
	unarmed       = cancelled + 1 // of no word

	statusBits = 3
	statusMask = 1<<statusBits - 1
	claim      = claimed - open
)

func next(word, status uint64) uint64 { return (word>>statusBits+1)<<statusBits | status }

// after is the word of the generation that follows an open one, and queueAfter that where a Queue has resumed it.
func after(word uint64) uint64      { return word + 1<<statusBits }
func queueAfter(word uint64) uint64 { return word + 2<<statusBits }

// A slot is where the value of a suspension arrives. It belongs to its party for ever, so a stale
// Resumer that looks at it finds the right word to fail on. Only the claimer writes v, err and hit, and only
// while the word says claimed; the task reads and zeroes them in the next generation.
type slot[T any] struct {
	b      *party
	shared bool      // never changes: other slots are waited for on the same state, so the claimer sets hit
	hit    bool      // like v
	freed  bool      // like v: the node in use was taken off before
	queued bool      // node is in use; the task's own, like the rest
	node   queued[T] // a *node[T, P], of the P that was queued with last
	nodes  *list     // and those for others
	v      T
	err    error
}

// A Resumer resumes one suspension, once. It is a small value: copy it, store it, compare it, use it as
// a map key. The zero Resumer resumes nothing.
type Resumer[T any] struct {
	slot *slot[T]
	word uint64          // the open word that Resume replaces
	done <-chan struct{} // of the context of the wait; nil if that never ends, or tells its waiters itself
}

// Resume ends the suspension with (v, err) and reports whether it did. Of all Resumes of a suspension,
// its cancellation and the end of its block, exactly one wins. True is a promise: Suspend returns
// (v, err), even if its context is done by then. False means that nothing was delivered: v is still the
// caller's.
//
// Resume never suspends, blocks or runs anybody's code; it decides, and has the waiting task made
// runnable. It may be called from any goroutine and under any lock, before block has returned, after
// Suspend has returned, and after the task and its scheduler have gone.
//
// What happened before a Resume that returned true happened before the return of its Suspend.
func (r Resumer[T]) Resume(v T, err error) bool { return r.resume(v, err, false) }

// resume is Resume; freed says that r was queued, and is so no more.
func (r Resumer[T]) resume(v T, err error, freed bool) bool {
	s := r.slot
	if s == nil {
		return false
	}
	if r.over() {
		return false
	}
	word := &s.b.word
	if unsafe.Sizeof(v) == 0 && err == nil && !s.shared { // nothing to write, as an empty slot holds the same
		if !word.CompareAndSwap(r.word, after(r.word)) {
			return false
		}
	} else {
		if !word.CompareAndSwap(r.word, r.word+claim) {
			return false
		}
		s.v, s.err, s.hit, s.freed = v, err, s.shared, freed
		// Fails only if block never returned; then nobody will read the slot again.
		word.CompareAndSwap(r.word+claim, after(r.word))
	}
	s.b.task.Unpark()
	return true
}

// over reports whether the context of the wait is done. If it is, the wait is cancelled here: its context may be late to
// tell it, by a goroutine, or, if it is lazy, never does.
func (r Resumer[T]) over() bool {
	if r.done == nil || !atomicx.Closed(r.done) {
		return false
	}
	if b := r.slot.b; b.word.CompareAndSwap(r.word, with(r.word, cancelled)) {
		b.task.Unpark()
	}
	return true
}

// Suspend suspends the calling task, and only it, until its Resumer is called or ctx is done.
//
// It calls block once, on the calling goroutine, unless ctx is done already: then it returns the error of
// the cancellation and block does not run. block either publishes the Resumer where another task will
// find it and returns false; or it finds that there is nothing to wait for and returns (v, true), which
// is then the result, whatever ctx has come to in the meantime. A failure that block finds is
// r.Resume(zero, err), false. Publish last: should block panic after it has published, a value that
// was delivered in between is lost with it. block must not suspend, and must not return true once its
// Resumer has been called; Suspend panics if it does.
//
// If ctx is done before the Resumer is called, Suspend returns an error that is both ctx.Err() and
// context.Cause(ctx) in the sense of errors.Is, and no Resume will return true: the operation has had no
// effect. What block published is then still where block put it; taking it away is the caller's part. The methods of ctx must
// not suspend.
//
// The task is the one bound to the calling goroutine, see Bind; where none is bound, the goroutine itself
// waits, like on a channel. Under Bind(nil, f) Suspend panics. Suspend does not allocate once the task has
// waited for a T with this context before; a goroutine without a task finds what one has used before, as a rule.
func Suspend[T any](ctx context.Context, block func(Resumer[T]) (T, bool)) (T, error) {
	b := current()
	if b == nil {
		return suspendGoroutine(ctx, block)
	}
	b.check()
	var zero T
	done, over := ask(ctx)
	if over {
		return zero, cancellation(ctx)
	}
	word, armed := b.armed(ctx, done)
	if !armed {
		if word, armed = b.arm(ctx); !armed {
			return zero, cancellation(ctx)
		}
	}
	s := slotOf[T](b)
	if v, ok := s.block(b, block, Resumer[T]{s, word, b.last.done}); ok {
		return v, nil
	}
	if b.leaver == nil {
		b.park(word, func() {})
	}
	for b.waits(word) {
		next, yield := b.leaver.Leave(s.where())
		for next != nil {
			next()
			next, yield = b.leaver.Back()
		}
		if yield != nil {
			yield(struct{}{})
		}
	}
	if b.word.Load() == with(word, cancelled) {
		return zero, b.cancelled(ctx)
	}
	return s.take(word)
}

// armed reports whether a suspension with ctx can begin with the word as it is, and that word. done is what ask has
// returned.
func (b *binding) armed(ctx context.Context, done <-chan struct{}) (word uint64, ok bool) {
	if b == nil || b.blocked {
		return 0, false
	}
	word = b.word.Load()
	switch {
	case word&statusMask != b.last.status:
		return word, false
	case same(ctx, b.last.ctx):
		return word, true
	case lasting(ctx), b.task == nil:
		return word, false
	}
	if done == nil {
		return word, b.last.status == open
	}
	return word, done == b.last.done && isLazy(ctx) == (b.last.status == openLazily)
}

// arm opens the word to a suspension with ctx, unless that is done.
func (b *binding) arm(ctx context.Context) (word uint64, ok bool) {
	b.check()
	e := endOf(ctx)                // which is anybody's code
	b.last = wait{status: unarmed} // should ctx panic, or be done
	w, fresh := wait{done: e.done, status: open}, false
	if lasting(ctx) {
		w.ctx = ctx
	}
	if e != (end{}) {
		if e.over(ctx) {
			return 0, false
		}
		if w.status = openLazily; !isLazy(ctx) {
			w.status, fresh = openToContext, b.watch(ctx, e)
		}
	}
	word = b.word.Load()
	if fresh || word&statusMask != w.status {
		word = next(word, w.status)
		b.word.Store(word)
		// From here on the registration cancels this suspension. Had it fired before, it found nothing to
		// cancel and will not fire again: so look once more.
		if e.over(ctx) {
			return 0, false
		}
	}
	b.last = w
	b.exitIfKilled()
	return word, true
}

// waits reports whether the suspension that began with word is still to end. The loop around it, with the switches of a
// leaver, stands in each function that suspends: after a switch the processor mispredicts every return, so there are to be few.
func (b *party) waits(word uint64) bool {
	w := b.word.Load()
	return w == word || w == word+claim
}

// block runs f, and reports its result if there is no need to wait.
func (s *slot[T]) block(b *binding, f func(Resumer[T]) (T, bool), r Resumer[T]) (v T, ok bool) {
	s.abandonNode()
	b.blocked = true
	returned := false
	defer func() {
		b.blocked = false
		if !returned {
			s.kill(b, r)
		}
	}()
	v, ok = f(r)
	returned = true
	if ok && !b.word.CompareAndSwap(r.word, after(r.word)) && b.word.Load() != with(r.word, cancelled) {
		s.kill(b, r)
		panic("suspend: block returned a value after its Resumer was called")
	}
	if ok {
		s.abandonNode() // there should be none
	}
	return v, ok
}

// kill ends the suspension of a block that did not return. The slot is given up: somebody may be writing
// to it.
func (s *slot[T]) kill(b *binding, r Resumer[T]) {
	for w := b.word.Load(); w>>statusBits == r.word>>statusBits; w = b.word.Load() {
		b.word.CompareAndSwap(w, next(w, open))
	}
	if b.slot == any(s) {
		b.slot = nil
	}
	for l := &b.slots; *l != nil; l = &(*l).next {
		if (*l).x == any(s) {
			*l = (*l).next
			return
		}
	}
}

func with(word, status uint64) uint64 { return word&^statusMask | status }

// where is where the slot is and its node, for those who have them fetched.
func (s *slot[T]) where() (slot, node unsafe.Pointer) {
	return unsafe.Pointer(s), (*iface)(unsafe.Pointer(&s.node)).data
}

// take empties the slot, or the node, after a suspension that has begun with word and been resumed.
func (s *slot[T]) take(word uint64) (v T, err error) {
	if s.b.word.Load()>>statusBits != queueAfter(word)>>statusBits { // it may be cancelled already, for the next wait
		return s.takeOwn()
	}
	s.queued = false
	return s.node.take(), nil
}

// takeOwn empties the slot. (By now a shared one may have lent its party to somebody else, see goroutine.)
func (s *slot[T]) takeOwn() (v T, err error) {
	var zero T
	v, err = s.v, s.err
	s.v, s.err = zero, nil
	switch {
	case s.freed:
		s.freed = false
		s.release()
	case err == nil || s.shared: // the node may still be in its queue, and nobody comes to Remove it
		s.abandonNode()
	}
	return v, err
}

// slotOf finds the slot of b for values of type T. Tasks wait for few types: a list is quickest.
func slotOf[T any](b *binding) *slot[T] {
	if s, ok := b.slot.(*slot[T]); ok {
		return s
	}
	return otherSlotOf[T](b)
}

func otherSlotOf[T any](b *binding) *slot[T] {
	for l := b.slots; l != nil; l = l.next {
		if s, ok := l.x.(*slot[T]); ok {
			return s
		}
	}
	s := &slot[T]{b: &b.party}
	if b.slot == nil {
		b.slot = s
	} else {
		b.slots = &list{s, b.slots}
	}
	if unsafe.Sizeof(s.v) > keptSize || b.slots.len() >= keptSlots {
		b.large = true
	}
	return s
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
