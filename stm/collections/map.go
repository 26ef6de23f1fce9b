package collections

import (
	"hash/maphash"
	"iter"

	"github.com/braidgo/braid/stm"
)

// A Map is a map of keys to values. Transactions on different keys conflict only if the keys share a bucket, and
// while the map grows. A Get of a key that is not there waits, by Retry, for that bucket.
type Map[K comparable, V any] struct {
	table stm.Var[*table[K, V]] // an empty map may have none
}

// A table has a power of two of buckets. A larger table takes its place when a chain is too long, so that
// a Get looks at few entries.
type table[K comparable, V any] struct {
	buckets []stm.Var[*entry[K, V]]
}

// An entry must never change, since other transactions read it: a chain is copied up to the key that changes.
type entry[K comparable, V any] struct {
	key   K
	value V
	next  *entry[K, V]
}

const (
	fewBuckets = 8
	longChain  = 8 // a chain of more is a reason to grow
)

var seed = maphash.MakeSeed()

func (t *table[K, V]) bucket(k K) *stm.Var[*entry[K, V]] {
	return &t.buckets[maphash.Comparable(seed, k)&uint64(len(t.buckets)-1)]
}

// Get returns the value of k, and whether it is there.
func (m *Map[K, V]) Get(tx *stm.Tx, k K) (v V, ok bool) {
	t := m.table.Get(tx)
	if t == nil {
		return v, false
	}
	for e := t.bucket(k).Get(tx); e != nil; e = e.next {
		if e.key == k {
			return e.value, true
		}
	}
	return v, false
}

// Set gives k the value v.
func (m *Map[K, V]) Set(tx *stm.Tx, k K, v V) {
	t := m.table.Get(tx)
	if t == nil {
		t = &table[K, V]{make([]stm.Var[*entry[K, V]], fewBuckets)}
		m.table.Set(tx, t)
	}
	b := t.bucket(k)
	rest, n := b.Get(tx).without(k)
	b.Set(tx, &entry[K, V]{k, v, rest})
	if n >= longChain {
		m.grow(tx, t)
	}
}

// Delete removes k, and reports whether it was there.
func (m *Map[K, V]) Delete(tx *stm.Tx, k K) bool {
	if _, ok := m.Get(tx, k); !ok {
		return false
	}
	b := m.table.Get(tx).bucket(k)
	rest, _ := b.Get(tx).without(k)
	b.Set(tx, rest)
	return true
}

// without returns a chain like e without k, and how many entries it has.
func (e *entry[K, V]) without(k K) (rest *entry[K, V], n int) {
	for x := e; x != nil; x = x.next {
		if x.key == k {
			rest = x.next
			for y := e; y != x; y = y.next {
				rest = &entry[K, V]{y.key, y.value, rest}
			}
			for y := rest; y != nil; y = y.next {
				n++
			}
			return rest, n
		}
		n++
	}
	return e, n
}

// grow makes a table of four times the buckets. It reads all of the old table, so it conflicts with every change. There
// are at most sixteen buckets for each key: otherwise keys of one hash would make it grow for ever.
func (m *Map[K, V]) grow(tx *stm.Tx, old *table[K, V]) {
	n := 0
	for range m.All(tx) {
		n++
	}
	if len(old.buckets) > 4*n {
		return
	}
	t := &table[K, V]{make([]stm.Var[*entry[K, V]], 4*len(old.buckets))}
	chains := make([]*entry[K, V], len(t.buckets))
	for k, v := range m.All(tx) {
		i := maphash.Comparable(seed, k) & uint64(len(chains)-1)
		chains[i] = &entry[K, V]{k, v, chains[i]}
	}
	for i, e := range chains {
		if e != nil {
			t.buckets[i].Set(tx, e)
		}
	}
	m.table.Set(tx, t)
}

// Len returns how many keys there are. It reads all of the map.
func (m *Map[K, V]) Len(tx *stm.Tx) (n int) {
	for range m.All(tx) {
		n++
	}
	return n
}

// All returns the keys and values, in no order. It reads all of the map, so it conflicts with every change. A change of the map while it
// goes on is not seen.
func (m *Map[K, V]) All(tx *stm.Tx) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t := m.table.Get(tx)
		if t == nil {
			return
		}
		chains := make([]*entry[K, V], len(t.buckets))
		for i := range t.buckets {
			chains[i] = t.buckets[i].Get(tx)
		}
		for _, e := range chains {
			for ; e != nil; e = e.next {
				if !yield(e.key, e.value) {
					return
				}
			}
		}
	}
}
