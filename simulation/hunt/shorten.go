package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A key names a switch: a draw of a goroutine that has changed the order. The runtime wants keys in ascending order.
type key struct {
	id   uint64 // the top 24 bits of the goroutine's id
	kind byte
	n    uint64
}

func (k key) String() string { return fmt.Sprintf("%06x%c%d", k.id, k.kind, k.n) }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.id, other.id), cmp.Compare(k.kind, other.kind), cmp.Compare(k.n, other.n))
}

// with returns the value of BRAID_ORDER for an order that has only the given switches of the order seed.
func with(seed string, keys []key) string {
	keys = slices.SortedFunc(slices.Values(keys), key.compare)
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.String()
	}
	return seed + ":" + strings.Join(texts, ",")
}

// examine repeats, shortens and explains the failure o.
func (s *search) examine(ctx context.Context, o *outcome) *Failure {
	stop := s.progress(func() string {
		return fmt.Sprintf("%s: order %s fails, and is repeated and shortened", s.ImportPath, o.order)
	})
	defer stop()
	run := s.run
	for _, name := range s.testsOf(ctx, o) { // the test alone, if it fails alone
		parts := strings.Split(name, "/")
		for i, part := range parts {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
		alone := strings.Join(parts, "/")
		if again := s.perform(ctx, s.pkg, s.binary, alone, o.order, ""); again.failed && again.kind == o.kind {
			run = alone
			o.test = cmp.Or(o.test, name)
			break
		}
	}
	f := &Failure{Package: s.ImportPath, Test: o.test, Message: strings.TrimRight(o.message, "\n"), Order: o.order, Orders: s.tried, Repeats: s.repeat,
		Output: o.output, module: s.pkg, root: s.g.Root}
	f.Failed = s.countRepeats(ctx, o, run, o.order)
	order := o.order
	if f.Failed > 0 && ctx.Err() == nil {
		order = s.shorten(ctx, o, run, f)
	}
	if order != o.order {
		if f.ShortFailed = s.countRepeats(ctx, o, run, order); f.ShortFailed == 0 {
			order = o.order
		} else {
			f.ShortOrder = kept(order)
		}
	}
	if last, log, err := s.logged(ctx, o, run, order); err == nil {
		events := parse(log, f.place)
		if o.ended {
			events = untilEnd(events, o.test)
		}
		f.Steps = f.steps(events)
		if last.failed && last.kind == o.kind { // the values in the message may be others
			f.Message, f.Output = strings.TrimRight(last.message, "\n"), last.output
		}
	}
	f.Command = s.repeatCommand(cmp.Or(f.ShortOrder, o.order), run)
	if s.race && ctx.Err() == nil {
		f.Race = s.underRace(ctx, run, order)
	}
	return f
}

// testsOf returns the test that has failed, and the test of which it is a part. The output of a panic in a goroutine does not name the test: then
// testsOf takes the test that began last.
func (s *search) testsOf(ctx context.Context, o *outcome) (names []string) {
	name := o.test
	if name == "" {
		_, log, _ := s.logged(ctx, o, s.run, o.order)
		for _, e := range parse(log, nil) {
			if e.kind == 'n' {
				name = e.text
			}
		}
	}
	if name == "" {
		return nil
	}
	names = []string{name}
	if top, _, ok := strings.Cut(name, "/"); ok {
		names = append(names, top)
	}
	return names
}

// kept returns a value of BRAID_ORDER for the order that is of use after the hunt: a long list of switches is in a file of the user's cache.
func kept(order string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return order
	}
	dir = filepath.Join(dir, "braid", "orders")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return order
	}
	value, err := inFile(dir, order)
	if err != nil {
		return order
	}
	return value
}

// countRepeats counts how often an order fails in the same way.
func (s *search) countRepeats(ctx context.Context, o *outcome, run, order string) (n int) {
	for _, again := range s.together(ctx, s.repeat, func(int) *outcome { return s.perform(ctx, s.pkg, s.binary, run, order, "") }, func(*outcome) bool { return false }) {
		if again != nil && again.failed && again.kind == o.kind {
			n++
		}
	}
	return n
}

// shorten looks for as few switches as possible with which the order fails in the same way: delta debugging (Zeller and Hildebrandt, Simplifying
// and isolating failure-inducing input, 2002), with the jobs as parallel tries. Unlike theirs, a sweep over the list goes on behind a part that was
// left out, and does not begin again. shorten fills in the fields of f about switches, and returns the shortest order that has failed.
func (s *search) shorten(ctx context.Context, o *outcome, run string, f *Failure) (order string) {
	limited, cancel := context.WithTimeout(ctx, s.hunt.shorten)
	defer cancel()
	_, log, err := s.logged(limited, o, run, o.order)
	if err != nil {
		return o.order
	}
	effective, all := switches(parse(log, nil))
	f.Switches = len(effective)
	fails := func(r *outcome) bool { return r != nil && r.failed && r.kind == o.kind }
	// first returns the index of the first of the candidates that fails in the same way. Candidates that take much longer than the order do not.
	first := func(candidates ...[]key) (i int, ok bool) {
		results := s.together(limited, len(candidates), func(i int) *outcome {
			patient, cancel := context.WithTimeout(limited, 4*o.took+2*time.Second)
			defer cancel()
			return s.perform(patient, s.pkg, s.binary, run, with(o.order, candidates[i]), "")
		}, fails)
		i = slices.IndexFunc(results, fails)
		return i, i >= 0
	}
	candidates := [][]key{nil, effective, all}
	i, ok := first(candidates...)
	if !ok {
		return o.order
	}
	keys := candidates[i]
	f.Minimal = s.sweep(limited, &keys, first)
	f.Needed = len(keys)
	return with(o.order, keys)
}

// sweep leaves out parts of keys as long as what is left fails, until no switch can be left out, which it reports, or until ctx ends. The parts
// are halves at first, and single switches in the end.
func (s *search) sweep(ctx context.Context, keys *[]key, first func(...[]key) (int, bool)) (minimal bool) {
	for size := (len(*keys) + 1) / 2; len(*keys) > 1; size = max(1, size/2) {
		before := len(*keys)
		for at := 0; at < len(*keys) && len(*keys) > 1; {
			size = min(size, (len(*keys)+1)/2) // never all of them
			var candidates [][]key
			for from := at; from < len(*keys) && len(candidates) < s.jobs; from += size {
				candidates = append(candidates, slices.Concat((*keys)[:from], (*keys)[min(from+size, len(*keys)):]))
			}
			i, ok := first(candidates...)
			if ok {
				*keys = candidates[i]
				at += i * size
			} else {
				at += len(candidates) * size
			}
			if ctx.Err() != nil {
				return false
			}
		}
		if size == 1 && len(*keys) == before {
			break
		}
	}
	return true
}

// switches returns the switches of an order in the sequence in which they occur. Those after which the same goroutine runs on are not effective:
// nobody else was runnable, so they have changed nothing. A change of a priority has effects later, however.
func switches(events []event) (effective, all []key) {
	seen := map[key]int{} // 2 if effective
	levels := slices.ContainsFunc(events, func(e event) bool { return e.kind == 'l' })
	for i, e := range events {
		if bytes.IndexByte([]byte("pwstl"), e.kind) < 0 {
			continue
		}
		k := key{e.id >> 40, e.kind, e.n}
		if seen[k] == 0 {
			all = append(all, k)
			seen[k] = 1
		}
		runsOn := i+1 < len(events) && events[i+1].kind == 'q' && events[i+1].id == e.id
		if seen[k] == 1 && (levels || !runsOn || e.kind != 'p' && e.kind != 'w') {
			effective = append(effective, k)
			seen[k] = 2
		}
	}
	return effective, all
}

// repeatCommand returns a command for a shell that repeats an order, in the working directory of the hunt.
func (s *search) repeatCommand(order, run string) string {
	args := []string{"BRAID_ORDER=" + order}
	for _, e := range s.g.Env {
		if !strings.HasPrefix(e, "PATH=") {
			args = append(args, e)
		}
	}
	args = append(args, s.g.Command, "test", "-vet=off", "-count=1", "-parallel=4", "-overlay="+s.g.List)
	if s.tags != "" {
		args = append(args, "-tags="+s.tags)
	}
	if s.short {
		args = append(args, "-short")
	}
	if run != "" {
		args = append(args, "-run="+run)
	}
	args = append(args, s.ImportPath)
	for i, a := range args {
		args[i] = quoted(a)
	}
	return strings.Join(args, " ")
}

// quoted returns an argument as a shell reads it. The name in an assignment is not quoted, since the shell would then take the assignment for a
// command.
func quoted(a string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_@%+=:,./-", r)
	}
	if strings.IndexFunc(a, func(r rune) bool { return !plain(r) }) < 0 {
		return a
	}
	name, value, assigned := strings.Cut(a, "=")
	if name += "="; !assigned {
		name, value = "", a
	}
	return name + "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// underRace performs an order with the race detector and says what it has found.
func (s *search) underRace(ctx context.Context, run, order string) string {
	binary, err := s.build(ctx, s.pkg, "-race")
	if err != nil {
		return "the race detector cannot be used: " + strings.TrimSpace(err.Error())
	}
	o := s.perform(ctx, s.pkg, binary, run, order, "")
	if _, report, ok := strings.Cut(o.output, "WARNING: DATA RACE\n"); ok {
		report, _, _ = strings.Cut(report, "==================")
		return "the race detector reports a data race in this order:\n\n" + strings.TrimRight(report, "\n")
	}
	if !o.failed {
		return "with the race detector, the order passes: it needs no data race, or the detector has changed the order"
	}
	return "the race detector reports no data race in this order"
}
