package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
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
	f := &Failure{Package: s.ImportPath, Test: o.test, Message: strings.TrimRight(o.message, "\n"), Order: o.order, Orders: s.tried, Repeats: s.repeat, Output: o.output, module: s.pkg, root: s.g.Root}
	run := s.run
	if top, _, _ := strings.Cut(o.test, "/"); top != "" && !strings.Contains(run, "/") { // the test alone, if it fails alone
		alone := "^" + regexp.QuoteMeta(top) + "$"
		if again := s.perform(ctx, s.pkg, s.binary, alone, o.order, ""); again.failed && again.kind == o.kind {
			run = alone
		}
	}
	f.Failed = s.countRepeats(ctx, o, run, o.order)
	order := o.order
	if f.Failed > 0 && ctx.Err() == nil {
		stop := s.progress(func() string {
			return fmt.Sprintf("%s: looking for the switches that the failure of %s needs", s.ImportPath, o.test)
		})
		f.Switches, f.Needed, order = s.shorten(ctx, o, run)
		stop()
	}
	if order != o.order {
		f.ShortOrder, f.ShortFailed = order, s.countRepeats(ctx, o, run, order)
		if f.ShortFailed == 0 {
			f.ShortOrder, order = "", o.order
		}
	}
	if last, log, err := s.logged(ctx, run, order); err == nil {
		f.Steps = f.steps(parse(log))
		if last.failed && last.kind == o.kind { // the values in the message may be others
			f.Message, f.Output = strings.TrimRight(last.message, "\n"), last.output
		}
	}
	f.Command = s.repeatCommand(order, run)
	if s.race && ctx.Err() == nil {
		f.Race = s.underRace(ctx, run, order)
	}
	return f
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
// and isolating failure-inducing input, 2002), with the jobs as parallel tries. It returns the number of switches of the whole order and the
// number of needed ones. Without a shorter order that fails, order is o.order.
func (s *search) shorten(ctx context.Context, o *outcome, run string) (all, needed int, order string) {
	end := time.Now().Add(s.hunt.shorten)
	_, log, err := s.logged(ctx, run, o.order)
	if err != nil {
		return 0, 0, o.order
	}
	keys := switches(parse(log))
	all = len(keys)
	// first returns the first of the candidates that fails in the same way.
	first := func(candidates [][]key) ([]key, bool) {
		fails := func(r *outcome) bool { return r != nil && r.failed && r.kind == o.kind }
		results := s.together(ctx, len(candidates), func(i int) *outcome {
			return s.perform(ctx, s.pkg, s.binary, run, with(o.order, candidates[i]), "")
		}, fails)
		for i, r := range results {
			if fails(r) {
				return candidates[i], true
			}
		}
		return nil, false
	}
	if got, ok := first([][]key{nil, keys}); !ok {
		return all, all, o.order
	} else if len(got) == 0 {
		return all, 0, with(o.order, nil)
	}
	for parts := 2; len(keys) > 1 && ctx.Err() == nil && time.Now().Before(end); {
		parts = min(parts, len(keys))
		var candidates [][]key
		chunk := func(i int) (from, to int) { return i * len(keys) / parts, (i + 1) * len(keys) / parts }
		if parts == 2 {
			for i := range parts {
				from, to := chunk(i)
				candidates = append(candidates, keys[from:to])
			}
		} else {
			for i := range parts {
				from, to := chunk(i)
				candidates = append(candidates, slices.Concat(keys[:from], keys[to:]))
			}
		}
		got, ok := first(candidates)
		switch {
		case ok:
			keys, parts = got, max(2, parts-1)
		case parts == len(keys):
			return all, len(keys), with(o.order, keys)
		default:
			parts = min(len(keys), 2*parts)
		}
	}
	return all, len(keys), with(o.order, keys)
}

// switches returns the switches of an order. It leaves out those after which the same goroutine runs on: nobody else was runnable, so they have
// changed nothing. A change of a priority has effects later, however.
func switches(events []event) []key {
	seen := map[key]bool{}
	levels := slices.ContainsFunc(events, func(e event) bool { return e.kind == 'l' })
	for i, e := range events {
		if bytes.IndexByte([]byte("pwstl"), e.kind) < 0 {
			continue
		}
		if (e.kind == 'p' || e.kind == 'w') && !levels && i+1 < len(events) && events[i+1].kind == 'q' && events[i+1].id == e.id {
			continue
		}
		seen[key{e.id >> 40, e.kind, e.n}] = true
	}
	return slices.SortedFunc(maps.Keys(seen), key.compare)
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
		args = append(args, "-run='"+strings.ReplaceAll(run, "'", ".")+"'")
	}
	return strings.Join(append(args, s.ImportPath), " ")
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
