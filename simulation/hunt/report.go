package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Failure is what hunt reports. Its fields are the keys of -json.
type Failure struct {
	Package, Test, Message string
	Order                  string // the value of BRAID_ORDER
	Orders                 int    // the number of orders that were tried
	Built, Took            float64
	Repeats, Failed        int    // the number of repetitions, and the number of failures among them
	Switches               int    // the number of switches of the order
	Needed                 int    // the number of switches of ShortOrder
	Minimal                bool   // no single switch of ShortOrder can be left out
	ShortOrder             string `json:",omitempty"` // the order with the needed switches alone, as a value of BRAID_ORDER
	ShortFailed            int    // the number of repetitions of ShortOrder that failed in the same way
	Steps                  []Step
	Goroutines             []string
	Command, Race, Output  string
	module                 *pkg
	root                   string
	sources                map[string][]string
}

// A Step is an operation of a goroutine at a point.
type Step struct {
	Goroutine int // an index into Goroutines
	Place     string
	Code      string
	Switch    string `json:",omitempty"` // the effect of a switch here
}

// An event is a line of the log of the runtime.
type event struct {
	kind   byte
	id, n  uint64
	value  uint64
	text   string
	at     frame // the user's code
	inCode bool  // there is user's code
}

type frame struct {
	file string
	line int
}

// parse returns the events of a log. place returns the call of the user's code; it may be nil.
func parse(log []byte, place func([]frame) (frame, bool)) (all []event) {
	var frames []frame
	names := map[string]string{}
	for line := range bytes.Lines(log) {
		f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 5)
		if len(f) < 5 || len(f[0]) != 1 {
			continue // the process was killed
		}
		e := event{kind: f[0][0], text: f[4]}
		e.id, _ = strconv.ParseUint(f[1], 16, 64)
		e.n, _ = strconv.ParseUint(f[2], 10, 64)
		e.value, _ = strconv.ParseUint(f[3], 16, 64)
		if e.kind == 'q' || e.kind == 'g' {
			if place != nil {
				words := strings.Split(e.text, "\t")
				frames = frames[:0]
				for i := 0; i+1 < len(words); i += 2 { // a function and a line of a file
					colon := strings.LastIndexByte(words[i+1], ':')
					line, _ := strconv.Atoi(words[i+1][colon+1:])
					frames = append(frames, frame{words[i+1][:max(0, colon)], line})
				}
				if e.at, e.inCode = place(frames); names[e.at.file] == "" {
					names[strings.Clone(e.at.file)] = strings.Clone(e.at.file)
				}
				e.at.file = names[e.at.file] // the line need not stay in memory
			}
			e.text = ""
		}
		all = append(all, e)
	}
	return all
}

// untilEnd returns the events up to the last one of a test's goroutine in the user's code.
func untilEnd(all []event, test string) []event {
	id, last := uint64(0), len(all)-1
	for i, e := range all {
		if e.kind == 'n' && e.text == test {
			id = e.id
		} else if e.kind == 'q' && e.id == id && e.inCode {
			last = i
		}
	}
	return all[:last+1]
}

// place returns the call of the user's code: the innermost one in the module, or else the innermost one outside of the standard library.
func (f *Failure) place(frames []frame) (at frame, ok bool) {
	for _, in := range frames {
		if strings.HasPrefix(in.file, f.root+string(filepath.Separator)) || strings.HasPrefix(filepath.Base(in.file), "_test") || !filepath.IsAbs(in.file) {
			continue
		}
		if !ok {
			at, ok = in, true
		}
		if f.module.Module != nil && strings.HasPrefix(in.file, f.module.Module.Dir+string(filepath.Separator)) {
			return in, true
		}
	}
	return at, ok
}

// code returns a line of a file.
func (f *Failure) code(at frame) string {
	lines, ok := f.sources[at.file]
	if !ok {
		b, _ := os.ReadFile(at.file)
		lines = strings.Split(string(b), "\n")
		if f.sources == nil {
			f.sources = map[string][]string{}
		}
		f.sources[at.file] = lines
	}
	if at.line <= 0 || at.line > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[at.line-1])
}

// shown is the number of steps that a report shows before and after a switch, and shownSwitches is the number of switches that it shows.
const shown, shownSwitches = 6, 20

// steps returns the steps near the last switches and near the end, and fills in f.Goroutines. Steps of one goroutine at one line are one step. After
// a switch, the goroutine has a second step at this line when it goes on.
func (f *Failure) steps(all []event) []Step {
	var steps []Step
	index := map[uint64]int{}
	number := func(id uint64) int {
		n, ok := index[id]
		if !ok {
			n = len(f.Goroutines)
			index[id] = n
			f.Goroutines = append(f.Goroutines, "")
		}
		return n
	}
	add := func(id uint64, at frame, what string) {
		n := number(id)
		step := Step{Goroutine: n, Code: f.code(at), Switch: what}
		if at.file != "" {
			step.Place = fmt.Sprintf("%s:%d", filepath.Base(at.file), at.line)
		}
		if k := len(steps) - 1; k >= 0 && steps[k].Goroutine == n && steps[k].Place == step.Place && steps[k].Switch == "" {
			steps[k].Switch = what
			return
		}
		steps = append(steps, step)
	}
	last := map[uint64]frame{}
	stopped := map[uint64]bool{}
	goesOn := map[int]bool{}
	for _, e := range all {
		switch e.kind {
		case 'n':
			f.Goroutines[number(e.id)] = cmp.Or(e.text, "main")
		case 'g':
			f.Goroutines[number(e.value)] = "started by the standard library, for example by a timer"
			if e.inCode {
				f.Goroutines[number(e.value)] = fmt.Sprintf("started at %s:%d", filepath.Base(e.at.file), e.at.line)
			}
		case 'q':
			last[e.id] = e.at
			if e.inCode {
				add(e.id, e.at, "")
			}
		case 'r':
			if stopped[e.id] && last[e.id].file != "" {
				goesOn[len(steps)] = true
				add(e.id, last[e.id], "")
			}
			delete(stopped, e.id)
		case 'p':
			stopped[e.id] = true
			what := "here the others run first"
			if e.value > 0 {
				what = fmt.Sprintf("here others run first, for up to %d operations", e.value)
			}
			add(e.id, last[e.id], what)
		case 't':
			stopped[e.id] = true
			add(e.id, last[e.id], fmt.Sprintf("here it is paused for %v", time.Duration(e.value)))
		case 's':
			add(e.id, last[e.id], "its select looks at the cases in another order")
		case 'w':
			add(e.id, frame{}, "it becomes runnable, and runs after the others")
		case 'l':
			add(e.id, frame{}, "it gets another priority")
		}
	}
	keep := make([]bool, len(steps))
	switches := 0
	for i := len(steps) - 1; i >= 0; i-- {
		near := -1
		switch {
		case i == len(steps)-1:
			near = shown
		case steps[i].Switch != "" && switches < shownSwitches:
			switches++
			near = shown
		case goesOn[i] && switches < shownSwitches:
			near = 1
		}
		for k := max(0, i-near); k <= min(len(steps)-1, i+near); k++ {
			keep[k] = true
		}
	}
	if len(steps) <= 5*shown {
		for i := range keep {
			keep[i] = true
		}
	}
	var kept []Step
	for i, s := range steps {
		if keep[i] {
			kept = append(kept, s)
		} else if i > 0 && keep[i-1] {
			kept = append(kept, Step{Goroutine: -1})
		}
	}
	// goroutines without a step are left out
	var names []string
	renamed := map[int]int{}
	for i := range kept {
		if g := kept[i].Goroutine; g >= 0 {
			if _, ok := renamed[g]; !ok {
				renamed[g] = len(names)
				names = append(names, f.Goroutines[g])
			}
			kept[i].Goroutine = renamed[g]
		}
	}
	f.Goroutines = names
	return kept
}

// asText returns the report for a person.
func (f *Failure) asText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s fails in order %s, the %s that was tried, after %.1f s\n\n%s\n\n", cmp.Or(f.Test, "a test of "+f.Package),
		f.Order, ordinal(f.Orders), f.Took, f.Message)
	fmt.Fprintf(&b, "The order was repeated: it failed in the same way %d times of %d.\n", f.Failed, f.Repeats)
	switch {
	case f.Failed == 0:
		b.WriteString("So it is not decided by the order alone: see 'An order that does not repeat' in README.md of hunt.\n")
	case f.ShortOrder == "":
		fmt.Fprintf(&b, "The order has %d switches. It was not shortened: within the time of -shorten, no run with only these switches failed in the same way.\n",
			f.Switches)
	case f.Needed == 0:
		fmt.Fprintf(&b, "No switch is needed: it also fails in the order of Go's scheduler with one processor (%d times of %d).\n", f.ShortFailed, f.Repeats)
	case !f.Minimal:
		fmt.Fprintf(&b, "Of its %d switches, %d are enough (%d times of %d). The time of -shorten ran out before each of them had been tried.\n",
			f.Switches, f.Needed, f.ShortFailed, f.Repeats)
	default:
		fmt.Fprintf(&b, "Of its %d switches, %d %s needed (%d times of %d).\n", f.Switches, f.Needed, map[bool]string{true: "is", false: "are"}[f.Needed == 1], f.ShortFailed, f.Repeats)
	}
	if f.ShortOrder == "" && f.Switches > shownSwitches || f.Needed > shownSwitches {
		fmt.Fprintf(&b, "The last %d are in the table.\n", shownSwitches)
	}
	if len(f.Steps) > 0 {
		b.WriteString("\n" + f.table())
	}
	if f.Race != "" {
		fmt.Fprintf(&b, "\n%s\n", f.Race)
	}
	fmt.Fprintf(&b, "\nTo repeat it:\n\n\t%s\n\n", f.Command)
	return b.String()
}

func ordinal(n int) string {
	end := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprint(n, end)
}

// table returns the steps, with a column for each goroutine.
func (f *Failure) table() string {
	var b strings.Builder
	for i, name := range f.Goroutines {
		fmt.Fprintf(&b, "   goroutine %s: %s\n", letter(i), name)
	}
	b.WriteString("\n")
	wide := 0
	for _, s := range f.Steps {
		wide = max(wide, len(s.Place))
	}
	columns := min(len(f.Goroutines), 12)
	for _, s := range f.Steps {
		if s.Goroutine < 0 {
			b.WriteString("    ...\n")
			continue
		}
		marks := slices.Repeat([]string{"."}, columns)
		marks[min(s.Goroutine, columns-1)] = letter(s.Goroutine)
		line := fmt.Sprintf("    %s   %-*s   %s", strings.Join(marks, " "), wide, s.Place, s.Code)
		if s.Switch != "" {
			line = fmt.Sprintf("%-72s <- %s", line, s.Switch)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// letter returns the name of a goroutine in a table: A to Z, then A1 and so on.
func letter(n int) string {
	if n < 26 {
		return string(rune('A' + n))
	}
	return string(rune('A'+n%26)) + strconv.Itoa(n/26)
}
