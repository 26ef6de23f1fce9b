package suspend

// A Source is what an Op is made of outside this package: an operation on an object with a Guard. All methods but
// Guard are called with the guard held, those of other objects often as well: they must not suspend, panic, block, or
// call anything back.
//
// Try performs the operation if it need not wait, and reports whether it did; (v, err) is its result then, and if it
// takes a waiter to do so, it commits with exactly one Resume. A Try that reports false must leave the object closed: as
// long as the guard is held, nothing may make the operation possible (an object with an atomic fast path sets its
// waiter bit). Enqueue then leaves r where a Resume under the guard will find it, as a rule in a Queue. Remove takes
// r away, if it is still there. Guard may return nil for a level, what takes nothing to look at and stays ready once
// it is (a deadline, an end): its methods are called under no lock of its own, and Enqueue resumes r if it is ready. It
// always returns the same.
type Source[T any] interface {
	Guard() *Guard
	Try() (v T, ok bool, err error)
	Enqueue(r Resumer[T])
	Remove(r Resumer[T])
}

// remove takes r away after a wait that was not resumed.
func remove[T any, S Source[T]](g *Guard, s S, r Resumer[T]) {
	g.Lock()
	s.Remove(r)
	g.Unlock()
}
