package collections

import (
	"hash/maphash"
	"iter"

	"github.com/braidgo/braid/stm"
)

// A Map maps keys to values. Transactions on different keys conflict only if the keys share a bucket, or if the map grows.
// A transaction that returns stm.Retry after a Get waits until the bucket of that key changes.
//
// A key must be equal to itself. Get, Set and Delete panic if the key is NaN or contains a NaN, because such an entry could never be
// found again.
type Map[K comparable, V any] struct {
	table stm.Var[*table[K, V]] // may be nil in an empty map
}

// A table holds the buckets of a Map; their number is a power of two. When the chain of a bucket is too long, a larger
// table replaces the table, so that a Get visits few entries.
type table[K comparable, V any] struct {
	buckets []stm.Var[*entry[K, V]]
}

// An entry must never change, because other transactions read it. A chain is therefore copied up to the entry of the
// changed key.
type entry[K comparable, V any] struct {
	key   K
	value V
	next  *entry[K, V]
}

const (
	fewBuckets = 8
	longChain  = 8 // a longer chain makes the map grow
)

var seed = maphash.MakeSeed()

func (t *table[K, V]) bucket(k K) *stm.Var[*entry[K, V]] {
	return &t.buckets[maphash.Comparable(seed, k)&uint64(len(t.buckets)-1)]
}

func checkKey[K comparable](k K) {
	if k != k {
		panic("collections: a key that does not equal itself")
	}
}

// Get returns the value of k, and reports whether k is in the map.
func (m *Map[K, V]) Get(tx *stm.Tx, k K) (v V, ok bool) {
	checkKey(k)
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

// Set sets the value of k to v.
func (m *Map[K, V]) Set(tx *stm.Tx, k K, v V) {
	checkKey(k)
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

// Delete removes k, and reports whether k was in the map.
func (m *Map[K, V]) Delete(tx *stm.Tx, k K) bool {
	if _, ok := m.Get(tx, k); !ok {
		return false
	}
	b := m.table.Get(tx).bucket(k)
	rest, _ := b.Get(tx).without(k)
	b.Set(tx, rest)
	return true
}

// without returns the chain e without the entry of k, and the number of entries that are left.
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

// grow replaces old with a table that has four times as many buckets. It reads the whole map, so it conflicts with every
// change. A table gets at most sixteen buckets for each key; otherwise keys with equal hashes would make it grow without end.
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

// Len returns the number of keys. It reads the whole map.
func (m *Map[K, V]) Len(tx *stm.Tx) (n int) {
	for range m.All(tx) {
		n++
	}
	return n
}

// All returns an iterator over the keys and values, in no particular order. It reads the whole map, so it conflicts with
// every change. The iterator does not see changes that its transaction makes to the map during the iteration.
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
