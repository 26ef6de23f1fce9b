package simulation

import "sync"

// An idMap is a map like sync.Map. At level D each operation passes one point, while the number of points of a sync.Map depends on the hashes
// of the keys: the ids of guests, which differ between two runs.
type idMap struct {
	mu sync.Mutex
	m  map[any]any
}

func (m *idMap) Load(key any) (value any, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok = m.m[key]
	return value, ok
}

func (m *idMap) Store(key, value any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[any]any{}
	}
	m.m[key] = value
}

func (m *idMap) Delete(key any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, key)
}
