package suspend

import "github.com/braidgo/braid/internal/atomicx"

// A word is the state of a waiter's current suspension, which is open until one CAS ends it: it is then claimed by a resumer, or
// cancelled. With a new word for each wait, three states would do: open, resumed and cancelled. But all waits of a task use one
// word, so that a wait allocates nothing. So a word has a generation, which only grows: a Resumer of an earlier wait finds another
// generation, and does nothing. The status claimed is for the time in which the value is written. Three kinds of open say who may
// cancel the wait.
//
// In the diagram g is the generation. The waiter (-S>), a resumer (-R>), a context that ends (-C>) and a scheduler that kills the
// task (-K>) change the word.
//
//	          -R> Resume wins            -R> the value is written
//	g open ───────────────────▶ g claimed ────────────────────────▶ g+1 open
//	  │                                                                 ▲
//	  │ -C> ctx ends, -K> Kill          -S> the next wait begins        │
//	  └───────────────────────▶ g cancelled ────────────────────────────┘
//
// Here open stands for any of the three open statuses. A resumer that need not write a value skips the status claimed: it moves the word
// by one generation if there is no value, and by two if the value is in the waiter's node in the queue of the object.
//
// These are the changes of a wait that ends normally:
//
//	g open       -R> g+1 open       deliverNothing: the value and the slot are empty
//	g open       -R> g+2 open       deliverInNode: the Queue's guard is held, and the value is in the node
//	g open       -R> g claimed      claim: the resumer has won, and writes the value
//	g claimed    -R> g+1 open       deliver: the value is written
//	g open       -S> g+1 open       withdraw: block has returned a value
//	g open       -S> g+1 open       open: the next wait has another status or another context
//
// These are the changes of a wait that fails:
//
//	g open       -C> g cancelled    cancel: the status must permit this
//	g open       -R> g cancelled    cancel: the resumer has found that the context has ended
//	g open       -K> g cancelled    cancelAny
//	g cancelled  -S> g+1 open       open: the next wait begins
//	g open       -S> g+1 open       abandon: block or Park has not returned
//	g claimed    -S> g+1 open       abandon: the value is lost
//	g cancelled  -S> g+1 open       abandon: block has not returned
//
// Invariant: a resumer begins the next generation only after the value, if there is one, was stored. A Resumer of an older
// generation cannot change the word.
// Debt: a resumer, a context or a scheduler that changes the word must call Unpark once. A resumer that has claimed the word calls
// Unpark after deliver.
type word struct{ v atomicx.Uint64 }

// A state is a value of a word.
type state uint64

// These are the statuses of a word. The status says whether the registration may cancel the suspension, so that a stale
// registration of an earlier wait cannot cancel it.
const (
	open          state = iota
	openToContext       // the registration may cancel the wait
	openLazily          // only a resumer that finds the context ended, or a Kill, cancels the wait
	claimed             // a resumer has won, and writes the value
	cancelled

	statusBits = 3
	statusMask = 1<<statusBits - 1
	generation = 1 << statusBits
)

func (s state) status() state           { return s & statusMask }
func (s state) with(status state) state { return s&^statusMask | status }
func (s state) next(status state) state { return (s + generation).with(status) }
func (s state) sameWait(t state) bool   { return s>>statusBits == t>>statusBits }

func (w *word) load() state              { return state(w.v.Load()) }
func (w *word) move(from, to state) bool { return w.v.CompareAndSwap(uint64(from), uint64(to)) }

// Resumers call these methods.

func (w *word) deliverNothing(s state) bool { return w.move(s, s+generation) }
func (w *word) deliverInNode(s state) bool  { return w.move(s, s+2*generation) }
func (w *word) claim(s state) bool          { return w.move(s, s.with(claimed)) }

// deliver is called after a claim of s. It changes nothing if the waiter has abandoned the wait, because nothing reads the slot
// then.
func (w *word) deliver(s state) { w.move(s.with(claimed), s+generation) }

// cancel is called when a context ends, and by a resumer that finds the context ended.
func (w *word) cancel(s state) bool { return w.move(s, s.with(cancelled)) }

// cancelAny cancels the wait, whichever of the three open statuses the word has. It returns false if a resumer or a context was
// first.
func (w *word) cancelAny() bool {
	for s := w.load(); s.status() <= openLazily; s = w.load() {
		if w.cancel(s) {
			return true
		}
	}
	return false
}

// The waiter calls these methods when a wait begins or ends.

// open opens the word for the next wait, with this status, and returns its state.
func (w *word) open(status state) state {
	s := w.load().next(status)
	w.v.Store(uint64(s))
	return s
}

// withdraw ends the wait that began with s. It returns false if the wait was already resumed or cancelled.
func (w *word) withdraw(s state) bool { return w.move(s, s+generation) }

// abandon ends the wait that began with s, unless the wait has already ended.
func (w *word) abandon(s state) {
	for now := w.load(); now.sameWait(s); now = w.load() {
		w.move(now, now.next(open))
	}
}

// The waiter calls these methods for the wait that began with s.

// pending reports whether the wait has not ended.
func (w *word) pending(s state) bool {
	now := w.load()
	return now == s || now == s.with(claimed)
}

func (w *word) isCancelled(s state) bool { return w.load() == s.with(cancelled) }

// inNode reports whether the value of a resumed wait is in the node. The next wait may already have been cancelled.
func (w *word) inNode(s state) bool { return w.load().sameWait(s + 2*generation) }
