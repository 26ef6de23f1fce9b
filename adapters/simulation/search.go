package simulation

import "slices"

// A search chooses the runs of a Test. If it is guided, half of the runs have the next seed. The other half repeats an earlier run up to a
// rare state, and draws all chance anew from there on: importance splitting ("RESTART", Villén-Altamirano, 1991). Chance picks the state, a
// rarer one more often.
//
// The runs are planned in rounds, from the results of the rounds before, so that they are the same with any number of jobs.
type search struct {
	next     uint64 // seed
	guided   bool
	draws    source
	rarities []*rarity // the first found is the first
}

// A rarity is a name of Sometimes that runs have reached.
type rarity struct {
	name  string
	tries int     // runs that have reached it, and runs that have begun there
	seeds int     // seeds of the runs that have reached it
	trail []trail // some runs that have reached it, each of another seed
}

// A trail leads to a rarity.
type trail struct {
	run
	step int
}

// A run is a seed, and the steps at which all chance was drawn anew.
type run struct {
	seed  uint64
	forks []fork
}

// A mark is a name of Sometimes, and the step at which a run came to it.
type mark struct {
	name string
	step int
}

const (
	round  = 32 // runs
	trails = 64 // trails of a rarity
)

// plan chooses a run.
func (s *search) plan() run {
	if !s.guided || len(s.rarities) == 0 || s.draws.below(2) == 0 {
		r := run{seed: s.next}
		s.next++
		return r
	}
	from := s.pick()
	from.tries++
	t := from.trail[s.draws.below(len(from.trail))]
	t.forks = append(slices.Clip(t.forks), fork{t.step + 1, s.draws.Uint64() >> 40, true})
	return t.run
}

// pick draws a rarity, in proportion to its rareness.
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

// ran records the rare states that r has reached. It keeps one trail of each seed: otherwise the forks of a seed that comes to a rare state
// easily would push out all other trails, and may share a reason that makes a failure impossible. A trail has only the forks before it.
func (s *search) ran(r run, came []mark) {
	for _, m := range came {
		i := slices.IndexFunc(s.rarities, func(r *rarity) bool { return r.name == m.name })
		if i < 0 {
			i = len(s.rarities)
			s.rarities = append(s.rarities, &rarity{name: m.name})
		}
		x := s.rarities[i]
		x.tries++
		if slices.ContainsFunc(x.trail, func(t trail) bool { return t.seed == r.seed }) {
			continue
		}
		x.seeds++
		t := trail{r, m.step}
		t.forks = slices.DeleteFunc(slices.Clone(r.forks), func(f fork) bool { return f.step > m.step })
		if len(x.trail) < trails {
			x.trail = append(x.trail, t)
		} else if k := s.draws.below(x.seeds); k < trails {
			x.trail[k] = t
		}
	}
}
