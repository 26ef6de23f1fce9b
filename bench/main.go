// Bench compares the library with its alternatives. In each row of a table, both sides do the same work in turn, in this process. The line
// of the row shows the ratio of their costs, so smaller is better. A curve shows a cost as a function of the size of the work.
//
//	go run . -quick                             measure all rows, in five minutes on a slow machine
//	go run . -quick mutex-ctx cancel-cost       choose rows by id, or by the part of the id before a slash
//	go run . -full                              measure all rows in longer rounds, and all curves, in twenty minutes
//	go run . -full ring fork                    choose rows and curves
//	go run . -list                              print the ids of all rows and curves
//	go run . -full -json now.json               write the figures to a file
//	go run . -full -results RESULTS.md          write the report, and the plots and tables of the curves in -dir
//	go run . -from now.json -results RESULTS.md write the report of an earlier run, and measure nothing
//	go run . -from now.json,rows.json ...       replace rows and curves of the earlier run by those of a later run
//
// A line shows the id, the median costs of one operation for Braid and for the peer, and the median of the ratios. It then shows the range
// of the ratios without the worst and the best ratio, and two upper bounds for the ratio, must and aim. The rows take turns, and each line
// is printed when its row is finished. Rows close to their must need more rounds and are printed last.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// A run holds the results that -json writes and -from reads.
type run struct {
	Date    time.Time     `json:"date"`
	Machine machine       `json:"machine"`
	Command string        `json:"command"`
	Full    bool          `json:"full"`
	Mode    mode          `json:"mode"`
	Took    time.Duration `json:"took"`
	Results []result      `json:"results"`
	Curves  []curveResult `json:"curves,omitempty"`
	Failed  []string      `json:"failed,omitempty"` // names each row or curve that could not be measured, with the reason
	Later   []string      `json:"later,omitempty"`  // names the rows and curves of each later run
}

// replace replaces rows and curves of r with the rows and curves of a later run that have the same ids. It sorts the rows in the order in
// which the function rows returns them.
func (r *run) replace(later run) {
	var ids []string
	for _, c := range later.Curves {
		ids = append(ids, c.ID)
	}
	r.Curves = append(slices.DeleteFunc(r.Curves, func(c curveResult) bool { return slices.Contains(ids, c.ID) }), later.Curves...)
	for _, x := range later.Results {
		ids = append(ids, x.ID)
	}
	r.Results = append(slices.DeleteFunc(r.Results, func(x result) bool { return slices.Contains(ids, x.ID) }), later.Results...)
	place := map[string]int{}
	for i, x := range rows() {
		place[x.id] = i
	}
	slices.SortStableFunc(r.Results, func(x, y result) int { return cmp.Compare(place[x.ID], place[y.ID]) })
	r.Later = append(r.Later, fmt.Sprintf("%s: measured %s by `%s`, at loads of %s and %s.", strings.Join(ids, ", "), when(later), later.Command,
		later.Machine.Load, later.Machine.LoadAfter))
}

// readRun reads a run from a file, and drops rows and curves that the program no longer has.
func readRun(name string) (r run) {
	if err := json.Unmarshal(must(os.ReadFile(name)), &r); err != nil {
		ok(fmt.Errorf("%s: %w", name, err))
	}
	r.Results = slices.DeleteFunc(r.Results, func(x result) bool {
		return !slices.ContainsFunc(rows(), func(r row) bool { return r.id == x.ID })
	})
	r.Curves = slices.DeleteFunc(r.Curves, func(x curveResult) bool {
		return !slices.ContainsFunc(curves(), func(c curve) bool { return c.id == x.ID })
	})
	return r
}

func main() {
	if isHelper() {
		return
	}
	bad := false
	err := func() (err error) { defer caught(&err); bad = runAll(); return nil }()
	removeLeftovers()
	exitOn(err)
	if bad {
		os.Exit(1)
	}
}

// runAll executes the command line, and reports whether a row or a curve could not be measured.
func runAll() (bad bool) {
	isQuick := flag.Bool("quick", false, "short rounds, rows only (the default)")
	isFull := flag.Bool("full", false, "longer rounds, and curves")
	list := flag.Bool("list", false, "print the ids of rows and curves")
	dir := flag.String("dir", "results", "the `directory` for the tables and plots of curves")
	out := flag.String("json", "", "write the results to this `file`")
	from := flag.String("from", "", "measure nothing, and take the results of this `file`, written by -json, as far as the tables still have them; rows and curves of further ones, after commas, replace its own")
	report := flag.String("results", "", "write the results as Markdown to this `file`")
	profile := flag.String("cpuprofile", "", "write a profile of the processor, of both sides, to this `file`")
	flag.Parse()
	if *isQuick && *isFull {
		ok(errors.New("-quick or -full"))
	}
	if *list {
		for _, r := range rows() {
			fmt.Printf("%-24s against %s\n", r.id, r.against)
		}
		for _, c := range curves() {
			fmt.Printf("%-24s -full only: %s\n", c.id, c.title)
		}
		return false
	}
	var now run
	if *from != "" {
		files := strings.Split(*from, ",")
		now = readRun(files[0])
		for _, f := range files[1:] {
			now.replace(readRun(f))
		}
	} else {
		chosen, traced, err := choose(rows(), curves(), *isFull, flag.Args())
		ok(err)
		if *profile != "" {
			ok(pprof.StartCPUProfile(must(os.Create(*profile))))
		}
		now = measureAll(chosen, traced, *isFull)
		pprof.StopCPUProfile()
	}
	if *out != "" {
		ok(os.WriteFile(*out, append(must(json.Marshal(now)), '\n'), 0o644))
	}
	if *isFull || *report != "" {
		for _, c := range now.Curves {
			ok(c.save(*dir))
		}
	}
	if *report != "" {
		ok(writeReport(*report, *dir, now))
	}
	return len(now.Failed) > 0
}

func measureAll(chosen []row, traced []curve, isFull bool) run {
	m := quick
	if isFull {
		m = full
	}
	now := run{Date: time.Now(), Machine: thisMachine(), Command: "go run . " + strings.Join(os.Args[1:], " "), Full: isFull, Mode: m}
	failed := func(id string, err error) {
		now.Failed = append(now.Failed, fmt.Sprintf("%s: %v", id, err))
		fmt.Printf("%-24s not measured: %v\n", id, err)
	}
	results := make([]result, len(chosen))
	measureRows(chosen, m, func(i int, res result, err error) {
		if err != nil {
			failed(chosen[i].id, err)
			return
		}
		fmt.Println(res)
		results[i] = res
	})
	now.Results = slices.DeleteFunc(results, func(r result) bool { return r.ID == "" })
	for _, c := range traced {
		res, err := c.trace(m, os.Stdout)
		if err != nil {
			failed(c.id, err)
			continue
		}
		fmt.Printf("%-16s %d rounds, %.0f s\n", c.id, res.Rounds, res.Took.Seconds())
		now.Curves = append(now.Curves, res)
	}
	now.Took = time.Since(now.Date)
	now.Machine.LoadAfter = loadAverage()
	return now
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// choose returns the rows whose id, or the part of the id before a slash, is in ids. If isFull is true, it also returns curves chosen in
// the same way. If ids is empty, choose returns all rows and curves.
func choose(all []row, traced []curve, isFull bool, ids []string) ([]row, []curve, error) {
	if !isFull {
		traced = nil
	}
	if len(ids) == 0 {
		return all, traced, nil
	}
	found := map[string]bool{}
	chosen := func(id string) (any bool) {
		for _, want := range ids {
			if id == want || strings.HasPrefix(id, want+"/") {
				found[want], any = true, true
			}
		}
		return any
	}
	all = slices.DeleteFunc(slices.Clone(all), func(r row) bool { return !chosen(r.id) })
	traced = slices.DeleteFunc(slices.Clone(traced), func(c curve) bool { return !chosen(c.id) })
	for _, id := range ids {
		if !found[id] {
			return nil, nil, fmt.Errorf("there is no row %q, and no curve (those come with -full); -list says what there is", id)
		}
	}
	return all, traced, nil
}
