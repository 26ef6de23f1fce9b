package suspend

import (
	"math/bits"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
)

// The table of bindings: which goroutine is bound to what. Open addressing, in buckets of eight keys, two
// buckets to choose from; a level that has no room is followed by one of eight times its size, and entries
// never move. An entry is written only by the goroutine whose key it carries, so a goroutine that looks
// itself up reads what it wrote; what it shares with others is the taking and leaving of a key.
//
// Invariant: recs[i] is touched only by the goroutine whose identity is in keys[i].
// Levels are never given back: 16 bytes for each goroutine that was bound at the peak, and some air.

const bucketSize = 8 // keys: a cache line

type bucket struct {
	keys [bucketSize]atomicx.Int64 // 0: free
	recs [bucketSize]*binding
}

type level struct {
	buckets []bucket
	shift   uint8
	older   *level // an eighth of the size
}

var (
	newest atomicx.Pointer[level] // nil until the first Bind
	grow   atomicx.Mutex
)

const firstLevel = 6 // bits: 512 bindings

// current returns what is bound to the calling goroutine, nil if nothing is.
func current() *binding {
	l := newest.Load()
	if l == nil {
		return nil
	}
	id := gid.Get()
	var b *binding
	if bu, k := l.home(id); bu.keys[k].Load() == id {
		b = bu.recs[k]
	} else if e := entry(id); e != nil {
		b = *e
	} else {
		return nil
	}
	if b.via != nil {
		return b.via.bound
	}
	return b
}

// entry finds the place of the goroutine id, which is the caller's. Most are in the newest level.
func entry(id int64) **binding {
	for l := newest.Load(); l != nil; l = l.older {
		for i := range 2 {
			bu := l.bucket(id, i)
			for k := range bu.keys {
				if bu.keys[k].Load() == id {
					return &bu.recs[k]
				}
			}
		}
	}
	return nil
}

const golden = 0x9e3779b97f4a7c15

// bucket is the i'th choice for id.
func (l *level) bucket(id int64, i int) *bucket {
	h := uint64(id) * golden
	if i > 0 {
		h = bits.RotateLeft64(h, 29) * golden
	}
	return &l.buckets[h>>(l.shift&63)]
}

// home is the place that id has if it was free.
func (l *level) home(id int64) (bu *bucket, k int) {
	return l.bucket(id, 0), int(uint64(id) % bucketSize)
}

// enter takes a place, the k'th of bu, for the goroutine id, which is the caller's and has none.
func enter(id int64) (bu *bucket, k int) {
	for {
		l := newest.Load()
		if l == nil {
			gid.Check()
		} else {
			if bu, k := l.home(id); bu.take(k, id) {
				return bu, k
			}
			for i := range 2 {
				bu := l.bucket(id, i)
				for k := range bu.keys {
					if bu.take(k, id) {
						return bu, k
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

func (bu *bucket) take(k int, id int64) bool {
	return bu.keys[k].Load() == 0 && bu.keys[k].CompareAndSwap(0, id)
}

// rebind binds b to the calling goroutine while f runs, and then restores what was bound before.
func rebind(b *binding, f func()) {
	id := gid.Get()
	if e := entry(id); e != nil {
		before := *e
		*e = b
		defer func() { *e = before }()
	} else {
		bu, k := enter(id)
		bu.recs[k] = b
		defer func() {
			bu.recs[k] = nil
			bu.keys[k].Store(0)
		}()
	}
	f()
}

// forbidden is bound where suspending is a mistake.
var forbidden binding
