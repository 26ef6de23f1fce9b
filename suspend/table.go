package suspend

import (
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/splitmix"
)

// The table of bindings says which goroutine is bound to what. It has open addressing, in buckets of eight keys, with two buckets to
// choose from. A full level is followed by one of eight times its size, and entries never move. Only the goroutine whose key an entry
// carries writes it, so a goroutine that looks itself up reads its own writes. Goroutines share only the taking and leaving of keys.
//
// Most goroutines have the place next to the goroutine made before them, since tasks made one after another tend to run one after
// another. A lookup tries the homes of its goroutine first, and further levels only if some goroutine is away from home there.
//
// Invariant: b is touched only by the goroutine whose identity is in key.
// No goroutine sees the entries of others, so the order of accesses makes no difference, and the model checker need not see them: these
// atomics are from sync/atomic and not from atomicx.
//
// Levels are never given back: 16 bytes for each goroutine that was bound at the peak, and some air.

const bucketSize = 8

type bucket [bucketSize]place

type place struct {
	key atomic.Int64 // 0: free
	b   *binding
}

type level struct {
	buckets []bucket
	shift   uint8
	older   *level // an eighth of the size
	_       [64]byte
	away    atomic.Int64 // how many have a place that is not their home: none, as long as the goroutines are made one after another
	_       [64]byte
}

var (
	newest atomic.Pointer[level] // the first Bind makes it
	grow   sync.Mutex
)

const firstLevel = 6 // bits: 512 bindings

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
		return b.via.bound
	}
	return b
}

// find returns the place of the goroutine id, which is the caller's, nil if it has none.
func find(id int64) *place {
	for l := newest.Load(); l != nil; l = l.older {
		if p := l.home(id); p.key.Load() == id {
			return p
		}
	}
	return findAway(id)
}

// findAway is find for a goroutine that has no place at home.
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

// bucket is the i'th choice for id: the next in a row, and each lap begins elsewhere, or else goroutines that are made at
// certain distances would meet; and anywhere.
func (l *level) bucket(id int64, i int) *bucket {
	if i > 0 {
		return &l.buckets[uint64(id)*splitmix.Golden>>(l.shift&63)]
	}
	at := uint64(id) / bucketSize
	lap := at >> (-l.shift & 63)
	return &l.buckets[(at+lap*splitmix.Golden>>(l.shift&63))&uint64(len(l.buckets)-1)]
}

// home is the place that id has if it was free.
func (l *level) home(id int64) *place { return &l.bucket(id, 0)[uint64(id)%bucketSize] }

// enter takes a place for the goroutine id, which is the caller's and has none. Not nil is the level in which it is away
// from home.
func enter(id int64) (p *place, away *level) {
	for {
		l := newest.Load()
		if l != nil {
			if p := l.home(id); p.take(id) {
				return p, nil
			}
			for i := range 2 {
				bu := l.bucket(id, i)
				for k := range bu {
					if p := &bu[k]; p.take(id) {
						if p == l.home(id) { // it has become free
							return p, nil
						}
						l.away.Add(1) // nobody else looks for id
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

func (p *place) take(id int64) bool { return p.key.Load() == 0 && p.key.CompareAndSwap(0, id) }

// here returns the place of the calling goroutine, which enters if it has none, and the binding there. If no goroutine is
// away from home, a look at the home in each level is enough.
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
		if p = last.home(id); p.take(id) {
			return p, nil, nil
		}
	} else if p = findAway(id); p != nil {
		return p, p.b, nil
	}
	p, away = enter(id)
	return p, nil, away
}

// restore ends a rebind. It binds the earlier binding again, and leaves the place if there was none.
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

// forbidden is bound where suspending is a mistake.
var forbidden = binding{slot: "suspend: not on a task"}
