package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// TestOptions configure a Test. The zero value is the default.
type TestOptions struct {
	Options // Seed is the first seed

	// Seeds is the number of runs. 0 means 100, or 10 under -short.
	Seeds int

	// Twice runs each seed twice. Without Twice, every tenth seed runs twice.
	Twice bool

	// Guided makes half of the runs continue earlier runs from rare states with new random draws. The program names rare states with
	// World.Sometimes. Guided helps to find a bug that needs several unlikely events, if a Sometimes names such an event. Otherwise it
	// doubles the number of runs that are needed.
	Guided bool

	// NoPreempt turns off Options.Preempt, which Test otherwise sets.
	NoPreempt bool

	// InProcess performs all runs in this process, also those with Guests. Runs with guests then share the variables of packages, and are at
	// level B, unless the test was built with simulation/overlay. See Test.
	InProcess bool
}

// Test runs main under the seeds 1, 2 and so on, until a run fails. A run fails if main returns an error or marks t as failed, or if the
// World ends the run. Test then fails t, with the seed, the end of the trace, and the command that repeats the run. Every tenth seed, and a
// seed that fails, runs twice, and Test compares the two runs as Check does.
//
// If faults have hit nodes, or links of nodes, that never had a task, a guest, a listener, a dial or a file in any run, Test fails t at its
// end: the name of the node is probably wrong.
//
// Environment variables choose other seeds: BRAID_SEED=n runs seed n and prints its trace, BRAID_SEEDS=n runs n seeds, and BRAID_SEEDS=10s
// runs seeds for ten seconds. With o.Bubble, each run has its own synctest bubble.
//
// With BRAID_DIAGRAM=x.svg, Test draws the failure in the file x.svg: nodes are lines, messages are arrows, and faults are bands.
//
// With BRAID_JOBS=n, Test performs n runs in parallel, and several goroutines call main. The runs find the same failures. BRAID_JOBS cannot
// be used with o.Bubble or o.Guests.
//
// With o.Guests, each run has a process of its own, unless o.InProcess or BRAID_STOP is set. Such a process runs the test up to this call of
// Test, and earlier calls of Test return at once; then it calls main. So the variables of packages are new in each run, but main cannot
// change variables of the test for later runs or for the test itself. The processes run a second program, for which Test builds the package
// again, with simulation/overlay: a guest is at level D, see Report.Level, and the keys of maps are always the same. The program remains in
// the user's cache until the package changes. If it cannot be built, for example because there is no go command, Test says so, and performs
// the runs in this process.
//
// With BRAID_PROCESSES=n, Test performs the runs in n parallel processes. Each process runs the test up to this call of Test, and earlier
// calls of Test return at once. Then the process runs at most a thousand seeds, without a trace. A seed that runs twice runs in two
// processes, so that Test also finds differences between processes, such as an order that depends on hash keys of maps or on addresses.
//
// With BRAID_SHORTEN=n, Test performs n runs with fewer faults and other random draws, to find a run that fails in the same way after fewer
// messages. Two runs fail in the same way if the first lines of their errors are equal, except for numbers and names of nodes, or if the
// same line calls t.Fatal. A failure by t.Error alone is not shortened. The failure then lists the messages, faults and lines of Log with
// their steps, and a BRAID_SEED that repeats the shorter run. With BRAID_SEED=s and BRAID_STOP=n, Test calls runtime.Breakpoint before step
// n. A debugger stops the run there; without a debugger, the process ends.
func Test(t *testing.T, main func(ctx context.Context, w *World) error, o TestOptions) {
	t.Helper()
	program, env := "", []string(nil)
	if o.Guests && !o.InProcess && os.Getenv("BRAID_WORKER") == "" && os.Getenv("BRAID_STOP") == "" {
		var err error
		if program, err = overlaid(t); err != nil {
			program = ""
			t.Logf("simulation: the runs share this process, so package variables outlive a run, files of package os are the machine's, and a seed may not repeat: %v", err)
		}
		env = []string{"BRAID_ORDER_KEYS=1"}
	}
	trials := newTrials(t, main, o, program != "")
	seeds.Test(t, seeds.Options{
		Program: program, Env: env,
		First: o.Seed, Seeds: o.Seeds, Twice: o.Twice, Guided: o.Guided, Turns: o.Bubble || o.Guests, Guests: o.Guests, Trace: o.Trace,
		Package: packageOf(main), Runner: trials.runner, Differ: differ, Account: trials.account,
	})
}

// trials performs the runs of a Test.
type trials struct {
	t      *testing.T
	main   func(ctx context.Context, w *World) error
	o      Options
	runs   []*runner
	random *chance.State // access to the runtime's draws; nil if they cannot be set, or without guests
	why    string        // why they cannot be set
	apart  bool          // each run has a process
	sum    Report        // the sums of the figures of all runs with guests
}

func newTrials(t *testing.T, main func(ctx context.Context, w *World) error, o TestOptions, apart bool) *trials {
	s := &trials{t: t, main: main, o: o.Options, apart: apart}
	s.o.Preempt = !o.NoPreempt
	if o.Guests && !apart {
		calm(t)
		s.random, s.why = openChance()
	}
	return s
}

// runner returns a new runner, and the function that ends its coroutines.
func (s *trials) runner() (seeds.Runner, func()) {
	r, stop := &runner{o: s.o}, func() {}
	s.runs = append(s.runs, r)
	switch {
	case s.o.Guests:
		r.run = s.inGuests
	case s.o.Bubble:
		r.run = func(o Options) Report { return inBubbleOf(s.t, o, s.main) }
	default:
		r.o.fleet = newFleet(s.o)
		r.run, stop = func(o Options) Report { return runApart(o, s.main) }, r.o.fleet.stop
	}
	return r, stop
}

func (s *trials) inGuests(o Options) Report {
	cryptotest.SetGlobalRandom(s.t, o.Seed)
	r := inGuests(s.t, o, s.random, s.main)
	s.sum.Windows, s.sum.Long, s.sum.Ahead, s.sum.Left = s.sum.Windows+r.Windows, s.sum.Long+r.Long, s.sum.Ahead+r.Ahead, s.sum.Left+r.Left
	return r
}

// account returns a line about all runs with guests, here and in workers.
func (s *trials) account(workers seeds.Result) string {
	if !s.o.Guests {
		return ""
	}
	at := cmp.Or(workers.Level, level(s.random, s.o))
	if s.apart && workers.Level == "" { // the first run has ended its process
		at = map[bool]string{true: "D", false: "C"}[s.o.Preempt]
	}
	return fmt.Sprintf("guests at level %s%s; %d windows, %d long, %d checks again, %d events ahead, %d goroutines left", at, s.why,
		s.sum.Windows+workers.Windows, s.sum.Long+workers.Long, s.runs[0].tries+workers.Again, s.sum.Ahead+workers.Ahead, s.sum.Left+workers.Left)
}

// A runner implements seeds.Runner by runs of Worlds.
type runner struct {
	checker
	o Options
}

// options returns the Options of the run p.
func (r *runner) options(p seeds.Run, how seeds.How) Options {
	o := r.o
	o.Seed, o.run, o.how, o.Trace = p.Seed, p, how, how.Trace
	return o
}

// Run implements seeds.Runner.
func (r *runner) Run(p seeds.Run, how seeds.How) seeds.Result {
	var events []seeds.Event
	o := r.options(p, how)
	if how.Events {
		o.watch = func(w *World, e event) {
			events = append(events, seeds.Event{Step: w.steps, At: e.at, Who: e.who(), Text: e.String(), Quiet: e.quiet})
		}
	}
	report := r.perform(o)
	x := report.result(report.Err)
	x.Events = events
	return x
}

// Twice implements seeds.Runner.
func (r *runner) Twice(p seeds.Run, how seeds.How) seeds.Result {
	err := r.check(r.options(p, how))
	return r.report.result(err)
}

// Again implements seeds.Runner.
func (r *runner) Again(p seeds.Run, how seeds.How, was seeds.Result) seeds.Result {
	if r.record(r.options(p, how)); r.report.Hash == was.Hash && seeds.Verdict(r.report.Err) == seeds.Verdict(was.Err) {
		return r.report.result(r.report.Err)
	}
	return r.Twice(p, how)
}

// Trace implements seeds.Runner.
func (r *runner) Trace(n int) []string { return traceLines(lastTraced(r.events, n)) }

// result returns r as a Result with this error.
func (r Report) result(err error) seeds.Result {
	var differs *Nondeterminism
	return seeds.Result{Seed: r.Seed, Hash: r.Hash, Steps: r.Steps, Elapsed: r.Elapsed, Err: err,
		Differs: errors.As(err, &differs), Exited: errors.Is(err, errExited), Unending: unending(err),
		Sometimes: r.Sometimes, Hits: r.Hits, Came: r.came, Record: r.record, Level: r.Level, Windows: r.Windows, Long: r.Long, Ahead: r.Ahead, Left: r.Left}
}

// differ describes the first event of y that differs from the events of x, for seeds.Test.
func differ(x, y seeds.Result) error {
	at := 0
	for at < min(len(x.Events), len(y.Events)) && x.Events[at] == y.Events[at] {
		at++
	}
	d := &Nondeterminism{Seed: x.Seed, Step: y.Steps, At: y.Elapsed, First: seeds.Ending(x.Err), Second: seeds.Ending(y.Err)}
	if at < len(y.Events) {
		e := y.Events[at]
		d.Step, d.At, d.Task, d.Second = e.Step, e.At, e.Who, e.Text
	}
	if at < len(x.Events) {
		d.First = x.Events[at].Text
	}
	for _, e := range slices.Backward(x.Events[:at]) {
		if !e.Quiet && len(d.Before) < 5 {
			d.Before = slices.Insert(d.Before, 0, e.Text)
		}
	}
	return d
}

// packageOf returns the package of the running test, or of the function f if the program does not say what it tests.
func packageOf(f func(ctx context.Context, w *World) error) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return path
		}
	}
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + strings.TrimSuffix(pkg, "_test")
}
