package seeds

import (
	"maps"
	"regexp"
	"slices"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// This file shortens a failing run by trying variants of the run. A variant omits faults, or makes new random draws from some step on. The
// run of a variant ends when its story becomes longer than the shortest story so far, so most tries are cheap.

// A manner says how a try differs from the best run so far.
type manner int

const (
	omitAndFork manner = iota // the try omits faults, and makes new random draws from some step on
	omit
	redraw // new random draws from the first step on: the try is like another seed
	fork   // new random draws from some step on
	manners
)

var numbers = regexp.MustCompile(`(\d[\d.]*(ns|µs|ms|s|m|h)?)+`)

// sameness returns a text that is equal for failures that count as the same: the first line of the error, without numbers, durations and
// names of nodes.
func (r Result) sameness() string {
	if r.Exited {
		return Verdict(r.Err) // the text contains a line number, which must be the same
	}
	text := numbers.ReplaceAllString(Verdict(r.Err), "0")
	for _, name := range r.Record.named {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(numbers.ReplaceAllString(name, "0"))+`\b`).ReplaceAllString(text, "node")
	}
	return text
}

// shorten tries variants of a run, and returns the run with the shortest story that fails in the same way. perform must perform a run, and
// record its story.
func shorten(first Run, tries int, perform func(r Run, limit int) Result) Run {
	best, was := first, perform(first, 0)
	same, draw := was.sameness(), draws.Source(first.Seed)
	for range tries {
		limit := len(was.Record.story)
		next := try(best, was, &draw)
		r := perform(next, limit)
		if r.Unending || limit == 0 { // a goroutine of the run would disturb later runs, or no story can be shorter
			break
		}
		if r.sameness() == same {
			best, was = next, r
		}
	}
	maps.DeleteFunc(best.Off, func(name string, _ bool) bool { // the run has not reached these faults
		kind, n := cutNumber(name)
		return n > was.Record.count[kind]
	})
	return best
}

// try draws a variant of the run best, whose result is was.
func try(best Run, was Result, draw *draws.Source) Run {
	next := Run{Seed: best.Seed, Off: map[string]bool{}, Forks: slices.Clone(best.Forks)}
	maps.Copy(next.Off, best.Off)
	came, how := was.Record.came, manner(draw.Below(int(manners)))
	if n := len(came); (how == omitAndFork || how == omit) && n > 0 {
		at, size := draw.Below(n), 1+draw.Below(max(1, n>>draw.Below(6)))
		for _, name := range came[at:min(n, at+size)] {
			next.Off[name] = true
		}
	}
	if how == omit {
		return next
	}
	at := 0
	if how != redraw {
		at = draw.Below(max(1, was.Steps)) >> (4 * draw.Below(4))
	}
	next.Forks = append(slices.DeleteFunc(next.Forks, func(f Fork) bool { return f.Step >= at }), Fork{Step: at, Salt: draw.Uint64() >> 48})
	return next
}
