package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// This file shortens a failing seed by trying variants of the seed. A variant omits faults, or makes new random draws from some step on.
// With new draws from the first step on, a variant is like another seed. The run of a variant ends when its story becomes longer than the
// shortest story so far, so most tries are cheap.

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
	best, same, steps, draw := v, v.sameness(r), r.Steps, draws.Source(seed)
	for range tries {
		next := &variant{off: map[string]bool{}, forks: slices.Clone(best.forks), limit: len(best.story)}
		maps.Copy(next.off, best.off)
		how := draw.Below(4)
		if n := len(best.came); how < 2 && n > 0 {
			at, size := draw.Below(n), 1+draw.Below(max(1, n>>draw.Below(6)))
			for _, name := range best.came[at:min(n, at+size)] {
				next.off[name] = true
			}
		}
		if how != 1 {
			at := 0
			if how != 2 {
				at = draw.Below(max(1, steps)) >> (4 * draw.Below(4))
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
