// Bench compares the library with its alternatives. In each row of a table, both sides do the same work in turn, in this process. The line
// of the row shows the ratio of their costs, so smaller is better. A curve shows a cost as a function of the size of the work.
//
//	go run . -quick                             measure all rows, in five minutes on a slow machine
//	go run . -quick mutex-ctx cancel-cost       choose rows by id, or by the part of the id before a slash
//	go run . -full                              measure all rows in longer rounds, and all curves, in twenty minutes
//	go run . -full mvar-table fork              choose rows and curves
//	go run . -cores                             print a table for 1, 2, 4 and more processors, in one minute
//	go run . -list                              print the ids of all rows and curves
//	go run . -full -json now.json               write the figures to a file
//	go run . -full -results RESULTS.md          write the report, and the plots and tables of the curves in results beside it
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
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	err := func() (err error) {
		defer caught(&err)
		if !isHelper() {
			runAll()
		}
		return nil
	}()
	_ = os.RemoveAll(scratchDir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runAll executes the command line. It fails, after everything else, if a row or a curve could not be measured.
func runAll() {
	_ = flag.Bool("quick", true, "short rounds, rows only (the default, without -full)")
	isFull := flag.Bool("full", false, "run longer rounds, and measure the curves, too")
	list := flag.Bool("list", false, "print the ids of rows and curves")
	cores := flag.Bool("cores", false, "print a table of costs for 1, 2, 4 and more processors (one minute), and measure no rows")
	out := flag.String("json", "", "write the results to this `file`")
	from := flag.String("from", "", "measure nothing, and use the results in this `file`, written by -json, that the tables still have; results in further files, after commas, replace them")
	report := flag.String("results", "", "write the results as Markdown to this `file`, and the tables and plots of curves to the folder results beside it")
	flag.Parse()
	if *cores {
		tableOfCores(os.Stdout, runtime.GOMAXPROCS(0), time.Minute, false)
		return
	}
	if *list {
		for _, r := range rows() {
			fmt.Printf("%-24s against %s\n", r.id, r.against)
		}
		for _, c := range curves() {
			fmt.Printf("%-24s -full only: %s\n", c.ID, c.Title)
		}
		return
	}
	var now run
	if *from == "" {
		m, chosen, traced := quick, rows(), []curve(nil)
		if *isFull {
			m, traced = full, curves()
		}
		chosen, traced, err := choose(chosen, traced, flag.Args())
		ok(err)
		now = measureAll(chosen, traced, m)
	} else {
		for i, file := range strings.Split(*from, ",") {
			var r run
			if err := json.Unmarshal(must(os.ReadFile(file)), &r); err != nil {
				ok(fmt.Errorf("%s: %w", file, err))
			}
			if r.arrange(); i == 0 {
				now = r
			} else {
				now.replace(r)
			}
		}
	}
	now.arrange()
	if *out != "" {
		ok(os.WriteFile(*out, append(must(json.Marshal(now)), '\n'), 0o644))
	}
	if *report != "" {
		writeReport(*report, now)
	}
	if len(now.Failed) > 0 {
		ok(errors.New("not all was measured"))
	}
}

func measureAll(chosen []row, traced []curve, m mode) run {
	now := run{Date: time.Now(), Machine: thisMachine(), Command: "go run . " + strings.Join(os.Args[1:], " "), Mode: m}
	failed := func(id string, err error) {
		now.Failed = append(now.Failed, fmt.Sprintf("%s: %v", id, err))
		fmt.Printf("%-24s not measured: %v\n", id, err)
	}
	measureRows(chosen, m, func(res result, err error) {
		if err != nil {
			failed(res.ID, err)
			return
		}
		fmt.Println(res)
		now.Results = append(now.Results, res)
	})
	for _, c := range traced {
		res, err := c.trace(m, os.Stdout)
		if err != nil {
			failed(c.ID, err)
			continue
		}
		fmt.Printf("%-16s %d rounds, %.0f s\n", c.ID, res.Rounds, res.Took.Seconds())
		now.Curves = append(now.Curves, res)
	}
	now.Took = time.Since(now.Date)
	now.Machine.LoadAfter = loadAverage()
	return now
}

// choose returns the rows and curves whose id, or the part of the id before a slash, is in ids. If ids is empty, choose returns all rows and
// curves.
func choose(all []row, traced []curve, ids []string) ([]row, []curve, error) {
	found := map[string]bool{}
	left := func(id string) bool {
		out := len(ids) > 0
		for _, want := range ids {
			if id == want || strings.HasPrefix(id, want+"/") {
				found[want], out = true, false
			}
		}
		return out
	}
	all = slices.DeleteFunc(all, func(r row) bool { return left(r.id) })
	traced = slices.DeleteFunc(traced, func(c curve) bool { return left(c.ID) })
	for _, id := range ids {
		if !found[id] {
			return nil, nil, fmt.Errorf("there is no row or curve %q (curves need -full); -list prints the ids", id)
		}
	}
	return all, traced, nil
}

// A run holds the results that -json writes and -from reads.
type run struct {
	Date    time.Time     `json:"date"`
	Machine machine       `json:"machine"`
	Command string        `json:"command"`
	Mode    mode          `json:"mode"`
	Took    time.Duration `json:"took"`
	Results []result      `json:"results"`
	Curves  []curveResult `json:"curves,omitempty"`
	Failed  []string      `json:"failed,omitempty"` // names each row or curve that could not be measured, with the reason
	Later   []string      `json:"later,omitempty"`  // names the rows and curves of each later run
}

// replace replaces rows and curves of r with the rows and curves of a later run that have the same ids.
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
	r.Later = append(r.Later, fmt.Sprintf("%s: measured %s by `%s`, at loads of %s and %s.", strings.Join(ids, ", "), later.When(), later.Command,
		later.Machine.Load, later.Machine.LoadAfter))
}

// arrange sorts the rows in the order of the table, and drops rows and curves that the program no longer has.
func (r *run) arrange() {
	place := map[string]int{}
	for i, x := range rows() {
		place[x.id] = i + 1
	}
	r.Results = slices.DeleteFunc(r.Results, func(x result) bool { return place[x.ID] == 0 })
	slices.SortFunc(r.Results, func(x, y result) int { return cmp.Compare(place[x.ID], place[y.ID]) })
	for _, c := range curves() {
		place[c.ID] = 1
	}
	r.Curves = slices.DeleteFunc(r.Curves, func(c curveResult) bool { return place[c.ID] == 0 })
}

// Some rows and curves run this program in a second process: as a client, as a file server, or to measure memory.

// helpers maps the first argument of such a process to the function that it runs. The process prints the function's result as JSON.
var helpers = map[string]func(args []string) any{"-drive": driveHere, "-bytes": bytesHere, "-fileserver": fileServerHere, "-helloserver": helloHere}

// isHelper reports whether this process was started as a helper. If so, it does the helper's work before it returns.
func isHelper() bool {
	if len(os.Args) < 2 || helpers[os.Args[1]] == nil {
		return false
	}
	ok(json.NewEncoder(os.Stdout).Encode(helpers[os.Args[1]](os.Args[2:])))
	return true
}

// itself runs this program in another process, and returns the value that the process prints.
func itself[T any](env []string, args ...string) (v T) {
	cmd := exec.Command(must(os.Executable()), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		ok(fmt.Errorf("the process of %s: %w", strings.Join(args, " "), err))
	}
	ok(json.Unmarshal(out, &v))
	return v
}

// programs maps the examples that are built to their programs.
var programs = map[string]string{}

// built builds the program of an example once, and returns its path.
func built(example string) string {
	if programs[example] == "" {
		program := filepath.Join(scratch(), filepath.Base(example))
		build := exec.Command("go", "build", "-C", filepath.FromSlash("../examples/"+example), "-o", program, ".")
		build.Stderr = os.Stderr
		ok(build.Run())
		programs[example] = program
	}
	return programs[example]
}

// fileServerHere serves a directory by net/http. The arguments are the directory and the address.
func fileServerHere(args []string) any {
	return http.ListenAndServe(args[1], http.FileServer(http.Dir(args[0])))
}
