package explore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// Brute returns c, which must be reduced, with a search that does not reduce anything.
func Brute(c Config) Config {
	c.Reduced, c.brute = true, true
	return c
}

// Random returns Brute(c) with random choices, and without an end.
func Random(c Config, seed uint64) Config {
	c = Brute(c)
	c.random = rand.New(rand.NewPCG(seed, 0))
	return c
}

// Class is called at the end of a run of a reduced search. Its result differs for runs that are not equivalent. It depends on the
// clocks of each task's steps, and on the other choices. A cancelled context counts only if a task has looked at it.
func (w *World) Class() uint64 {
	r := w.e.search.(*reduction)
	var unused procs
	for _, c := range w.contexts {
		if !c.used {
			unused |= one(c.canceller.id)
		}
	}
	var keys [][2]int // these may differ between searches
	for key := range r.ids {
		keys = append(keys, key)
	}
	names := map[[2]int]string{}
	for _, key := range keys {
		names[key] = r.name(key)
	}
	slices.SortFunc(keys, func(x, y [2]int) int { return cmp.Compare(names[x], names[y]) })
	h := fnv.New64a()
	var buf []byte
	for i := range r.stack[:r.depth] {
		switch s := &r.stack[i]; {
		case !s.other:
		case s.context < 0:
			buf = append(buf, byte(s.choice.nth))
		case s.choice.nth == 1 && w.contexts[s.context].used:
			buf = append(buf, 'c', byte(s.context))
		}
	}
	for _, of := range keys {
		for i := range r.stack[:r.depth] {
			s := &r.stack[i]
			if s.other || s.task != r.ids[of] || unused.has(s.task) {
				continue
			}
			for _, key := range keys {
				if id := r.ids[key]; s.clock[id] > 0 && !unused.has(id) {
					buf = binary.NativeEndian.AppendUint16(append(buf, names[key]...), s.clock[id])
				}
			}
		}
	}
	_, _ = h.Write(buf)
	return h.Sum64()
}

// name says how a task was started, whatever its number is.
func (r *reduction) name(key [2]int) string {
	if key[0] == maxProcs {
		return fmt.Sprint(key[1])
	}
	for parent, id := range r.ids {
		if id == key[0] {
			return fmt.Sprint(r.name(parent), ".", key[1])
		}
	}
	return ""
}

// BeginsAnew reports whether the search of w begins again, because a task has looked at objects that the search did not follow.
func (w *World) BeginsAnew() bool { return w.e.looked&^w.e.looks != 0 }
