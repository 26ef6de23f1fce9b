package simulation

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// seeds is the state of a call of Test.
type seeds struct {
	search
	o       Options
	every   uint64 // a seed that is a multiple of this number runs twice
	n       int
	lasts   time.Duration // how long to run seeds; if not 0, this duration replaces s.n
	one     bool
	jobs    int
	shorten int    // the number of tries to shorten a failure
	diagram string // the name of the file for the diagram
	checker checker
	others  []*checker // the checkers of all jobs but the first

	processes int // the number of workers; 0 means that this process performs the runs
	call      int // the number of this call of Test in its test
}

// Every seed that is a multiple of checkEvery runs twice.
const checkEvery = 10

func (s *seeds) more(n int, since time.Duration) bool {
	if s.lasts > 0 {
		return since < s.lasts
	}
	return n < s.n
}

// round plans further runs after the first n runs, and yields each run with its report, in the order of the plan. With several jobs or
// processes, all runs end before the first is yielded.
func (s *seeds) round(t *testing.T, n int) iter.Seq2[plan, Report] {
	plans := make([]plan, max(round, s.processes*perWorker))
	if s.lasts > 0 && s.processes > 0 {
		plans = plans[:s.processes*round]
	}
	if s.lasts == 0 {
		plans = plans[:min(len(plans), s.n-n)]
	}
	for i := range plans {
		plans[i] = s.plan()
	}
	perform := func(i int) Report { return s.perform(&s.checker, plans[i]) }
	switch {
	case s.processes > 0:
		perform = s.inWorkers(t, plans)
	case len(s.others) > 0:
		perform = s.abreast(plans)
	}
	return func(yield func(plan, Report) bool) {
		for i, p := range plans {
			if !yield(p, perform(i)) {
				return
			}
		}
	}
}

// abreast performs all plans in parallel, and returns a function that returns the i'th report.
func (s *seeds) abreast(plans []plan) func(i int) Report {
	reports, at := make([]Report, len(plans)), atomic.Int64{}
	var all sync.WaitGroup
	for _, c := range append(s.others, &s.checker) {
		all.Go(func() {
			for i := at.Add(1) - 1; int(i) < len(plans); i = at.Add(1) - 1 {
				reports[i] = s.perform(c, plans[i])
			}
		})
	}
	all.Wait()
	return func(i int) Report { return reports[i] }
}

// options returns the Options for the run p.
func (s *seeds) options(p plan) Options {
	o := s.o
	if o.Seed = p.seed; len(p.forks) > 0 {
		o.variant = &variant{forks: p.forks, silent: true}
	}
	return o
}

// twice reports whether the run p is performed twice.
func (s *seeds) twice(p plan) bool { return s.one || len(p.forks) == 0 && p.seed%s.every == 0 }

// perform performs the run p, once or twice.
func (s *seeds) perform(c *checker, p plan) Report {
	o := s.options(p)
	if !s.twice(p) {
		return c.run(o)
	}
	err := c.check(o)
	r := c.report
	r.Err = err
	return r
}

// failure returns the text that Test prints about the failed run p.
func (s *seeds) failure(t *testing.T, p plan, r Report, pkg string) string {
	o, shorter := s.options(p), s.one
	o.Trace = nil
	err, end := r.Err, ""
	var differs *Nondeterminism
	if !unending(err) && !(s.processes > 0 && errors.As(err, &differs)) {
		if !s.twice(p) || len(s.others)+s.processes > 0 { // otherwise the checker has recorded the events
			if t.Failed() {
				t.Logf("simulation: seed %d has failed, and runs a second time, for its trace: what it prints comes twice", o.Seed)
			}
			err = s.checker.again(o, r)
		}
		switch {
		case s.shorten == 0 || errors.As(err, &differs):
		case s.checker.report.Err == nil:
			end = "\nIt is not shortened: main has returned no error, but marked the test as failed.\n"
		default:
			short := s.shortened(o)
			if errShort := s.checker.check(short); errors.As(errShort, &differs) {
				end = fmt.Sprintf("\nIt is not shortened: the shorter seed %d%v is not deterministic. %v\n", o.Seed, short.variant, differs)
				err = s.checker.check(o)
				break
			}
			o, shorter, err = short, true, s.checker.report.Err
		}
		if s.diagram != "" {
			if o.variant == nil {
				o.variant = &variant{}
			}
			o.variant.silent = false
			err = s.checker.check(o)
			end += o.variant.draw(s.diagram, fmt.Sprintf("%d%v", o.Seed, o.variant), s.checker.report)
		}
		switch events := s.checker.events; {
		case shorter && o.variant.changes():
			end += "\nIts messages, faults and lines of Log, with their steps:\n" + o.variant.print(s.checker.report)
		case !s.one:
			end += "\nThe end of its trace:\n" + strings.Join(traceLines(lastTraced(events, 40)), "\n") + "\n"
		}
	}
	switch {
	case err == nil && r.Err != nil:
		err = fmt.Errorf("%w\n\nLater runs of the seed did not fail", r.Err)
	case err == nil:
		if err = errors.New("main has marked the test as failed"); s.jobs > 1 {
			err = fmt.Errorf("%w, in this run or one of the %d after it: BRAID_JOBS=1 says in which", err, round-1)
		}
	}
	again, keys := "", ""
	if o.Guests { // package chance has changed the value 1 of BRAID_RANDOM to "set"
		if os.Getenv("BRAID_RANDOM") != "" {
			again = "BRAID_RANDOM=1 "
		} else {
			keys = "\nA range over a map of more than 8 entries has its order by keys of the process. If the command fails otherwise, test with\n" +
				"BRAID_RANDOM=1 in the environment (Linux), which makes the keys the same everywhere.\n"
		}
	}
	switch {
	case s.processes > 0 && errors.As(err, &differs):
		again += "BRAID_PROCESSES=2 "
	case s.processes > 0: // workers print no trace
		again += "BRAID_PROCESSES= "
	}
	seed := fmt.Sprintf("%d%v", o.Seed, o.variant)
	end += s.stopped(r)
	return fmt.Sprintf("seed %s: %v\n%s\nTo repeat it, with the whole trace:\n\n\t%sBRAID_SEED=%s go test -v -run '%s' %s\n%s", seed, err, end, again, seed, pattern(t.Name()), pkg, keys)
}

// stopped returns a message if the run has not reached the step of BRAID_STOP, or "" if it has.
func (s *seeds) stopped(r Report) string {
	if v := s.o.variant; v != nil && v.stop > 0 {
		return fmt.Sprintf("\nBRAID_STOP=%d: the run has no such step. It ended at step %d.\n", v.stop, r.Steps)
	}
	return ""
}

// shortened returns the options of a shorter run that fails in the same way.
func (s *seeds) shortened(o Options) Options {
	v := o.variant
	if v == nil {
		v = &variant{}
	}
	v.silent = false
	o.variant = v.shorten(func(v *variant) Report {
		o.variant = v
		return s.checker.run(o)
	}, s.shorten, o.Seed)
	return o
}

// pattern returns the argument of -run for the test with this name. The argument is in single quotes for the shell, so a quote in the name
// becomes a dot, which matches any character.
func pattern(name string) string {
	name = strings.ReplaceAll(regexp.QuoteMeta(name), "'", ".")
	return "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
}
