package suspend

import "github.com/braidgo/braid/internal/atomicx"

// A word is the state of a waiter's current suspension: a generation, which only grows, and a status.
// A suspension that ends, in whatever way, leaves the word open for the next one. -S> is the waiter, -R> a resumer, -C> a
// context that ends, -K> a scheduler that kills the task; g is the generation.
//
//	g open       -R> g+1 open       deliverNothing: the slot is as empty as the value
//	g open       -R> g+2 open       deliverInNode: under the guard of a Queue, with the value in the node
//	g open       -R> g claimed      claim: the resumer has won, and writes the value
//	g claimed    -R> g+1 open       deliver: the value is there
//	g open       -C> g cancelled    cancel: only where the status says that a context may
//	g open       -R> g cancelled    cancel: the resumer has found the context done
//	g open       -K> g cancelled    cancelAny
//	g open       -S> g+1 open       withdraw: block has returned a value
//	g open       -S> g+1 open       abandon: block, or Park, has not returned
//	g claimed    -S> g+1 open       abandon: and the value is lost
//	g open       -S> g+1 open       open: the next wait has another status or another context
//	g cancelled  -S> g+1 open       open: the next wait begins
//
// Invariant: a resumer moves the word into the next generation only when the value, if there is one, is in its place. So a
// Resumer of an older generation finds nothing to change.
// Debt: a resumer, a context or a scheduler that moves the word owes one Unpark. For claim it is owed after deliver.
type word struct{ v atomicx.Uint64 }

// A state is a value of a word.
type state uint64

// The statuses. The status says whether the registration can cancel the suspension, so that a
// stale registration of an earlier wait finds nothing to cancel.
const (
	open          state = iota
	openToContext       // its registration cancels it
	openLazily          // only a resumer cancels it, which finds the context done
	claimed             // two more follow, for the other kinds of open
	cancelled     = claimed + 3
	unarmed       = cancelled + 1 // no word has it

	statusBits = 3
	statusMask = 1<<statusBits - 1
	generation = 1 << statusBits
)

func (s state) status() state            { return s & statusMask }
func (s state) with(status state) state  { return s&^statusMask | status }
func (s state) next(status state) state  { return (s + generation).with(status) }
func (s state) sameWait(t state) bool    { return s>>statusBits == t>>statusBits }
func (w *word) load() state              { return state(w.v.Load()) }
func (w *word) move(from, to state) bool { return w.v.CompareAndSwap(uint64(from), uint64(to)) }

// The arrows of resumers.

func (w *word) deliverNothing(s state) bool { return w.move(s, s+generation) }
func (w *word) deliverInNode(s state) bool  { return w.move(s, s+2*generation) }
func (w *word) claim(s state) bool          { return w.move(s, s+claimed) }

// deliver follows a claim of s. It changes nothing if block never returned: then nobody reads the slot again.
func (w *word) deliver(s state) { w.move(s+claimed, s+generation) }

// cancel is the arrow of a context, and of a resumer that has found it done.
func (w *word) cancel(s state) bool { return w.move(s, s.with(cancelled)) }

// cancelAny cancels whatever the word is open to. False means that a resumer or a context was first.
func (w *word) cancelAny() bool {
	for s := w.load(); s.status() <= openLazily; s = w.load() {
		if w.cancel(s) {
			return true
		}
	}
	return false
}

// The arrows of the waiter.

// open opens the word to the next wait, of this status, and returns its state.
func (w *word) open(status state) state {
	s := w.load().next(status)
	w.v.Store(uint64(s))
	return s
}

// withdraw ends the wait that began with s, and fails if it has been resumed or cancelled.
func (w *word) withdraw(s state) bool { return w.move(s, s+generation) }

// abandon ends the wait that began with s, if it has not ended.
func (w *word) abandon(s state) {
	for now := w.load(); now.sameWait(s); now = w.load() {
		w.move(now, now.next(open))
	}
}

// Questions of the waiter about the wait that began with s.

// pending reports whether it has not ended.
func (w *word) pending(s state) bool {
	now := w.load()
	return now == s || now == s+claimed
}

func (w *word) isCancelled(s state) bool { return w.load() == s.with(cancelled) }

// inNode reports whether the value of a wait that was resumed is in the node. The next wait may be cancelled already.
func (w *word) inNode(s state) bool { return w.load().sameWait(s + 2*generation) }
