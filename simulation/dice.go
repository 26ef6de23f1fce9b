package simulation

import (
	"math/rand/v2"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// The dice of a World are its random sources. Each source has a purpose, so that draws for one purpose do not change other draws.
type dice struct {
	seed    uint64
	order   draws.Source // draws the next entry of World.ready
	net     draws.Source // draws latencies and faults of the network
	disk    draws.Source
	random  draws.Source // the source for sched.Rand
	choices draws.Source // the source behind rand
	rand    *rand.Rand
	rare    map[string]*bug // names that were passed to Buggify
	forks   []seeds.Fork    // forks at later steps, in order
	salt    uint64          // the combined salts of the forks so far; 0 means no fork
}

func newDice(seed uint64, forks []seeds.Fork) dice {
	d := dice{seed: seed, forks: forks}
	for i, s := range d.all() {
		*s = draws.Source(draws.Mix(seed, uint64(i)))
	}
	return d
}

func (d *dice) all() []*draws.Source {
	return []*draws.Source{&d.order, &d.net, &d.disk, &d.random, &d.choices}
}

// fork reseeds the random sources once the run has reached the step of a fork. Separate sources, such as the sources of RandOf and Buggify, are
// reseeded only if Fork.All is true.
func (d *dice) fork(step int) {
	for len(d.forks) > 0 && step >= d.forks[0].Step {
		salt := d.forks[0].Salt
		for _, s := range d.all() {
			*s = draws.Source(draws.Mix(uint64(*s), salt))
		}
		if d.forks[0].All {
			d.salt = draws.Mix(d.salt, salt)
		}
		d.forks = d.forks[1:]
	}
}

// of returns the n'th source of a kind of which there are many, such as a source for each connection.
func (d *dice) of(n int) draws.Source { return draws.Source(draws.Mix(d.seed^d.salt, uint64(n))) }

// A bug is the state of a name that was passed to Buggify. It has its own random source, so that other calls do not change its draws.
type bug struct {
	on    bool
	draws draws.Source
	salt  uint64 // the World's salt when the source was last seeded
}
