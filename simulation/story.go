package simulation

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A variant is a change to the run of a seed. In BRAID_SEED, the String of the variant follows the seed.
type variant struct {
	off   map[string]bool // the faults to omit, by kind and number
	forks []fork          // sorted by step

	silent bool // the run records no story
	stop   int  // the step before which a debugger stops the run
	limit  int  // the greatest length of the story; 0 means no limit

	// The results of the variant's last run.
	story []scene
	came  []string       // the faults that occurred, by kind and number
	count map[string]int // the number of faults of each kind, including omitted faults
	named []string       // the names of the nodes
	bands []*band        // sorted by their beginning
}

type scene struct {
	step  int
	order int // the index in the story
	event
}

var errLonger = errors.New("simulation: longer than another variant")

// options returns o with the changes that a run of v needs.
func (v *variant) options(o Options) Options {
	v.story, v.came, v.named, v.bands, v.count = nil, nil, nil, nil, map[string]int{}
	o.variant = v
	if v.silent {
		return o
	}
	watch := o.watch
	o.watch = func(w *World, e event) {
		v.record(w, e)
		if watch != nil {
			watch(w, e)
		}
	}
	return o
}

// telling reports whether the run records a story.
func (w *World) telling() bool { return w.o.variant != nil && !w.o.variant.silent }

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
		w.do(func() { comes = w.comes(kind) })
	}
	return comes
}

func (w *World) comes(kind string) bool {
	v := w.o.variant
	if v == nil {
		return true
	}
	v.count[kind]++
	name := kind + strconv.Itoa(v.count[kind])
	if v.off[name] {
		return false
	}
	v.came = append(v.came, name)
	return true
}

// record adds e to the story if e is a message, a fault or a line of Log.
func (v *variant) record(w *World, e event) {
	switch e.kind {
	case made:
		v.named = append(v.named, e.text)
	case crashed:
		w.band(e.of, nil, [...]string{"crashed", "without power"}[e.n], true)
	case restarted:
		w.band(e.of, nil, "crashed", false)
		w.band(e.of, nil, "without power", false)
	}
	switch e.kind {
	case resumed, begun, called, fired:
		if v.stop > 0 && w.steps >= v.stop {
			v.stop = 0
			fmt.Fprintf(os.Stderr, "simulation: before step %d: %v\n", w.steps, e)
			runtime.Breakpoint()
		}
	case arrived:
		if e.message != nil {
			*e.message = message{by: e.message.by, there: true, arrived: e.at, before: len(v.story)}
		}
	case logged, sent, broken, crashed, restarted:
		if v.story = append(v.story, scene{w.steps, len(v.story), e}); v.limit > 0 && len(v.story) > v.limit {
			w.fail(errLonger)
		}
	}
}

// scenes returns the story. It merges the segments of one Write into one message.
func (v *variant) scenes() (all []scene) {
	for _, s := range v.story {
		if n := len(all) - 1; n >= 0 && s.kind == sent && all[n].kind == sent && all[n].message.by == s.message.by && all[n].at == s.at {
			all[n].n, all[n].text, all[n].message = all[n].n+s.n, all[n].text+s.text, s.message
			continue
		}
		all = append(all, s)
	}
	return all
}

func (s scene) describe() string {
	switch {
	case s.kind == sent && s.message.there:
		return fmt.Sprintf("%s sends %d bytes to %s, there at %v: %q", s.message.by.node.name, s.n, hostName(s.of), s.message.arrived, s.text)
	case s.kind == sent:
		return fmt.Sprintf("%s sends %d bytes to %s, lost: %q", s.message.by.node.name, s.n, hostName(s.of), s.text)
	case s.kind == logged && s.host == nil:
		return s.text
	}
	return s.act()
}

// print returns the story of the last run as text. Each line contains the step, the time and a description of an event.
func (v *variant) print(r Report) string {
	var b strings.Builder
	line := func(step int, at time.Duration, text string) { fmt.Fprintf(&b, "%7d %14v  %s\n", step, at, text) }
	for _, s := range v.scenes() {
		line(s.step, s.at, s.describe())
	}
	line(r.Steps, r.Elapsed, verdict(r))
	return b.String()
}

// A band is the duration of a fault of a node, or of the link between two nodes.
type band struct {
	of, with *host // the node that has the fault, and nil; or the two nodes of the link that has it
	what     string
	from, to time.Duration // the beginning and the end; the end is -1 while the fault lasts
	at       int           // the length of the story when the fault began
	until    int           // the length of the story when the fault ended
}

// band records the beginning or the end of a fault for the diagram. The record is not an event, and does not change the hash.
func (w *World) band(of, with *host, what string, begins bool) {
	if begins {
		w.hit(of.name)
	}
	if !w.telling() {
		return
	}
	v := w.o.variant
	i := slices.IndexFunc(v.bands, func(b *band) bool { return b.of == of && b.with == with && b.what == what && b.to < 0 })
	switch {
	case begins && i < 0:
		v.bands = append(v.bands, &band{of, with, what, w.now, -1, len(v.story), -1})
	case !begins && i >= 0:
		v.bands[i].to, v.bands[i].until = w.now, len(v.story)
	}
}
