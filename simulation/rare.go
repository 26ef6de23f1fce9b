package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"

	"github.com/braidgo/braid/internal/splitmix"
	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// Rand returns a random source for the test's own choices. Draws from this source do not affect the order of tasks or the network.
func (w *World) Rand() *rand.Rand {
	if w.guests != nil || !(tasks{w}).beginCall() {
		return rand.New(worldDraws{w})
	}
	if w.dice.rand == nil {
		w.dice.rand = rand.New(worldDraws{w})
	}
	return w.dice.rand
}

// RandOf returns a Rand that draws from s. The caller must seed s with draws from w.Rand. Draws from the new Rand do not affect other
// sources, so that a package such as nemesis may draw at any time. The Rand returns s's own values, except in a run that Test continues
// with new random draws: see TestOptions.Guided.
func (w *World) RandOf(s rand.Source) *rand.Rand { return rand.New(apart{w, s}) }

type apart struct {
	w *World
	s rand.Source
}

func (a apart) Uint64() uint64 {
	x := a.s.Uint64()
	if a.w.dice.salt != 0 {
		x = splitmix.Mix(x ^ a.w.dice.salt)
	}
	return x
}

// worldDraws is the source behind Rand. A draw on a goroutine outside the World ends the run, because the draw would come at a different time in
// the next run.
type worldDraws struct{ w *World }

func (d worldDraws) Uint64() uint64 {
	x, drawn := uint64(0), false
	d.w.do(func() { x, drawn = d.w.dice.choices.Uint64(), true })
	if !drawn {
		return rand.Uint64()
	}
	return x
}

// Log adds a line to the trace. The line also changes the hash, so two runs that log different lines count as different.
func (w *World) Log(format string, args ...any) {
	text := fmt.Sprintf(format, args...) // formatted first, because a String method may call the World, or may lock a mutex that a guest holds
	w.entrance().post(func() { w.log(text) })
}

// Sometimes names a rare state that the test should cover. A run reaches the name when cond is true. Test reports how many seeds have
// reached each name, and fails if, after a hundred seeds or more, none has reached it. With TestOptions.Guided, further runs begin in such
// states. A nil World ignores the call.
func (w *World) Sometimes(name string, cond bool) {
	if w == nil {
		return
	}
	w.entrance().post(func() {
		if reached, known := w.marks[name]; reached || known && !cond {
			return
		}
		if w.marks == nil {
			w.marks = map[string]bool{}
		}
		if w.marks[name] = cond; cond {
			w.came = append(w.came, seeds.Milestone{Name: name, Step: w.steps})
			w.log("sometimes: " + name)
		}
	})
}

// Buggify returns true for some calls in some runs, as the seed decides. The program under test should then do something correct but rare:
// a batch of one, a timer that fires early, a queue that is full. A name takes effect in a quarter of the runs. In these runs a quarter of
// its calls return true, on average. A nil World returns false.
func (w *World) Buggify(name string) (rarely bool) {
	if w == nil {
		return false
	}
	w.do(func() {
		b := w.dice.rare[name]
		if b == nil {
			if w.dice.rare == nil {
				w.dice.rare = map[string]*bug{}
			}
			b = &bug{draws: draws.Source(draws.Mix(w.o.Seed, draws.HashString(0, name)))}
			b.on = b.draws.Below(4) == 0
			w.dice.rare[name] = b
		}
		if b.salt != w.dice.salt {
			b.salt, b.draws = w.dice.salt, draws.Source(draws.Mix(uint64(b.draws), w.dice.salt))
		}
		if rarely = b.on && b.draws.Below(4) == 0; rarely {
			w.log("buggify: " + name)
		}
	})
	return rarely
}

// Fault reports whether a fault of this kind should occur now. Fault returns true, except while Test shortens a failure: then it returns
// false for some faults, to find the faults that matter. A program that injects faults must call Fault before each fault, but after all
// random draws about the fault, so that an omitted fault does not change other draws. Fault panics if kind is not a word of letters. A nil
// World returns true.
func (w *World) Fault(kind string) (comes bool) {
	if kind == "" || strings.ContainsFunc(kind, func(r rune) bool { return !unicode.IsLetter(r) }) {
		panic("simulation: the kind of a fault must consist of letters")
	}
	comes = true
	if w != nil {
		w.do(func() { comes = w.record.Comes(kind) })
	}
	return comes
}
