package dlist_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/braidgo/braid/internal/dlist"
)

func values(l *dlist.List[int]) (vs []int) {
	for n := l.First(); n != nil; n = n.Next() {
		vs = append(vs, n.Value)
	}
	return vs
}

// Two lists and a hundred nodes behave like two slices.
func TestAgainstSlices(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	nodes := make([]dlist.Node[int], 100)
	for i := range nodes {
		nodes[i].Value = i
	}
	var lists [2]dlist.List[int]
	var want [2][]int
	for step := range 20_000 {
		i := rng.IntN(2)
		l, w := &lists[i], &want[i]
		n := &nodes[rng.IntN(len(nodes))]
		at := slices.Index(*w, n.Value)
		elsewhere := slices.Contains(want[1-i], n.Value)
		switch rng.IntN(8) {
		case 0:
			if got := l.Pop(); (got == nil) != (len(*w) == 0) || got != nil && got.Value != (*w)[0] {
				t.Fatalf("step %d: Pop = %v of %v", step, got, *w)
			}
			*w = (*w)[min(1, len(*w)):]
		case 1:
			if rng.IntN(20) == 0 {
				l.Append(&lists[1-i])
				*w, want[1-i] = append(slices.Clone(*w), want[1-i]...), nil
			}
		case 2, 3:
			if !elsewhere {
				if got := l.Remove(n); got != (at >= 0) {
					t.Fatalf("step %d: Remove = %v", step, got)
				}
				if at >= 0 {
					*w = slices.Delete(slices.Clone(*w), at, at+1)
				}
			}
		default:
			if !elsewhere && at < 0 {
				l.Push(n)
				*w = append(slices.Clone(*w), n.Value)
			}
		}
		if !elsewhere && l.Has(n) != slices.Contains(*w, n.Value) {
			t.Fatalf("step %d: Has = %v", step, l.Has(n))
		}
		if !slices.Equal(values(l), *w) {
			t.Fatalf("step %d: %v, want %v", step, values(l), *w)
		}
	}
}
