package seeds

import (
	"slices"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// A search chooses the runs of a Test. In a guided search, half of the runs use the next seed. The other runs repeat an earlier run up to a
// rare state, and make new random draws from there on: importance splitting ("RESTART", Villén-Altamirano, 1991). The search picks the
// state at random, and prefers rare states.
//
// The search plans runs in rounds, from the results of earlier rounds, so that the plan does not depend on the number of jobs.
type search struct {
	next     uint64 // the next new seed
	guided   bool
	draws    draws.Source
	rarities []*rarity // the rare states in the order in which runs reached them
}

// A rarity is a rare state: a name of Sometimes that runs have reached.
type rarity struct {
	name  string
	tries int     // the number of runs that have reached the state or have begun there
	found int     // the number of seeds whose runs have reached the state
	trail []trail // some runs that have reached the state, each with a different seed
}

// A trail is a run that has reached a rarity, with the step at which the run reached it.
type trail struct {
	Run
	step int
}

const (
	round  = 32 // the number of runs in a round
	trails = 64 // the maximum number of trails of a rarity
)

// plan chooses the next run.
func (s *search) plan() Run {
	if !s.guided || len(s.rarities) == 0 || s.draws.Below(2) == 0 {
		r := Run{Seed: s.next}
		s.next++
		return r
	}
	from := s.pick()
	from.tries++
	t := from.trail[s.draws.Below(len(from.trail))]
	t.Forks = append(slices.Clip(t.Forks), Fork{t.step + 1, s.draws.Uint64() >> 40, true})
	return t.Run
}

// pick draws a rarity with a probability in proportion to 1/tries.
func (s *search) pick() *rarity {
	all := 0.0
	for _, r := range s.rarities {
		all += 1 / float64(r.tries)
	}
	at := all * float64(s.draws.Uint64()>>11) / (1 << 53)
	for _, r := range s.rarities {
		if at -= 1 / float64(r.tries); at < 0 {
			return r
		}
	}
	return s.rarities[len(s.rarities)-1]
}

// ran records the rare states that r has reached. It keeps one trail for each seed and state. Otherwise the forks of a seed that reaches
// the state easily would displace all other trails, although these forks may share a property that makes a failure impossible. A trail
// contains only the forks up to its step.
func (s *search) ran(r Run, came []Milestone) {
	for _, m := range came {
		i := slices.IndexFunc(s.rarities, func(r *rarity) bool { return r.name == m.Name })
		if i < 0 {
			i = len(s.rarities)
			s.rarities = append(s.rarities, &rarity{name: m.Name})
		}
		x := s.rarities[i]
		x.tries++
		if slices.ContainsFunc(x.trail, func(t trail) bool { return t.Seed == r.Seed }) {
			continue
		}
		x.found++
		t := trail{r, m.Step}
		t.Forks = slices.DeleteFunc(slices.Clone(r.Forks), func(f Fork) bool { return f.Step > m.Step })
		if len(x.trail) < trails {
			x.trail = append(x.trail, t)
		} else if k := s.draws.Below(x.found); k < trails {
			x.trail[k] = t
		}
	}
}
