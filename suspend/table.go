package suspend

import (
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/splitmix"
)

// The table of bindings maps each bound goroutine to its binding. It is a hash table with open addressing, in buckets of eight
// places. A key has a choice of two buckets. When a level is full, a level of eight times its size is added, and entries never
// move. Only the goroutine that owns a key writes the entry, so each goroutine reads its own writes. Goroutines contend only when
// they take and leave places.
//
// In each level a goroutine has a home, next to the home of the goroutine made before it, since tasks made one after another tend
// to run one after another. A lookup tries the homes first. It searches the buckets of a level only if some goroutine there is not
// in its home.
//
// Invariant: only the goroutine whose id is in the key of a place writes the place's b. Apart from it, b is read for a task that runs the
// body of a Pull on this goroutine: by the task, or by its scheduler while the task does not run. So the order of accesses makes no
// difference, and the model checker need not see them: these atomics are from sync/atomic, not from atomicx.
//
// Levels are never freed. They take 16 bytes for each goroutine that was bound at the peak, and as many for each free place.

const bucketSize = 8

type bucket [bucketSize]place

type place struct {
	key atomic.Int64 // 0 means free
	b   *binding
}

type level struct {
	buckets []bucket
	shift   uint8
	older   *level // the next smaller level, which has an eighth of the size
	_       [64]byte
	away    atomic.Int64 // the number of goroutines in this level that are not in their home
	_       [64]byte
}

var (
	newest atomic.Pointer[level] // is nil before the first Bind
	grow   sync.Mutex
)

const firstLevel = 6 // log2 of the number of buckets in the first level, which has room for 512 bindings

// current returns the binding of the calling goroutine, or nil.
func current() *binding {
	l := newest.Load()
	if l == nil {
		return nil
	}
	id := gid.Quick()
	if id == 0 {
		id = gid.Get()
	}
	p := l.home(id)
	if p.key.Load() != id {
		if p = find(id); p == nil {
			return nil
		}
	}
	b := p.b
	if b.via != nil {
		return b.lender()
	}
	return b
}

// placed returns the binding in the place of the calling goroutine, or nil.
func placed() *binding {
	if p := find(gid.Get()); p != nil {
		return p.b
	}
	return nil
}

// find returns the place of the goroutine with this id, or nil if it has none. The caller must be this goroutine.
func find(id int64) *place {
	for l := newest.Load(); l != nil; l = l.older {
		if p := l.home(id); p.key.Load() == id {
			return p
		}
	}
	return findAway(id)
}

// findAway is like find, but for a goroutine that is in no home.
func findAway(id int64) *place {
	for l := newest.Load(); l != nil; l = l.older {
		if l.away.Load() == 0 {
			continue
		}
		for i := range 2 {
			bu := l.bucket(id, i)
			for k := range bu {
				if bu[k].key.Load() == id {
					return &bu[k]
				}
			}
		}
	}
	return nil
}

// bucket returns the i'th of the two buckets for id. The first choice follows the order of the ids. Each lap over all buckets
// begins at another bucket; otherwise goroutines made at certain distances would collide. The second choice is a hash of id.
func (l *level) bucket(id int64, i int) *bucket {
	if i > 0 {
		return &l.buckets[uint64(id)*splitmix.Golden>>(l.shift&63)]
	}
	at := uint64(id) / bucketSize
	lap := at >> (-l.shift & 63)
	return &l.buckets[(at+lap*splitmix.Golden>>(l.shift&63))&uint64(len(l.buckets)-1)]
}

// home returns the place that id takes if it is free.
func (l *level) home(id int64) *place { return &l.bucket(id, 0)[uint64(id)%bucketSize] }

// takePlace takes a place for the goroutine with this id. The caller must be this goroutine, and must have no place. If the place is
// not its home, the second result is the level of the place.
func takePlace(id int64) (p *place, away *level) {
	for {
		l := newest.Load()
		if l != nil {
			if p := l.home(id); p.tryTake(id) {
				return p, nil
			}
			for i := range 2 {
				bu := l.bucket(id, i)
				for k := range bu {
					if p := &bu[k]; p.tryTake(id) {
						if p == l.home(id) { // the home has become free
							return p, nil
						}
						l.away.Add(1) // no other goroutine looks for id, so l.away may change after p
						return p, l
					}
				}
			}
		}
		grow.Lock()
		if newest.Load() == l {
			size := uint8(firstLevel)
			if l != nil {
				size = 64 - l.shift + 3
			}
			newest.Store(&level{buckets: make([]bucket, 1<<size), shift: 64 - size, older: l})
		}
		grow.Unlock()
	}
}

func (p *place) tryTake(id int64) bool { return p.key.Load() == 0 && p.key.CompareAndSwap(0, id) }

// here returns the place of the calling goroutine, which enters the table if it has none, and the binding in this place. If no
// goroutine is away from its home, only the homes are checked.
func here() (p *place, before *binding, away *level) {
	id := gid.Quick()
	if id == 0 {
		id = gid.Get()
	}
	last := newest.Load()
	search := last == nil
	for l := last; l != nil; l = l.older {
		if p = l.home(id); p.key.Load() == id {
			return p, p.b, nil
		}
		search = search || l.away.Load() != 0
	}
	if !search {
		if p = last.home(id); p.tryTake(id) {
			return p, nil, nil
		}
	} else if p = findAway(id); p != nil {
		return p, p.b, nil
	}
	p, away = takePlace(id)
	return p, nil, away
}

// away returns the level of p if p is not the home of its goroutine there, and otherwise nil, as takePlace does.
func (p *place) away() *level {
	id := p.key.Load()
	for l := newest.Load(); l != nil; l = l.older {
		if p == l.home(id) {
			return nil
		}
		for i := range 2 {
			bu := l.bucket(id, i)
			for k := range bu {
				if p == &bu[k] {
					return l
				}
			}
		}
	}
	return nil
}

// restore ends a rebind. It binds the earlier binding again, or frees the place if there was none.
func (p *place) restore(before *binding, away *level) {
	p.b = before
	if before != nil {
		return
	}
	p.key.Store(0)
	if away != nil {
		away.away.Add(-1)
	}
}

// forbidden is the binding under which a Suspend panics.
var forbidden = binding{slot: "suspend: suspending is forbidden here (in a callback, or under Bind(nil))"}
