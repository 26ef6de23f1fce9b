package suspend

import (
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/internal/gid"
)

// The table of bindings: which goroutine is bound to what. Open addressing, in buckets of eight keys, two
// buckets to choose from; a level that has no room is followed by one of eight times its size, and entries
// never move. An entry is written only by the goroutine whose key it carries, so a goroutine that looks
// itself up reads what it wrote; what it shares with others is the taking and leaving of a key.
//
// Most have the place that is next to that of the goroutine that was made before them: tasks that were made one after
// another tend to run so as well.
//
// So who looks itself up looks at its homes first, and further only in levels where somebody is away from home.
//
// Invariant: b is touched only by the goroutine whose identity is in key.
// Nobody sees the entries of others, so it makes no difference who comes first, and the model checker is not told of what is
// done here: these atomics are not those of atomicx.
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
	newest atomic.Pointer[level] // nil until the first Bind
	grow   sync.Mutex
)

const firstLevel = 6 // bits: 512 bindings

// current returns what is bound to the calling goroutine, nil if nothing is.
func current() *binding {
	l := newest.Load()
	if l == nil {
		return nil
	}
	id := gid.Get()
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
	l := newest.Load()
	for l := l; l != nil; l = l.older {
		if p := l.home(id); p.key.Load() == id {
			return p
		}
	}
	for ; l != nil; l = l.older {
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

const golden = 0x9e3779b97f4a7c15

// bucket is the i'th choice for id: the next in a row, and each lap begins elsewhere, or else goroutines that are made at
// certain distances would meet; and anywhere.
func (l *level) bucket(id int64, i int) *bucket {
	if i > 0 {
		return &l.buckets[uint64(id)*golden>>(l.shift&63)]
	}
	at := uint64(id) / bucketSize
	lap := at >> (-l.shift & 63)
	return &l.buckets[(at+lap*golden>>(l.shift&63))&uint64(len(l.buckets)-1)]
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

// rebind binds b to the calling goroutine while f runs, and then restores what was bound before.
func rebind(b *binding, f func()) {
	at, before, away := here()
	at.bind(b, before, away, f)
}

// here returns the place of the calling goroutine, which enters if it has none, and the binding there.
func here() (p *place, before *binding, away *level) {
	id := gid.Get()
	if p = find(id); p != nil {
		return p, p.b, nil
	}
	p, away = enter(id)
	return p, nil, away
}

// bind is rebind after here.
func (p *place) bind(b, before *binding, away *level, f func()) {
	p.b = b
	defer p.restore(before, away)
	if b.task != nil {
		defer b.forget()
	}
	f()
}

// restore is what ends a rebind: what was bound before is bound again, and if nothing was, the place is left.
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
