package census

import (
	"cmp"
	"slices"
)

// Extents are the memory ranges of objects. An object may contain others.
type extents[V any] struct {
	all    []extent[V] // sorted by begin, and larger extents first
	sorted bool
}

type extent[V any] struct {
	begin, end uintptr
	furthest   uintptr // the largest end of this and all earlier extents, so that find can stop early
	v          V
}

func (e *extents[V]) add(begin, bytes uintptr, v V) {
	e.all, e.sorted = append(e.all, extent[V]{begin, begin + max(bytes, 1), 0, v}), false
}

// find returns the value of the innermost extent that contains addr.
func (e *extents[V]) find(addr uintptr) (v V, ok bool) {
	if !e.sorted {
		e.sorted = true
		slices.SortFunc(e.all, func(x, y extent[V]) int {
			return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(y.end, x.end))
		})
		furthest := uintptr(0)
		for i := range e.all {
			furthest = max(furthest, e.all[i].end)
			e.all[i].furthest = furthest
		}
	}
	i, _ := slices.BinarySearchFunc(e.all, addr, func(x extent[V], addr uintptr) int {
		if x.begin <= addr {
			return -1
		}
		return 1
	})
	for i--; i >= 0 && e.all[i].furthest > addr; i-- {
		if x := e.all[i]; addr < x.end {
			return x.v, true
		}
	}
	return v, false
}
