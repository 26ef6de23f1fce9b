// Package shrinking has a map that gives back its memory.
package shrinking

// A Map is a map for keys that come and go. A Go map keeps the memory of the largest number of entries that it has had. A
// Map copies its entries into a new Go map when it has lost most of them. The zero Map is empty.
type Map[K comparable, V any] struct {
	m    map[K]V
	most int // the largest number of entries since m was made
}

// worth is the number of entries below which a copy would gain little.
const worth = 64

// Get returns the value of k, or the zero value if there is none.
func (m *Map[K, V]) Get(k K) V { return m.m[k] }

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.m) }

// Set sets the value of k.
func (m *Map[K, V]) Set(k K, v V) {
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[k] = v
	m.most = max(m.most, len(m.m))
}

// Delete deletes k. A copy takes place after at least three deletions for each entry that it copies.
func (m *Map[K, V]) Delete(k K) {
	delete(m.m, k)
	if n := len(m.m); m.most >= worth && n <= m.most/4 {
		old := m.m
		m.m, m.most = make(map[K]V, n), n
		for k, v := range old {
			m.m[k] = v
		}
	}
}
