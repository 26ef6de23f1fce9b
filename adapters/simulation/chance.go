package simulation

import _ "unsafe" // for a linkname

// A chance decides what the runtime draws: the order of a select and of a range over a map, math/rand.
type chance interface {
	Seed(seed uint64)      // for a window
	SeedCheap(seed uint64) // for a call of a guest
}

// A Level says what of a run with guests is under control.
type Level byte

const (
	LevelNone   Level = iota // a run without guests
	LevelOrder               // the order of events and of calls
	LevelChance              // and what the runtime draws: select, a range over a map, math/rand
)

func (l Level) String() string { return [...]string{"none", "A: order", "B: order and chance"}[l] }

// order is level A.
type order struct{}

func (order) Seed(uint64)      {}
func (order) SeedCheap(uint64) {}

// openChance returns the best that there is, and for level A the reason.
func openChance() (chance, Level, error) { return order{}, LevelOrder, nil }

//go:linkname nanotime runtime.nanotime
func nanotime() int64
