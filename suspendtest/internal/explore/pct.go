package explore

import (
	"math/rand/v2"
	"slices"
)

// A pct chooses random runs; see Config.Depth. The algorithm is from Burckhardt, Kothari, Musuvathi and Nagarakatte, A randomized scheduler
// with probabilistic guarantees of finding bugs (ASPLOS 2010). The turns at which priorities fall are drawn at random, up to the length of
// the longest run so far.
type pct struct {
	*rand.Rand
	runs    uint64
	turns   int // turns in this run
	most    int // turns in the longest run so far
	lowered []int
}

// reset draws the turns of the next run at which the task with the highest priority falls below all others.
func (p *pct) reset(depth int) {
	p.runs++
	p.Rand = rand.New(rand.NewPCG(p.runs, uint64(depth)))
	p.most, p.turns = max(p.most, p.turns, 1), 0
	p.lowered = p.lowered[:0]
	for range depth - 1 {
		p.lowered = append(p.lowered, 1+p.IntN(p.most))
	}
}

// pick returns the index of the task that runs next. A task gets its priority when it can run for the first time.
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
