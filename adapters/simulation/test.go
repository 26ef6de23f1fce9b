package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/chance"
	"github.com/braidgo/braid/internal/gid"
)

// TestOptions are the choices of a Test. The zero value is the default.
type TestOptions struct {
	Options // Seed is the first

	// Seeds is how many seeds to run. 0 stands for 100, under -short for 10.
	Seeds int

	// Twice says that each seed runs twice, and not every tenth.
	Twice bool

	// NoPreempt turns Options.Preempt off, which is on in a Test.
	NoPreempt bool
}

// checkEvery is how often Test runs a seed twice.
const checkEvery = 10

// Test runs main under seeds 1, 2 and so on, until one fails: main returns an error or marks t as failed, or the run is ended.
// It fails t with the seed, the end of its trace, and the command that repeats it. Every tenth seed, and the one that
// fails, is run twice and compared, as by Check.
//
// The environment chooses other seeds: BRAID_SEED=n runs that one, with its trace; BRAID_SEEDS=n runs n seeds, and
// BRAID_SEEDS=10s runs seeds for ten seconds. With o.Bubble each run has a synctest bubble of its own.
//
// BRAID_SHORTEN=n makes n runs with fewer faults and other chance, to find one that fails in the same way after fewer messages. The same way
// is the same first line of the error, without numbers and names of nodes. The failure then lists the messages, the faults and the lines of
// Log with their steps, and a BRAID_SEED that repeats the shorter run. With BRAID_SEED=s, BRAID_STOP=n calls runtime.Breakpoint before
// step n: a debugger stops there, and without one the process ends.
func Test(t *testing.T, o TestOptions, main func(ctx context.Context, w *World) error) {
	t.Helper()
	s := newSeeds(t, o)
	if !o.Bubble && !o.Guests {
		s.o.fleet = newFleet(o.Options)
		defer s.o.fleet.stop()
	}
	var random *chance.State
	var all Report
	if o.Guests {
		calm(t)
		var why string
		random, why = openChance()
		defer func() {
			t.Logf("guests at level %s%s; %d windows, %d long, %d checks again, %d events ahead, %d goroutines left", level(random), why, all.Windows, all.Long, s.checker.again, all.Ahead, all.Left)
		}()
	}
	s.checker.run = func(o Options) (r Report) {
		if o.Guests {
			cryptotest.SetGlobalRandom(t, o.Seed)
			r = inGuests(t, o, random, main)
			all.Windows, all.Long, all.Ahead, all.Left = all.Windows+r.Windows, all.Long+r.Long, all.Ahead+r.Ahead, all.Left+r.Left
			return r
		}
		if !o.Bubble {
			return runApart(o, main)
		}
		return inBubbleOf(t, o, main)
	}
	begun, steps, n := time.Now(), 0, 0
	reached := map[string]int{} // seeds, by the name of a Sometimes
	for ; s.more(n, time.Since(begun)); n++ {
		r := s.next(n)
		for _, name := range slices.Sorted(maps.Keys(r.Sometimes)) {
			seeds := reached[name]
			if r.Sometimes[name] {
				seeds++
			}
			reached[name] = seeds
		}
		if steps += r.Steps; r.Err != nil || t.Failed() {
			t.Fatal(s.failure(t, r, place(main)))
		}
	}
	took := time.Since(begun)
	t.Logf("%d seeds, %d steps each, %.0f seeds a second", n, steps/max(n, 1), float64(n)/took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		t.Logf("sometimes: %s: %d seeds", name, reached[name])
		if reached[name] == 0 && n >= enough {
			t.Errorf("simulation: of %d seeds none has reached %q", n, name)
		}
	}
}

// enough is how many seeds have to reach each Sometimes.
const enough = 100

// openChance returns nil where the draws of the runtime cannot be set, and then why.
func openChance() (random *chance.State, why string) {
	random, err := chance.Open()
	if err != nil {
		return nil, ": " + err.Error()
	}
	return random, ""
}

// level is that of Report.
func level(random *chance.State) string {
	switch {
	case random == nil:
		return "A"
	case random.Overlaid():
		return "C"
	}
	return "B"
}

// inBubbleOf is runApart in a bubble of its own. A bubble that is left with goroutines panics, and so does one in which all of them wait
// natively. That is an error of the run, or else the seed would be lost.
func inBubbleOf(t *testing.T, o Options, main func(ctx context.Context, w *World) error) (r Report) {
	r = Report{Seed: o.Seed}
	bubble := ""
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		var left strings.Builder
		for _, trace := range gid.Stacks() {
			head, _, _ := bytes.Cut(trace, []byte{'\n'})
			if bubble != "" && bytes.Contains(head, []byte(bubble)) && !bytes.Contains(head, []byte("[coroutine")) {
				fmt.Fprintf(&left, "\n\na goroutine of the bubble:\n%s", frame(frames(trace)))
			}
		}
		r.Err = errors.Join(r.Err, fmt.Errorf("%v%s", v, left.String()))
	}()
	synctest.Test(t, func(*testing.T) {
		bubble = bubbleOf()
		r = runApart(o, main)
	})
	return r
}

// seeds are those of a Test.
type seeds struct {
	o       Options
	every   uint64 // of which one runs twice
	first   uint64
	n       int
	lasts   time.Duration // in place of n, unless 0
	one     bool
	shorten int // tries
	checker checker
}

func newSeeds(t *testing.T, o TestOptions) *seeds {
	s := &seeds{o: o.Options, every: checkEvery, first: max(o.Seed, 1), n: o.Seeds}
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
		s.first, s.n, s.one = seed, 1, true
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
	if v := os.Getenv("BRAID_SHORTEN"); v != "" {
		var err error
		if s.shorten, err = strconv.Atoi(v); err != nil || s.shorten <= 0 {
			t.Fatalf("simulation: BRAID_SHORTEN=%s is not a number of tries", v)
		}
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

func (s *seeds) more(n int, since time.Duration) bool {
	if s.lasts > 0 {
		return since < s.lasts
	}
	return n < s.n
}

// next runs the n'th seed.
func (s *seeds) next(n int) Report {
	s.o.Seed = s.first + uint64(n)
	if !s.one && s.o.Seed%s.every != 0 {
		return s.checker.run(s.o)
	}
	err := s.checker.check(s.o)
	r := s.checker.report
	r.Err = err
	return r
}

// failure is the text about a seed that has failed.
func (s *seeds) failure(t *testing.T, r Report, pkg string) string {
	o := s.o
	o.Trace = nil
	err, end := r.Err, ""
	if !unending(err) {
		err = s.checker.check(o)
		var differs *Nondeterminism
		if s.shorten > 0 && s.checker.report.Err != nil && !errors.As(err, &differs) {
			o = s.shortened(o)
			err = s.checker.check(o)
		}
		switch events := s.checker.events; {
		case o.variant.changes():
			end = "\nIts messages, faults and lines of Log, with their steps:\n" + o.variant.print(s.checker.report)
		case !s.one:
			end = "\nThe end of its trace:\n" + strings.Join(lines(events[max(0, len(events)-40):]), "\n") + "\n"
		}
	}
	switch {
	case err == nil && r.Err != nil:
		err = fmt.Errorf("%w\n\nLater runs of the seed did not fail", r.Err)
	case err == nil:
		err = fmt.Errorf("main has marked the test as failed")
	}
	again, keys := "", ""
	if o.Guests { // the first is what BRAID_RANDOM makes of itself
		if os.Getenv("BRAID_RANDOM") != "" {
			again = "BRAID_RANDOM=1 "
		} else {
			keys = "\nA range over a map of more than 8 entries has its order by keys of the process. If the command fails otherwise, test with\n" +
				"BRAID_RANDOM=1 in the environment (Linux), which makes the keys the same everywhere.\n"
		}
	}
	seed := fmt.Sprintf("%d%v", o.Seed, o.variant)
	return fmt.Sprintf("seed %s: %v\n%s\nTo repeat it, with the whole trace:\n\n\t%sBRAID_SEED=%s go test -v -run '%s' %s\n%s", seed, err, end, again, seed, pattern(t.Name()), pkg, keys)
}

// shortened returns the options of a shorter run that fails in the same way.
func (s *seeds) shortened(o Options) Options {
	v := o.variant
	if v == nil {
		v = &variant{}
	}
	o.variant = v.shorten(func(v *variant) Report {
		o.variant = v
		return s.checker.run(o)
	}, s.shorten, o.Seed)
	return o
}

// pattern is the argument of -run for one test. The shell has it in quotes, so a quote in a name becomes any character.
func pattern(name string) string {
	name = strings.ReplaceAll(regexp.QuoteMeta(name), "'", ".")
	return "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
}

// place returns the package that f is in.
func place(f func(ctx context.Context, w *World) error) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + strings.TrimSuffix(pkg, "_test")
}
