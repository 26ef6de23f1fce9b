package suspend

import "github.com/braidgo/braid/internal/atomicx"

// A Resumer resumes one suspension, once. It is a small value: copy it, store it, compare it, use it as
// a map key. The zero Resumer resumes nothing.
type Resumer[T any] struct {
	slot *slot[T]
	wait state           // the open state of the word that Resume replaces
	done <-chan struct{} // of the context of the wait; nil if that never ends, or tells its waiters itself
}

// Resume ends the suspension with (v, err) and reports whether it did. Of all Resumes of a suspension,
// its cancellation and the end of its block, exactly one wins. True is a promise: Suspend returns
// (v, err), even if its context is done by then. False means that nothing was delivered: v is still the
// caller's.
//
// Resume never suspends or blocks, and it runs no code of users. It decides, and makes the waiting task runnable by its
// Unpark. It may be called from any goroutine and under any lock, before block has returned, after
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
	if r.done != nil && r.over() {
		return false
	}
	word := &s.b.word
	if _, none := any(&s.v).(*struct{}); none && err == nil && !s.shared {
		if !word.deliverNothing(r.wait) {
			return false
		}
	} else {
		if !word.claim(r.wait) {
			return false
		}
		s.v, s.err, s.hit, s.freed = v, err, s.shared, freed
		word.deliver(r.wait)
	}
	s.b.task.Unpark()
	return true
}

// over reports whether the context of the wait, which has a Done channel, is done. If it is, over cancels the wait: the
// context may tell it late, by a goroutine, or never, if it is lazy.
func (r Resumer[T]) over() bool {
	if !atomicx.Closed(r.done) {
		return false
	}
	if b := r.slot.b; b.word.cancel(r.wait) {
		b.task.Unpark()
	}
	return true
}
