package simulation

import (
	"context"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/draws"
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
	s := newSeeds(t, o)
	if !o.Bubble && !o.Guests {
		s.o.fleet = newFleet(o.Options)
		defer s.o.fleet.stop()
		for range s.jobs - 1 {
			l := newFleet(o.Options)
			defer l.stop()
			s.others = append(s.others, &checker{run: func(o Options) Report {
				o.fleet = l
				return runApart(o, main)
			}})
		}
	}
	var random *chance.State
	var all Report
	tally := func(r Report) {
		all.Windows, all.Long, all.Ahead, all.Left = all.Windows+r.Windows, all.Long+r.Long, all.Ahead+r.Ahead, all.Left+r.Left
	}
	account := func() {}
	if o.Guests {
		calm(t)
		var why string
		random, why = openChance()
		account = func() {
			t.Helper()
			t.Logf("guests at level %s%s; %d windows, %d long, %d checks again, %d events ahead, %d goroutines left", level(random, s.o), why, all.Windows, all.Long, s.checker.tries, all.Ahead, all.Left)
		}
	}
	s.checker.run = func(o Options) (r Report) {
		if o.Guests {
			cryptotest.SetGlobalRandom(t, o.Seed)
			r = inGuests(t, o, random, main)
			tally(r)
			return r
		}
		if !o.Bubble {
			return runApart(o, main)
		}
		return inBubbleOf(t, o, main)
	}
	if s.work(t) {
		return
	}
	begun, steps, n := time.Now(), 0, 0
	hits := map[string]bool{}   // the nodes that had a fault, with true for each that was used
	reached := map[string]int{} // the number of seeds that reached each name of a Sometimes
	failure, took := "", time.Duration(0)
	for failure == "" && s.more(n, time.Since(begun)) {
		for p, r := range s.round(t, n) {
			if n++; s.processes > 0 {
				tally(r)
			}
			for _, name := range slices.Sorted(maps.Keys(r.Sometimes)) {
				seeds := reached[name]
				if r.Sometimes[name] {
					seeds++
				}
				reached[name] = seeds
			}
			for _, name := range slices.Sorted(maps.Keys(r.Hits)) {
				hits[name] = hits[name] || r.Hits[name]
			}
			all.Steps = r.Steps
			if steps += r.Steps; r.Err != nil || r.failed || t.Failed() {
				took = time.Since(begun)
				failure = s.failure(t, p, r, packageOf(main))
				break
			}
			if s.search.ran(p, r.came); !s.more(n, time.Since(begun)) {
				break
			}
		}
	}
	account()
	if failure != "" {
		t.Logf("simulation: failed in run %d, after %v", n, took.Round(time.Millisecond))
		t.Fatal(failure) // called here, so that t reports the line of Test's caller
	}
	if text := s.stopped(all); text != "" {
		t.Log(text)
	}
	took = time.Since(begun)
	t.Logf("%d seeds, %d steps each, %.0f seeds a second", n, steps/max(n, 1), float64(n)/took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		t.Logf("sometimes: %s: %d seeds", name, reached[name])
		if reached[name] == 0 && n >= enough {
			t.Errorf("simulation: of %d seeds none has reached %q", n, name)
		}
	}
	if !s.one { // another seed may use the node
		failMissed(t, hits)
	}
}

func newSeeds(t *testing.T, o TestOptions) *seeds {
	first := max(o.Seed, 1)
	s := &seeds{o: o.Options, every: checkEvery, n: o.Seeds, jobs: 1, diagram: os.Getenv("BRAID_DIAGRAM"), search: search{next: first, guided: o.Guided, draws: draws.Source(first)}, call: callNumber(t)}
	if o.Twice {
		s.every = 1
	}
	s.o.Preempt = !o.NoPreempt
	if s.n == 0 {
		if s.n = 100; testing.Short() {
			s.n = 10
		}
	}
	if v := os.Getenv("BRAID_SEED"); v != "" {
		number, _, _ := strings.Cut(v, "-")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err == nil {
			s.o.variant, err = parseVariant(strings.TrimPrefix(v, number))
		}
		if err != nil || seed == 0 {
			t.Fatalf("simulation: BRAID_SEED=%s is not the number of a seed, or of a shortened one", v)
		}
		s.search, s.n, s.one = search{next: seed}, 1, true
		s.o.Trace = t.Output()
	} else if v := os.Getenv("BRAID_SEEDS"); v != "" {
		var err error
		if s.n, err = strconv.Atoi(v); err != nil {
			s.lasts, err = time.ParseDuration(v)
		}
		if err != nil {
			t.Fatalf("simulation: BRAID_SEEDS=%s is neither a number nor a duration", v)
		}
	}
	s.shorten = fromEnv(t, "BRAID_SHORTEN", "tries")
	if !s.one {
		s.jobs = max(1, fromEnv(t, "BRAID_JOBS", "jobs"))
	}
	if s.jobs > 1 && (o.Bubble || o.Guests) {
		t.Fatalf("simulation: BRAID_JOBS=%d: runs with guests or with Bubble take turns, so use BRAID_PROCESSES", s.jobs)
	}
	if s.processes = fromEnv(t, "BRAID_PROCESSES", "processes"); s.processes > 0 && (s.guided || s.jobs > 1) {
		t.Fatalf("simulation: BRAID_PROCESSES=%d: a guided search and BRAID_JOBS make their runs in one process", s.processes)
	}
	if v := os.Getenv("BRAID_STOP"); v != "" {
		stop, err := strconv.Atoi(v)
		if err != nil || stop <= 0 || !s.one {
			t.Fatalf("simulation: BRAID_STOP=%s is not the number of a step, or there is no BRAID_SEED", v)
		}
		s.o.variant.stop = stop
	}
	if s.n <= 0 && s.lasts <= 0 {
		t.Fatal("simulation: no seeds to run: TestOptions.Seeds and BRAID_SEEDS have to be positive")
	}
	return s
}

// fromEnv returns the positive number in an environment variable, or 0 if the variable is not set.
func fromEnv(t *testing.T, name, of string) int {
	v := os.Getenv(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		t.Fatalf("simulation: %s=%s is not a number of %s", name, v, of)
	}
	return n
}

// packageOf returns the package of the function f.
func packageOf(f func(ctx context.Context, w *World) error) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + strings.TrimSuffix(pkg, "_test")
}

// enough is the number of seeds after which each name of a Sometimes must have been reached.
const enough = 100
