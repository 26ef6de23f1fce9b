package collections

import (
	"hash/maphash"
	"iter"

	"github.com/braidgo/braid/stm"
)

// A Map maps keys to values. Transactions on different keys conflict only if the keys share a bucket, if a bucket splits or
// merges, or if both add or delete keys in the same of the 256 parts of a large map. A transaction that returns stm.Retry
// after a Get waits until the bucket of that key changes.
//
// The map is a trie over the hashes of the keys, so that it grows and shrinks one bucket at a time: a Set or a Delete that
// moves keys moves at most nine, however large the map is.
//
// A key must be equal to itself. Get, Set and Delete panic if the key is NaN or contains a NaN, because such an entry could never be
// found again.
type Map[K comparable, V any] struct{ root node[K, V] }

// A node of the trie has a bucket for each value of the next four bits of a key's hash.
//
//	bucket of entries   -a ninth entry>              node, over which the entries are spread
//	node                -its last four entries left>  bucket of entries
//
// Invariant: a node below the root has more than four entries, or a node below it. A Delete restores this only if it has
// emptied a bucket; until then the node has at least one entry.
type node[K comparable, V any] struct {
	count   stm.Var[int] // the number of entries in and below a node of level countLevel; unused in other nodes
	buckets [fanOut]stm.Var[bucket[K, V]]
}

// A bucket is a chain of entries, or a node if there are too many.
type bucket[K comparable, V any] struct {
	chain *entry[K, V]
	node  *node[K, V]
}

// An entry must never change, because other transactions read it. A chain is therefore copied up to the entry of the
// changed key.
type entry[K comparable, V any] struct {
	key   K
	value V
	next  *entry[K, V]
}

const (
	hashBits   = 4 // per level
	fanOut     = 1 << hashBits
	lastLevel  = 64/hashBits - 1 // the buckets of this level do not split
	countLevel = 2               // the level of the nodes that count their entries; the root has level 0
	longChain  = 8               // a longer chain makes its bucket split
	fewEntries = 4               // a node with so few entries becomes a bucket again
)

var seed = maphash.MakeSeed()

func hashOf[K comparable](k K) uint64 { return maphash.Comparable(seed, k) }

// A path leads from the root to the bucket of a key. Only changes need it, because a Get does not go back.
type path[K comparable, V any] struct {
	nodes [lastLevel + 1]*node[K, V]
	hash  uint64
	level int // of the bucket
}

// at returns the Var of the bucket in the node of the given level.
func (p *path[K, V]) at(level int) *stm.Var[bucket[K, V]] {
	return &p.nodes[level].buckets[p.hash>>(level*hashBits)%fanOut]
}

// add adds d to the count of the part of the map to which the path leads.
func (p *path[K, V]) add(tx *stm.Tx, d int) {
	if p.level >= countLevel {
		count := &p.nodes[countLevel].count
		count.Set(tx, count.Get(tx)+d)
	}
}

// find returns the chain of entries in the bucket of k, and stores the way to the bucket in p.
func (m *Map[K, V]) find(tx *stm.Tx, k K, p *path[K, V]) *entry[K, V] {
	checkKey(k)
	p.hash = hashOf(k)
	for n := &m.root; ; p.level++ {
		p.nodes[p.level] = n
		b := p.at(p.level).Get(tx)
		if b.node == nil {
			return b.chain
		}
		n = b.node
	}
}

func checkKey[K comparable](k K) {
	if k != k {
		panic("collections: a key that is not equal to itself, such as NaN")
	}
}

// Get returns the value of k, and reports whether k is in the map.
func (m *Map[K, V]) Get(tx *stm.Tx, k K) (v V, ok bool) {
	checkKey(k)
	n, hash := &m.root, hashOf(k)
	for {
		b := n.buckets[hash%fanOut].Get(tx)
		if b.node == nil {
			for e := b.chain; e != nil; e = e.next {
				if e.key == k {
					return e.value, true
				}
			}
			return v, false
		}
		n, hash = b.node, hash>>hashBits
	}
}

// Set sets the value of k to v.
func (m *Map[K, V]) Set(tx *stm.Tx, k K, v V) {
	var p path[K, V]
	rest, n, had := m.find(tx, k, &p).without(k)
	chain := &entry[K, V]{k, v, rest}
	if n++; !had {
		p.add(tx, 1)
	}
	if n <= longChain || p.level == lastLevel {
		p.at(p.level).Set(tx, bucket[K, V]{chain: chain})
		return
	}
	p.split(tx, chain, n)
}

// split replaces a bucket with a node. n is the number of entries.
func (p *path[K, V]) split(tx *stm.Tx, chain *entry[K, V], n int) {
	to := new(node[K, V])
	var chains [fanOut]*entry[K, V]
	level := p.level + 1
	for e := chain; e != nil; e = e.next {
		i := hashOf(e.key) >> (level * hashBits) % fanOut
		chains[i] = &entry[K, V]{e.key, e.value, chains[i]}
	}
	for i, e := range chains {
		if e != nil {
			to.buckets[i].Set(tx, bucket[K, V]{chain: e})
		}
	}
	if level == countLevel {
		to.count.Set(tx, n)
	}
	p.at(p.level).Set(tx, bucket[K, V]{node: to})
}

// Delete removes k, and reports whether k was in the map.
func (m *Map[K, V]) Delete(tx *stm.Tx, k K) bool {
	var p path[K, V]
	rest, n, had := m.find(tx, k, &p).without(k)
	if !had {
		return false
	}
	p.add(tx, -1)
	p.at(p.level).Set(tx, bucket[K, V]{chain: rest})
	if n == 0 {
		p.merge(tx)
	}
	return true
}

// merge replaces the nodes on the path that have few entries with buckets, from the last one upwards.
func (p *path[K, V]) merge(tx *stm.Tx) {
	for level := p.level; level > 0; level-- {
		var chain *entry[K, V]
		n := 0
		for i := range p.nodes[level].buckets {
			b := p.nodes[level].buckets[i].Get(tx)
			for e := b.chain; e != nil; e = e.next {
				chain = &entry[K, V]{e.key, e.value, chain}
				n++
			}
			if b.node != nil || n > fewEntries {
				return
			}
		}
		p.at(level-1).Set(tx, bucket[K, V]{chain: chain})
	}
}

// without returns the chain e without the entry of k, the number of entries that are left, and whether there was one of k.
func (e *entry[K, V]) without(k K) (rest *entry[K, V], n int, had bool) {
	for x := e; x != nil; x = x.next {
		if x.key == k {
			rest = x.next
			for y := e; y != x; y = y.next {
				rest = &entry[K, V]{y.key, y.value, rest}
			}
			return rest, rest.length(), true
		}
		n++
	}
	return e, n, false
}

func (e *entry[K, V]) length() (n int) {
	for ; e != nil; e = e.next {
		n++
	}
	return n
}

// Len returns the number of keys. It reads a bounded number of Vars, but it conflicts with every change of the number, and in
// a small map with every change.
func (m *Map[K, V]) Len(tx *stm.Tx) int { return m.root.entries(tx, 0) }

func (n *node[K, V]) entries(tx *stm.Tx, level int) (all int) {
	if level == countLevel {
		return n.count.Get(tx)
	}
	for i := range n.buckets {
		if b := n.buckets[i].Get(tx); b.node != nil {
			all += b.node.entries(tx, level+1)
		} else {
			all += b.chain.length()
		}
	}
	return all
}

// All returns an iterator over the keys and values, in no particular order. It reads the whole map, so it conflicts with
// every change. The iterator does not see changes that its transaction makes to the map during the iteration.
func (m *Map[K, V]) All(tx *stm.Tx) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, e := range m.root.chains(tx, nil) {
			for ; e != nil; e = e.next {
				if !yield(e.key, e.value) {
					return
				}
			}
		}
	}
}

// chains appends the chains of all buckets in and below n to a slice.
func (n *node[K, V]) chains(tx *stm.Tx, to []*entry[K, V]) []*entry[K, V] {
	for i := range n.buckets {
		if b := n.buckets[i].Get(tx); b.node != nil {
			to = b.node.chains(tx, to)
		} else if b.chain != nil {
			to = append(to, b.chain)
		}
	}
	return to
}
