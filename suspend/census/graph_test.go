package census

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/ledger"
)

// A deadlock consists only of waits and permits that two snapshots have seen. They all existed between the two snapshots.
func TestBoth(t *testing.T) {
	wait := func(seq uint64) ledger.Wait { return ledger.Wait{Seq: seq} }
	held := func(addr uintptr, holds ...ledger.Hold) ledger.Held { return ledger.Held{Addr: addr, By: holds} }
	hold := func(seq, n uint64) ledger.Hold { return ledger.Hold{Seq: seq, N: n} }
	owes := func(goroutine int64) ledger.Hold {
		return ledger.Hold{Who: ledger.Who{Goroutine: goroutine}, Seq: 2, N: 1}
	}
	waits, holds := both(
		[]ledger.Wait{wait(1), wait(2), wait(3)}, []ledger.Wait{wait(2), wait(4)},
		[]ledger.Held{held(8, hold(5, 3), hold(6, 1)), held(9, hold(7, 1)), held(10, owes(7)), held(11, owes(8))},
		[]ledger.Held{held(8, hold(5, 2)), held(9, hold(10, 1)), held(10, owes(9)), held(11, owes(8))})
	require.Equal(t, []ledger.Wait{wait(2)}, waits)
	require.Equal(t, []ledger.Held{held(8, hold(5, 2)), held(11, owes(8))}, holds, "the request 10 was passed on")
}

func TestExtents(t *testing.T) {
	var e extents[string]
	e.add(100, 100, "outer")
	e.add(120, 10, "inner")
	e.add(100, 8, "first")
	e.add(300, 0, "empty")
	for addr, want := range map[uintptr]string{
		99: "", 100: "first", 107: "first", 108: "outer", 119: "outer", 120: "inner", 129: "inner", 130: "outer", 199: "outer", 200: "",
		299: "", 300: "empty", 301: "",
	} {
		got, ok := e.find(addr)
		require.Equal(t, want, got, addr)
		require.Equal(t, want != "", ok)
	}
}
