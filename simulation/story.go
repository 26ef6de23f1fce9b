package simulation

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unicode"

	"github.com/braidgo/braid/simulation/internal/seeds"
)

// Fault reports whether a fault of this kind should occur now. Fault returns true, except while Test shortens a failure: then it returns
// false for some faults, to find the faults that matter. A program that injects faults must call Fault before each fault, but after all
// random draws about the fault, so that an omitted fault does not change other draws. Fault panics if kind is not a word of letters. A nil
// World returns true.
func (w *World) Fault(kind string) (comes bool) {
	if kind == "" || strings.ContainsFunc(kind, func(r rune) bool { return !unicode.IsLetter(r) }) {
		panic("simulation: the kind of a fault is a word of letters")
	}
	comes = true
	if w != nil {
		w.do(func() { comes = w.record.Comes(kind) })
	}
	return comes
}

// tell adds e to the story of the run if e is a message, a fault or a line of Log.
func (w *World) tell(e event) {
	r := w.record
	scene := seeds.Scene{Step: w.steps, At: e.at}
	switch e.kind {
	case made:
		r.Name(e.text)
		return
	case resumed, begun, called, fired:
		if r.Stops(w.steps) {
			fmt.Fprintf(os.Stderr, "simulation: before step %d: %v\n", w.steps, e)
			runtime.Breakpoint()
		}
		return
	case arrived:
		if e.message != nil {
			r.Arrives(e.message, e.at)
		}
		return
	case sent:
		scene.To, scene.Bytes, scene.Text, scene.Message = e.of.name, e.n, e.text, e.message
	case crashed:
		w.band(e.of, nil, [...]string{"crashed", "without power"}[e.n], true)
		scene.Text, scene.Crosses = e.act(), []string{e.of.name}
	case restarted:
		w.band(e.of, nil, "crashed", false)
		w.band(e.of, nil, "without power", false)
		scene.Text = e.act()
	case broken:
		scene.Text, scene.Crosses = e.act(), []string{e.host.name, e.of.name}
	case logged:
		if scene.Text = e.text; e.host != nil {
			scene.Text = e.act()
		}
	default:
		return
	}
	if !r.Add(scene) {
		w.fail(seeds.ErrLonger)
	}
}

// band records the beginning or the end of a fault for the diagram. The record is not an event, and does not change the hash.
func (w *World) band(of, with *host, what string, begins bool) {
	if begins {
		w.hit(of.name)
	}
	if !w.record.Tells() {
		return
	}
	other := ""
	if with != nil {
		other = with.name
	}
	w.record.Band(of.name, other, what, w.now, begins)
}
