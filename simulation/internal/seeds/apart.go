package seeds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// An apart is a Runner whose runs have a process each, see Options.Program.
type apart struct {
	s      *session
	t      *testing.T
	events []Event // the events of the last run that Twice or Again has performed
}

func (a *apart) Run(p Run, how How) Result {
	how.Events = how.Events || how.Trace != nil
	return a.told(a.addTrace(p, how, a.s.employ(a.t, how, p)[0]), how)
}

// addTrace adds the events to the result r of a run that has ended its process. The run is performed again, and writes its trace to a file.
func (a *apart) addTrace(p Run, how How, r Result) Result {
	if how.Keep = true; r.endsItsProcess() && (how.Events || how.Trace != nil) {
		r.Events = a.s.employ(a.t, how, p)[0].Events
	}
	return r
}

// endsItsProcess reports whether the run has ended its process, and not because it took all the time of the test.
func (r Result) endsItsProcess() bool {
	return errors.Is(r.Err, errEnded) && !strings.Contains(r.Err.Error(), "panic: test timed out")
}

func (a *apart) Twice(p Run, how How) Result {
	x, y := a.s.pair(a.t, p, how)
	x = a.addTrace(p, how, x)
	if a.told(x, how); x.same(y) {
		return x
	}
	if r := a.s.across(a.t, p, x, y); r.Differs {
		return r
	}
	return x
}

func (a *apart) Again(p Run, how How, was Result) Result {
	how.Events = true
	r := a.told(a.addTrace(p, how, a.s.employ(a.t, how, p)[0]), how)
	if !r.same(was) {
		return a.Twice(p, how)
	}
	return r
}

// told keeps the events of r for Trace, and writes them to how.Trace.
func (a *apart) told(r Result, how How) Result {
	a.events = r.Events
	if how.Trace != nil {
		for _, line := range a.Trace(len(r.Events)) {
			_, _ = fmt.Fprintln(how.Trace, line)
		}
		if r.Output != "" {
			_, _ = fmt.Fprintf(how.Trace, "The output of the process:\n%s\n", r.Output)
		}
	}
	return r
}

func (a *apart) Trace(n int) (lines []string) {
	for i := len(a.events) - 1; i >= 0 && len(lines) < n; i-- {
		if !a.events[i].Quiet {
			lines = append(lines, a.events[i].Text)
		}
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return lines
}
