package explore

import (
	"encoding/binary"
	"hash/fnv"
)

// Brute is c, reduced, without reducing anything.
func Brute(c Config) Config {
	c.Reduced, c.brute = true, true
	return c
}

// Class is called at the end of a run of a search that is reduced. No two are the same that are not equivalent.
func (w *World) Class() uint64 { return w.e.search.(*reduction).class() }

// class tells apart runs that are not equivalent: by the clocks of each task's steps, and the other choices.
func (r *reduction) class() uint64 {
	h := fnv.New64a()
	var buf []byte
	for i := range r.stack[:r.depth] {
		if s := &r.stack[i]; s.other {
			buf = append(buf, byte(s.choice.nth))
		}
	}
	for id := range len(r.ids) {
		for i := range r.stack[:r.depth] {
			if s := &r.stack[i]; !s.other && s.task == id {
				for _, n := range s.clock {
					buf = binary.NativeEndian.AppendUint16(buf, n)
				}
			}
		}
	}
	_, _ = h.Write(buf)
	return h.Sum64()
}
