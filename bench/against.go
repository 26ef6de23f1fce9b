package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// readRuns reads a file that -json has written, or all of a directory.
func readRuns(name string) (all []run, err error) {
	defer caught(&err)
	files := []string{name}
	if must(os.Stat(name)).IsDir() {
		files = must(filepath.Glob(filepath.Join(name, "*.json")))
	}
	if len(files) == 0 {
		ok(errors.New("no runs in " + name))
	}
	runs := make([]run, len(files))
	for i, f := range files {
		runs[i] = readRun(f)
	}
	return runs, nil
}

func readRun(name string) (r run) {
	if err := json.Unmarshal(must(os.ReadFile(name)), &r); err != nil {
		ok(fmt.Errorf("%s: %w", name, err))
	}
	return r
}

// certain is how much worse a ratio has to be even where no noise was seen, as where something is counted, and how much
// worse it may be if there was little.
const certain = 1.03

// A past is what earlier runs say of one row: the range of the ratios of their rounds, those at either end left out.
type past struct{ low, ratio, high float64 }

// pastOf is false if none of then has the row.
func pastOf(id string, then []run) (p past, ok bool) {
	var ratios []float64
	for _, r := range then {
		i := slices.IndexFunc(r.Results, func(old result) bool { return old.ID == id })
		if i < 0 {
			continue
		}
		old := r.Results[i]
		if ratios == nil {
			p.low, p.high = old.Low, old.High
		}
		p.low, p.high, ratios = min(p.low, old.Low), max(p.high, old.High), append(ratios, old.Ratio)
	}
	if ratios == nil {
		return p, false
	}
	p.ratio = median(ratios)
	return p, true
}

// change compares. The ratio has changed if its whole range now lies outside of its range in all earlier runs, by more than its
// uncertainty.
func change(now result, then past) string {
	switch {
	case now.Low > certain*then.high:
		return "REGRESSED"
	case certain*now.High < then.low:
		return "better"
	}
	return "same"
}

// regressed prints how the ratios have changed, and reports whether one has become worse by more than its noise.
func regressed(w io.Writer, now run, then []run) (any bool) {
	fmt.Fprintln(w)
	for _, old := range then {
		if !old.Machine.like(now.Machine) {
			fmt.Fprintf(w, "The run of %s was on another machine or with another Go (%s): ratios need not agree.\n",
				old.Date.Format("2006-01-02 15:04"), old.Machine)
		}
	}
	for _, r := range now.Results {
		old, ok := pastOf(r.ID, then)
		if !ok {
			fmt.Fprintf(w, "%-24s new\n", r.ID)
			continue
		}
		word := change(r, old)
		any = any || word == "REGRESSED"
		fmt.Fprintf(w, "%-24s %.2f [%.2f–%.2f] was %.2f [%.2f–%.2f] %s\n", r.ID, r.Ratio, r.Low, r.High, old.ratio, old.low, old.high, word)
	}
	return any
}
