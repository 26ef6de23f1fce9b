package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braidgo/braid/simulation/internal/seeds"
)

// A fault of a node whose name nobody else uses hits nothing, so that a test with a wrong name would pass for ever. The World therefore
// records the names of all nodes that have had a fault, and the nodes that were used: that had a task, a callback, a guest, a listener, a
// socket, a dial or a file.

// hit records that the node with this name has had a fault, itself or on a link.
func (w *World) hit(name string) {
	if w.harmed == nil {
		w.harmed = map[string]bool{}
	}
	w.harmed[name] = true
}

// hits returns the names of the nodes that have had a fault, with true for each node that was used. It writes the other names to the trace.
func (w *World) hits() (used map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(w.harmed)) {
		if used == nil {
			used = map[string]bool{}
		}
		n := w.nodes[name]
		used[name] = n != nil && n.used
	}
	if missed := seeds.Missed(used); len(missed) > 0 && w.o.Trace != nil {
		_, _ = fmt.Fprintf(w.o.Trace, "%s: faults, but no node of this name does anything\n", strings.Join(missed, ", "))
	}
	return used
}
