// Package seeds runs a program under many seeds until a run fails, and describes the failure. It chooses the runs, in search.go; performs
// some of them at once, in several jobs or in worker processes; shortens a run that fails; and draws it as a diagram.
//
// A run can be anything: the caller passes a Runner, which performs a Run, the name of a seed with changes, and returns a Result. Package
// simulation passes a Runner that runs Worlds.
package seeds

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// Options configure a Test.
type Options struct {
	First   uint64    // the first seed
	Seeds   int       // the number of runs; 0 means 100, or 10 under -short
	Twice   bool      // run each seed twice
	Guided  bool      // see search
	Turns   bool      // runs take turns, so there cannot be several jobs in this process
	Guests  bool      // a run may depend on BRAID_RANDOM
	Trace   io.Writer // receives the trace of each run; nil means no trace
	Package string    // the package of the program, for the command that repeats a failure

	// Program is the path of a program with the same test, which performs each run in a process of its own, with the variables Env in its
	// environment. If Program is empty, runs share processes.
	Program string
	Env     []string

	// Runner returns a Runner that can work in parallel with others, and the function that must be called after its last run.
	Runner func() (r Runner, stop func())

	// Differ returns the error of two runs of a seed, in two processes, which have recorded different events.
	Differ func(x, y Result) error

	// Account returns a line about all runs, or "". Its argument contains the sums of the figures of all workers.
	Account func(workers Result) string
}

// session is the state of a call of Test.
type session struct {
	Options
	environment
	search
	first  Runner
	others []Runner // the Runners of all jobs but the first
	call   int      // the number of this call of Test in its test
}

// Every seed that is a multiple of checkEvery runs twice.
const checkEvery = 10

// enough is the number of seeds after which each name of a Sometimes must have been reached.
const enough = 100

// Test performs runs until a run fails, and then fails t.
func Test(t *testing.T, o Options) {
	t.Helper()
	s := &session{Options: o, environment: readEnvironment(t, o), call: callNumber(t)}
	s.search = search{next: max(o.First, 1), guided: o.Guided, draws: draws.Source(max(o.First, 1))}
	for range s.jobs {
		r, stop := o.Runner()
		defer stop()
		s.others = append(s.others, r)
	}
	s.first, s.others = s.others[0], s.others[1:]
	if s.work(t) {
		return
	}
	if s.Program != "" {
		s.first, s.processes = &apart{s: s, t: t}, cmp.Or(s.processes, runtime.NumCPU())
	}
	begun, steps, n := time.Now(), 0, 0
	var last, workers Result
	reached := map[string]int{} // the number of seeds that reached each name of a Sometimes
	hits := map[string]bool{}   // the nodes that had a fault, with true for each that was used
	failure, took := "", time.Duration(0)
	for failure == "" && s.more(n, time.Since(begun)) {
		for p, r := range s.round(t, n) {
			n++
			steps, last = steps+r.Steps, r
			if s.processes > 0 {
				workers.add(r)
			}
			countReached(reached, r.Sometimes)
			for _, name := range slices.Sorted(maps.Keys(r.Hits)) {
				hits[name] = hits[name] || r.Hits[name]
			}
			if r.failed() || t.Failed() {
				took = time.Since(begun)
				failure = s.failure(t, p, r)
				break
			}
			if s.ran(p, r.Came); !s.more(n, time.Since(begun)) {
				break
			}
		}
	}
	if text := s.Account(workers); text != "" {
		t.Log(text)
	}
	if failure != "" {
		t.Logf("simulation: failed in run %d, after %v", n, took.Round(time.Millisecond))
		t.Fatal(failure) // called here, so that t reports the line of the caller
	}
	if text := s.stopped(last); text != "" {
		t.Log(text)
	}
	took = time.Since(begun)
	t.Logf("%d seeds, %d steps each, %.0f seeds a second", n, steps/max(n, 1), float64(n)/took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		t.Logf("sometimes: %s: %d seeds", name, reached[name])
		if reached[name] == 0 && n >= enough {
			t.Errorf("simulation: none of %d seeds has reached %q", n, name)
		}
	}
	if !s.one { // another seed may use the node
		failMissed(t, hits)
	}
}

// countReached adds one to the number of seeds of each name that a run has reached.
func countReached(reached map[string]int, sometimes map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(sometimes)) {
		seeds := reached[name]
		if sometimes[name] {
			seeds++
		}
		reached[name] = seeds
	}
}

// add adds the figures of a run with guests.
func (r *Result) add(q Result) {
	r.Level, r.Windows, r.Long, r.Ahead, r.Left = q.Level, r.Windows+q.Windows, r.Long+q.Long, r.Ahead+q.Ahead, r.Left+q.Left
	r.Again += q.Again
}

// more reports whether another run follows after n runs.
func (s *session) more(n int, since time.Duration) bool {
	if s.lasts > 0 {
		return since < s.lasts
	}
	return n < s.n
}

// round plans further runs after the first n runs, and yields each run with its result, in the order of the plan. With several jobs or
// processes, all runs end before the first is yielded.
func (s *session) round(t *testing.T, n int) iter.Seq2[Run, Result] {
	plans := make([]Run, max(round, s.processes*perWorker))
	if s.lasts > 0 && s.processes > 0 {
		plans = plans[:s.processes*round]
	}
	if s.lasts == 0 {
		plans = plans[:min(len(plans), s.n-n)]
	}
	for i := range plans {
		if plans[i] = s.run; !s.one {
			plans[i] = s.plan()
		}
	}
	perform := func(i int) Result { return s.perform(s.first, plans[i]) }
	switch {
	case s.how.Trace != nil && s.Program != "": // the apart prints the trace
	case s.processes > 0:
		perform = s.inWorkers(t, plans)
	case len(s.others) > 0:
		perform = s.abreast(plans)
	}
	return func(yield func(Run, Result) bool) {
		for i, p := range plans {
			if !yield(p, perform(i)) {
				return
			}
		}
	}
}

// abreast performs all plans in parallel, and returns a function that returns the i'th result.
func (s *session) abreast(plans []Run) func(i int) Result {
	results, at := make([]Result, len(plans)), atomic.Int64{}
	var all sync.WaitGroup
	for _, r := range append(s.others, s.first) {
		all.Go(func() {
			for i := at.Add(1) - 1; int(i) < len(plans); i = at.Add(1) - 1 {
				results[i] = s.perform(r, plans[i])
			}
		})
	}
	all.Wait()
	return func(i int) Result { return results[i] }
}

// twice reports whether the run p is performed twice.
func (s *session) twice(p Run) bool {
	return s.one || s.Twice || len(p.Forks) == 0 && p.Seed%checkEvery == 0
}

// perform performs the run p, once or twice.
func (s *session) perform(r Runner, p Run) Result {
	if s.twice(p) {
		return r.Twice(p, s.how)
	}
	return r.Run(p, s.how)
}

// stopped returns a message if the run has not reached the step of BRAID_STOP, or "" if it has.
func (s *session) stopped(r Result) string {
	if s.how.Stop > 0 && r.Record != nil && r.Record.Stops(math.MaxInt) {
		return fmt.Sprintf("\nBRAID_STOP=%d: the run has no such step. It ended at step %d.\n", s.how.Stop, r.Steps)
	}
	return ""
}

// Missed returns the names without a true, sorted: the nodes that had a fault and were not used.
func Missed(used map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(used)), func(name string) bool { return used[name] })
}

// failMissed fails t if faults have hit nodes that were used in no run.
func failMissed(t *testing.T, used map[string]bool) {
	t.Helper()
	if names := Missed(used); len(names) > 0 {
		t.Errorf("simulation: the faults for %s had no effect: no node with that name had a task, a guest, a listener, a dial or a file in any run", strings.Join(names, ", "))
	}
}
