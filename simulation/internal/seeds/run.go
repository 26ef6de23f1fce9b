package seeds

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Run names a run of a program: a seed, and changes to the run of this seed. Its String is the value of BRAID_SEED that repeats the run.
type Run struct {
	Seed  uint64
	Forks []Fork          // sorted by step
	Off   map[string]bool // the faults to omit, by kind and number
}

// A Fork is a step at which the random sources are reseeded. Separate sources, such as the sources of RandOf and Buggify, are reseeded
// only if All is true.
type Fork struct {
	Step int
	Salt uint64
	All  bool
}

// How says what a Runner does during a run, besides the run itself.
type How struct {
	Tell   bool      // record the story
	Limit  int       // the greatest length of the story; 0 means no limit
	Stop   int       // the step before which a debugger stops the run; 0 means no step
	Trace  io.Writer `json:"-"` // receives the trace; nil means no trace
	Events bool      // return the events, for a comparison with another process
	Keep   bool      // a worker writes the trace to a file, because the run may end its process
}

// A Result describes a run that has ended. A worker sends a Result to its parent as JSON.
type Result struct {
	Seed    uint64
	Hash    uint64        // a hash of all events
	Steps   int           // the number of steps
	Elapsed time.Duration // virtual time
	Err     error         `json:"-"`
	Error   *string       // the text of Err, in a worker
	Failed  bool          // main has marked the test as failed, in a worker

	Differs   bool `json:"-"` // Err says how two runs of the seed differed
	Exited    bool // main ended by runtime.Goexit, and Err contains the place
	Unending  bool // a goroutine of the run is still running, or the process has ended: the seed cannot run again in this process
	Sometimes map[string]bool
	Hits      map[string]bool
	Came      []Milestone
	Record    *Record // nil if the run had no changes and no story
	Output    string  `json:"-"` // the output of the run's process, if it had one of its own

	Level                      string // this and the next fields: see simulation.Report
	Windows, Long, Ahead, Left int
	Again                      int // counts the further pairs of processes, because two runs of the seed differed

	Events []Event // set if How.Events was set
}

// A Milestone is a name of Sometimes, and the step at which a run reached the name.
type Milestone struct {
	Name string
	Step int
}

// An Event is an event of a run in a worker.
type Event struct {
	Step      int
	At        time.Duration
	Who, Text string
	Quiet     bool // the trace omits the event
}

// A Runner performs runs, one after another.
type Runner interface {
	// Run performs a run once.
	Run(r Run, how How) Result

	// Twice performs a run twice, and compares the two. If they differ, the Result's Err says how.
	Twice(r Run, how How) Result

	// Again performs a run again, to record its events. If the result is not the earlier one, Again is like Twice.
	Again(r Run, how How, was Result) Result

	// Trace returns the last n lines of the trace of the last run that Twice or Again has recorded.
	Trace(n int) []string
}

// Ending describes how a run ended. Only the first line of the text is compared (see Verdict), because stacks differ between runs.
func Ending(err error) string { return fmt.Sprintf("the run ends: %v", err) }

// Verdict returns the first line of Ending.
func Verdict(err error) string {
	first, _, _ := strings.Cut(Ending(err), "\n")
	return first
}

func (r Result) failed() bool { return r.Failed || r.Err != nil }

func (r Result) same(q Result) bool {
	return r.Hash == q.Hash && Verdict(r.Err) == Verdict(q.Err) && r.Failed == q.Failed
}

// changes reports whether r differs from the run of its seed.
func (r Run) changes() bool { return len(r.Off)+len(r.Forks) > 0 }

// String returns the text that parse reads. After the seed, the part -kind1,3..5 omits the faults 1, 3, 4 and 5 of a kind, and the part
// -12.34 is a fork at step 12 with the salt 34. In the form -12:34, the fork also reseeds separate sources.
func (r Run) String() string {
	byKind := map[string][]int{}
	for _, name := range slices.Sorted(maps.Keys(r.Off)) {
		kind, n := cutNumber(name)
		byKind[kind] = append(byKind[kind], n)
	}
	var b strings.Builder
	fmt.Fprint(&b, r.Seed)
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
	for _, f := range r.Forks {
		fmt.Fprintf(&b, "-%d%c%d", f.Step, map[bool]rune{false: '.', true: ':'}[f.All], f.Salt)
	}
	return b.String()
}

// cutNumber splits the name of a fault into its kind and its number.
func cutNumber(name string) (kind string, n int) {
	kind = strings.TrimRight(name, "0123456789")
	n, _ = strconv.Atoi(name[len(kind):])
	return kind, n
}

var omitted = regexp.MustCompile(`^(\pL+)((?:\d+(?:\.\.\d+)?,?)+)$`)

// Parse parses the String of a Run.
func Parse(s string) (Run, error) {
	wrong := fmt.Errorf("%q is not the number of a seed, or of a shortened one", s)
	parts := strings.Split(s, "-")
	seed, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil || seed == 0 {
		return Run{}, wrong
	}
	r := Run{Seed: seed, Off: map[string]bool{}}
	for _, part := range parts[1:] {
		step, salt, all := strings.Cut(part, ":")
		if !all {
			step, salt, _ = strings.Cut(part, ".")
		}
		at, err := strconv.Atoi(step)
		draws, err2 := strconv.ParseUint(salt, 10, 64)
		if cmp.Or(err, err2) == nil {
			r.Forks = append(r.Forks, Fork{at, draws, all})
			continue
		}
		m := omitted.FindStringSubmatch(part)
		if m == nil {
			return Run{}, wrong
		}
		for _, span := range strings.Split(m[2], ",") {
			from, to, _ := strings.Cut(span, "..")
			first, err := strconv.Atoi(from)
			last, err2 := strconv.Atoi(cmp.Or(to, from))
			if cmp.Or(err, err2) != nil || last-first > 1_000_000 {
				return Run{}, wrong
			}
			for ; first <= last; first++ {
				r.Off[m[1]+strconv.Itoa(first)] = true
			}
		}
	}
	return r, nil
}
