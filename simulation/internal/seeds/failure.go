package seeds

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A failure is the text that Test prints about a run, under construction.
type failure struct {
	t    *testing.T
	s    *session
	run  Run    // the run to name: the run that has failed, or a shorter run
	was  Result // the result of the run that has failed
	last Result // the result of the last repetition of run
	how  How

	shorter bool
	notes   []string // the text that follows the error
	env     []string // the variables that precede BRAID_SEED in the command
}

// failure returns the text that Test prints about the failed run p. The run may run again: for its trace, to be shortened, and for its
// diagram.
func (s *session) failure(t *testing.T, p Run, r Result) string {
	f := &failure{t: t, s: s, run: p, was: r, last: r, how: How{Tell: s.how.Tell}, shorter: s.one}
	if f.canRepeat() {
		f.repeat()
		f.shorten()
		f.draw()
		f.tellStory()
	}
	err := f.cause()
	keys := f.environment()
	if f.last.Output != "" {
		f.note("The output of its process:\n%s\n", f.last.Output)
	}
	f.notes = append(f.notes, s.stopped(r))
	return fmt.Sprintf("seed %v: %v\n%s\nTo repeat it, with the whole trace:\n\n\t%sBRAID_SEED=%v go test -v -run '%s' %s\n%s",
		f.run, err, strings.Join(f.notes, ""), strings.Join(f.env, ""), f.run, pattern(t.Name()), s.Package, keys)
}

// canRepeat reports whether this process can repeat the run. A difference between two processes does not show in one process. A run that has
// ended its own process can be repeated.
func (f *failure) canRepeat() bool {
	return (!f.was.Unending || f.endsItsProcess()) && !(f.s.processes > 0 && f.was.Differs)
}

func (f *failure) endsItsProcess() bool { return f.s.Program != "" && f.was.endsItsProcess() }

// repeat repeats the run, unless s.first has recorded its events already.
func (f *failure) repeat() {
	if f.s.twice(f.run) && len(f.s.others)+f.s.processes == 0 {
		return
	}
	if f.t.Failed() && f.s.Program == "" {
		f.t.Logf("simulation: seed %d has failed, and runs again for its trace, so its output appears twice", f.run.Seed)
	}
	f.last = f.s.first.Again(f.run, f.how, f.was)
}

// shorten replaces the run by a shorter run that fails in the same way.
func (f *failure) shorten() {
	switch {
	case f.s.tries == 0 || f.last.Differs:
		return
	case f.endsItsProcess():
		f.note("It is not shortened: the run ends its process.\n")
		return
	case f.last.Err == nil:
		f.note("It is not shortened: main has returned no error, but marked the test as failed.\n")
		return
	}
	short := Shortened(f.s.first, f.run, f.s.tries)
	r := f.s.first.Twice(short, How{Tell: true})
	if r.Differs {
		f.note("It is not shortened: the shorter seed %v is not deterministic. %v\n", short, r.Err)
		f.last = f.s.first.Twice(f.run, f.how)
		return
	}
	f.run, f.last, f.how, f.shorter = short, r, How{Tell: true}, true
}

// draw draws the diagram of the run.
func (f *failure) draw() {
	if f.s.file != "" && !f.endsItsProcess() {
		f.how.Tell = true
		f.last = f.s.first.Twice(f.run, f.how)
		f.notes = append(f.notes, f.last.draw(f.s.file, f.run.String()))
	}
}

// tellStory adds the story of a run with changes, or the end of the trace.
func (f *failure) tellStory() {
	switch {
	case f.shorter && f.run.changes():
		f.note("Its messages, faults and lines of Log, with their steps:\n%s", f.last.Story())
	case !f.s.one:
		f.note("The end of its trace:\n%s\n", strings.Join(f.s.first.Trace(40), "\n"))
	}
}

func (f *failure) note(format string, args ...any) {
	f.notes = append(f.notes, "\n"+fmt.Sprintf(format, args...))
}

// cause returns the error of the run, or what has failed instead if the last repetition of the run has no error.
func (f *failure) cause() error {
	switch {
	case f.was.Err != nil && f.last.Err != nil && (f.last.Differs && !f.was.Differs || f.last.Unending && !f.was.Unending):
		return fmt.Errorf("%w\n\nThen the run was repeated: %w", f.was.Err, f.last.Err)
	case f.last.Err != nil:
		return f.last.Err
	case f.was.Err != nil:
		return fmt.Errorf("%w\n\nLater runs of the seed did not fail", f.was.Err)
	case f.s.jobs > 1:
		return fmt.Errorf("main has marked the test as failed, in this run or one of the %d runs after it: with BRAID_JOBS=1 the output shows which", round-1)
	}
	return errors.New("main has marked the test as failed")
}

// environment adds the variables that the command needs, and returns advice about a variable that it may need.
func (f *failure) environment() (advice string) {
	if f.s.Program != "" {
		return ""
	}
	if f.s.Guests { // package chance has changed the value 1 of BRAID_RANDOM to "set"
		if os.Getenv("BRAID_RANDOM") != "" {
			f.env = append(f.env, "BRAID_RANDOM=1 ")
		} else {
			advice = "\nThe order of a range over a map of more than 8 entries depends on hash keys of the process. If the command fails in another way, test with\n" +
				"BRAID_RANDOM=1 in the environment (Linux), which makes the keys the same everywhere.\n"
		}
	}
	switch {
	case f.s.processes > 0 && f.last.Differs:
		f.env = append(f.env, "BRAID_PROCESSES=2 ")
	case f.s.processes > 0: // workers print no trace
		f.env = append(f.env, "BRAID_PROCESSES= ")
	}
	return advice
}

// Shortened returns a shorter run that fails in the same way as the run p. It performs at most the given number of tries.
func Shortened(r Runner, p Run, tries int) Run {
	return shorten(p, tries, func(p Run, limit int) Result { return r.Run(p, How{Tell: true, Limit: limit}) })
}

// pattern returns the argument of -run for the test with this name. The argument is in single quotes for the shell, so a quote in the name
// becomes a dot, which matches any character.
func pattern(name string) string {
	name = strings.ReplaceAll(regexp.QuoteMeta(name), "'", ".")
	return "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
}
