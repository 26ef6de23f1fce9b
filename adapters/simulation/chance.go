package simulation

import (
	"errors"
	_ "unsafe" // for a linkname
)

// A chance decides what the runtime draws: the order of a select and of a range over a map, math/rand.
type chance interface {
	Seed(seed uint64)      // for a window
	SeedCheap(seed uint64) // for a call of a guest: the runtime itself draws from it, for caches that outlive a run
}

// A Level says what of a run with guests is under control.
type Level byte

const (
	LevelNone    Level = iota // a run without guests
	LevelOrder                // A: the order of events and of calls
	LevelChance               // B: and what the runtime draws: select, a range over a map, math/rand
	LevelOverlay              // C: and the runtime is built with the overlay of adapters/simulation/overlay
)

func (l Level) String() string {
	return [...]string{"none", "A (order)", "B (order and chance)", "C (the runtime's overlay)"}[l]
}

// order is level A.
type order struct{}

func (order) Seed(uint64)      {}
func (order) SeedCheap(uint64) {}

// openChance returns the best that there is, and for level A the reason.
func openChance() (chance, Level, error) {
	return order{}, LevelOrder, errors.New("the runtime's random states are not set yet")
}

//go:linkname nanotime runtime.nanotime
func nanotime() int64
