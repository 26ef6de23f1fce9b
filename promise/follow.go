package promise

import (
	"weak"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
)

// A follower is told once when the promise that it follows is filled: under no lock, by the caller of Fill.
type follower interface {
	filled() (more followers) // the followers of the promise that it has filled in turn
	gone() bool               // it need not be told
}

// Followers are told in the order in which they were added.
type (
	followers = dlist.List[follower]
	place     = dlist.Node[follower]
)

// following is the followers of a promise. Those that are gone are removed each time that the number has doubled, and a few more have
// come. So the list is at most twice as long as it has to be at its longest, and a few.
type following struct {
	followers
	len   int
	limit int // above it, the followers that are gone are removed
}

const few = 32

func (f *following) add(n *place) {
	f.Push(n)
	if f.len++; f.len > f.limit {
		f.sweep()
	}
}

func (f *following) remove(n *place) {
	if f.Remove(n) {
		f.len--
	}
}

func (f *following) sweep() {
	for n := f.First(); n != nil; {
		next := n.Next()
		if n.Value.gone() {
			f.remove(n)
		}
		n = next
	}
	f.limit = 2*f.len + few
}

// tell tells fs, and then the followers of the promises that they have filled. It is a loop because a chain may be long.
func tell(fs followers) {
	for n := fs.Pop(); n != nil; n = fs.Pop() {
		more := n.Value.filled()
		fs.Append(&more)
	}
}

// ties are the places of a combination among the followers of its futures.
//
// The futures keep the ties, and the ties keep the combination weakly: one that its owner has dropped is collected. A task
// that awaits the result refers to the combination from its stack. A continuation or a Done channel does not, so these
// hold it, and in turn the combinations among its futures.
type ties struct {
	to weak.Pointer[combined]

	mu    atomicx.Mutex // a leaf: waiters are counted under guards
	each  []tie         // nil once cut
	holds int           // may be below 0 for a moment, if two callers of hold overtake each other
	held  *combined     // nil unless holds > 0; written for the garbage collector, never read
}

// combined is the first field of a combination, and all that the ties know of it.
type combined struct{ decider }

type decider interface{ told(i int) (more followers) }

// A tie is the place of a combination among the followers of its i'th future.
type tie struct {
	place
	all *ties
	i   int
	at  followed
}

// followed is a promise of any type.
type followed interface {
	add(n *place) bool
	remove(n *place)
	tied() *ties
}

func (e *tie) filled() followers {
	if c := e.all.to.Value(); c != nil {
		return c.told(e.i)
	}
	return followers{}
}

func (e *tie) gone() bool { return e.all.to.Value() == nil }

// cut ends the following.
func (t *ties) cut() {
	t.mu.Lock()
	each, held := t.each, t.holds > 0
	t.each, t.held = nil, nil
	t.mu.Unlock()
	for i := range each {
		e := &each[i]
		e.at.remove(&e.place)
		if below := e.at.tied(); held && below != nil {
			below.hold(-1)
		}
	}
}

// hold adds d to the number of those that need the result and do not refer to it.
func (t *ties) hold(d int) {
	var buf [4]*ties
	for todo := append(buf[:0], t); len(todo) > 0; {
		t, todo = todo[len(todo)-1], todo[:len(todo)-1]
		t.mu.Lock()
		before := t.holds > 0
		t.holds += d
		if after := t.holds > 0; after != before {
			if t.held = nil; after {
				t.held = t.to.Value()
			}
			for i := range t.each {
				if below := t.each[i].at.tied(); below != nil {
					todo = append(todo, below)
				}
			}
		}
		t.mu.Unlock()
	}
}

// add puts n among the followers of p; false says that p is filled already.
func (p *Promise[T]) add(n *place) bool {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.filled.Load() {
		return false
	}
	if p.follow == nil {
		p.follow = new(following)
	}
	p.follow.add(n)
	return true
}

// remove takes n off. Once p is filled, its followers belong to the caller of Fill.
func (p *Promise[T]) remove(n *place) {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.follow != nil {
		p.follow.remove(n)
	}
}

func (p *Promise[T]) tied() *ties { return p.ties }
