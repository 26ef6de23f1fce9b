package explore

import (
	"fmt"
	"strings"
)

// A Result is the result of a search.
type Result struct {
	Executions  int
	Blocked     int  // runs, of these, that Reduced gave up as they could only repeat others
	Exhausted   bool // there are no other runs within the bounds
	Preemptions int  // no run with at most so many is left out; Unlimited: no run at all; Never: even a run without any may be left out
	Cut         Cut  // the bounds that have cut something off
	Failure     *Failure
}

// A Cut says which bounds have cut a choice off. Without one, a search that is exhausted has made all runs.
type Cut struct {
	Preemptions, Cancellations, Yields bool

	Contexts bool // a task has waited with a context of package context, whose cancel is no point

	Never bool // a task has looked at its context, which is left alone
	Draws bool // a random number was drawn, as by Select: each time the same
}

// And is the result of two searches, of runs of two kinds.
func (x Result) And(y Result) Result {
	x.Executions += y.Executions
	if x.Preemptions == Unlimited || y.Preemptions == Never || y.Preemptions >= 0 && y.Preemptions < x.Preemptions {
		x.Preemptions = y.Preemptions
	}
	x.Failure, x.Cut.Cancellations = y.Failure, y.Cut.Cancellations
	x.Cut.Yields = x.Cut.Yields || y.Cut.Yields
	x.Cut.Contexts = x.Cut.Contexts || y.Cut.Contexts
	x.Cut.Draws = x.Cut.Draws || y.Cut.Draws
	return x
}

// String says which runs were made.
func (x Result) String() string {
	if x.Preemptions == Never {
		return fmt.Sprintf("%d runs, and there are more", x.Executions)
	}
	var bounds []string
	if x.Preemptions >= 0 {
		bounds = append(bounds, fmt.Sprintf("more preemptions than %d", x.Preemptions))
	}
	if x.Cut.Cancellations {
		bounds = append(bounds, "more cancellations")
	}
	if x.Cut.Yields {
		bounds = append(bounds, "more yields of a task while another could run")
	}
	if x.Cut.Contexts {
		bounds = append(bounds, "other turns at contexts of package context")
	}
	if x.Cut.Draws {
		bounds = append(bounds, "other random choices, such as those of Select")
	}
	if bounds == nil {
		return fmt.Sprintf("%d runs, which are all", x.Executions)
	}
	return fmt.Sprintf("%d runs, which are all but those with %s", x.Executions, strings.Join(bounds, ", or with "))
}
