package explore

import (
	"math/rand/v2"
	"slices"
)

// A pct makes runs at random, see Config.Depth: Burckhardt, Kothari, Musuvathi and Nagarakatte, A randomized scheduler with probabilistic
// guarantees of finding bugs (ASPLOS 2010). The number of steps of a run, from which the points are drawn, is the largest so far.
type pct struct {
	*rand.Rand
	runs    uint64
	turns   int // turns of this run
	most    int // turns of the longest run
	lowered []int
}

// begin draws the points of another run, where the task whose turn it would be falls below all others.
func (p *pct) begin(depth int) {
	p.runs++
	p.Rand = rand.New(rand.NewPCG(p.runs, uint64(depth)))
	p.most, p.turns = max(p.most, p.turns, 1), 0
	p.lowered = p.lowered[:0]
	for range depth - 1 {
		p.lowered = append(p.lowered, 1+p.IntN(p.most))
	}
}

// pick chooses one of the tasks. A task gets a priority as soon as it can run.
func (p *pct) pick(of []*task) int {
	p.turns++
	for _, t := range of {
		if t.priority == 0 {
			t.priority = 1 + p.Float64()
		}
	}
	for i, turn := range p.lowered {
		if turn == p.turns {
			of[highest(of)].priority = -1 - float64(i)
		}
	}
	return highest(of)
}

func highest(of []*task) int {
	return slices.Index(of, slices.MaxFunc(of, func(t, u *task) int {
		if t.priority < u.priority {
			return -1
		}
		return 1
	}))
}
