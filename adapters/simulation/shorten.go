package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// This file shortens a failing seed by trying variants of the seed. A variant omits faults, or makes new random draws from some step on.
// With new draws from the first step on, a variant is like another seed. The run of a variant ends when its story becomes longer than the
// shortest story so far, so most tries are cheap.

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

// A fork is a step at which the random sources are reseeded. Separate sources, such as those of RandOf and Buggify, are reseeded only if
// the field named all is true.
type fork struct {
	step int
	salt uint64
	all  bool
}

// A message is a piece of data that a conn or a packetConn sends.
type message struct {
	by      *conn
	there   bool
	arrived time.Duration
	before  int // the length of the story at the arrival
}

// The maximum number of a message's bytes in a line of the trace, and in a line of the story.
const (
	traced = 64
	shown  = 120
)

// excerpt returns p as a string. If len(p) exceeds the limit, it returns only the beginning and the end of p, because an HTTP request has
// its request line at the beginning and its body at the end.
func excerpt(p []byte, most int) string {
	const gap = " ... "
	if len(p) <= most {
		return string(p)
	}
	head := (most - len(gap)) / 3
	return string(p[:head]) + gap + string(p[len(p)-(most-len(gap)-head):])
}

var errLonger = errors.New("simulation: longer than another variant")

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

// fork reseeds the random sources once the run has reached the step of a fork.
func (w *World) fork() {
	for len(w.forks) > 0 && w.steps >= w.forks[0].step {
		salt := w.forks[0].salt
		for _, s := range []*source{&w.order, &w.net, &w.disk, &w.random, &w.choices} {
			*s = source(mix(uint64(*s), salt))
		}
		if w.forks[0].all {
			w.salt = mix(w.salt, salt)
		}
		w.forks = w.forks[1:]
	}
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

var numbers = regexp.MustCompile(`(\d[\d.]*(ns|µs|ms|s|m|h)?)+`)

// sameness returns a text that is equal for failures that count as the same: the first line of the error, without numbers, durations and
// names of nodes.
func (v *variant) sameness(r Report) string {
	if errors.Is(r.Err, ErrExited) {
		return verdict(r) // the text contains a line number, which must be the same
	}
	text := numbers.ReplaceAllString(verdict(r), "0")
	for _, name := range v.named {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(numbers.ReplaceAllString(name, "0"))+`\b`).ReplaceAllString(text, "node")
	}
	return text
}

// shorten tries variants of v, and returns the variant with the shortest story that fails in the same way. It calls run() to perform the
// run of a variant.
func (v *variant) shorten(run func(*variant) Report, tries int, seed uint64) *variant {
	r := run(v)
	best, same, steps, draw := v, v.sameness(r), r.Steps, source(seed)
	for range tries {
		next := &variant{off: map[string]bool{}, forks: slices.Clone(best.forks), limit: len(best.story)}
		maps.Copy(next.off, best.off)
		how := draw.below(4)
		if n := len(best.came); how < 2 && n > 0 {
			at, size := draw.below(n), 1+draw.below(max(1, n>>draw.below(6)))
			for _, name := range best.came[at:min(n, at+size)] {
				next.off[name] = true
			}
		}
		if how != 1 {
			at := 0
			if how != 2 {
				at = draw.below(max(1, steps)) >> (4 * draw.below(4))
			}
			next.forks = append(slices.DeleteFunc(next.forks, func(f fork) bool { return f.step >= at }), fork{step: at, salt: draw.Uint64() >> 48})
		}
		r := run(next)
		if unending(r.Err) || next.limit == 0 { // a goroutine of the run would disturb later runs, or no story can be shorter
			break
		}
		if next.sameness(r) == same {
			best, steps = next, r.Steps
		}
	}
	maps.DeleteFunc(best.off, func(name string, _ bool) bool { // the run has not reached these faults
		kind, n := cutNumber(name)
		return n > best.count[kind]
	})
	return best
}

// cutNumber splits the name of a fault into its kind and its number.
func cutNumber(name string) (kind string, n int) {
	kind = strings.TrimRight(name, "0123456789")
	n, _ = strconv.Atoi(name[len(kind):])
	return kind, n
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

// changes reports whether v differs from the run of the seed.
func (v *variant) changes() bool { return v != nil && len(v.off)+len(v.forks) > 0 }

// String returns the text that parseVariant parses. The part -kind1,3..5 omits the faults 1, 3, 4 and 5 of a kind, and the part -12.34 is a
// fork at step 12 with the salt 34. In the form -12:34, the fork also reseeds separate sources.
func (v *variant) String() string {
	if !v.changes() {
		return ""
	}
	byKind := map[string][]int{}
	for _, name := range slices.Sorted(maps.Keys(v.off)) {
		kind, n := cutNumber(name)
		byKind[kind] = append(byKind[kind], n)
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		slices.Sort(byKind[kind])
		before := "-" + kind
		for all := byKind[kind]; len(all) > 0; before = "," {
			n := 1
			for n < len(all) && all[n] == all[0]+n {
				n++
			}
			if fmt.Fprint(&b, before, all[0]); n > 1 {
				fmt.Fprint(&b, "..", all[n-1])
			}
			all = all[n:]
		}
	}
	for _, f := range v.forks {
		fmt.Fprintf(&b, "-%d%c%d", f.step, map[bool]rune{false: '.', true: ':'}[f.all], f.salt)
	}
	return b.String()
}

var inVariant = regexp.MustCompile(`^(\pL+)((?:\d+(?:\.\.\d+)?,?)+)$`)

// parseVariant parses the String of a variant.
func parseVariant(s string) (*variant, error) {
	v := &variant{off: map[string]bool{}}
	if s == "" {
		return v, nil
	}
	for _, part := range strings.Split(s, "-")[1:] {
		step, salt, all := strings.Cut(part, ":")
		if !all {
			step, salt, _ = strings.Cut(part, ".")
		}
		at, err := strconv.Atoi(step)
		draws, err2 := strconv.ParseUint(salt, 10, 64)
		if cmp.Or(err, err2) == nil {
			v.forks = append(v.forks, fork{at, draws, all})
			continue
		}
		m := inVariant.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%q is no variant of a seed", s)
		}
		for _, span := range strings.Split(m[2], ",") {
			from, to, _ := strings.Cut(span, "..")
			first, err := strconv.Atoi(from)
			last, err2 := strconv.Atoi(cmp.Or(to, from))
			if err = cmp.Or(err, err2); err != nil || last-first > 1_000_000 {
				return nil, fmt.Errorf("%q is no variant of a seed", s)
			}
			for ; first <= last; first++ {
				v.off[m[1]+strconv.Itoa(first)] = true
			}
		}
	}
	return v, nil
}
