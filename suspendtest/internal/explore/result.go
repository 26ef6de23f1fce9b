package explore

import (
	"fmt"
	"strings"
)

// A Result describes the runs that a search has executed.
type Result struct {
	Executions  int
	Blocked     int  // how many of these runs a reduced search gave up, because they could only repeat others
	Exhausted   bool // all runs within the bounds have been executed
	Preemptions int  // all runs with up to this many preemptions were executed; Unlimited means all runs, and Never means no such guarantee
	Cut         Cut  // the bounds that have excluded runs
	Atomics     bool // without Fine: tasks of the program itself seem to access values of package atomicx
	Failure     *Failure
}

// A Cut says which bounds have excluded choices. If no bound has, an exhausted search has executed all runs.
type Cut struct {
	Preemptions, Cancellations, Yields bool

	Rounds bool // a task had to wait before another round of a loop that changes nothing

	Contexts bool // a task has waited with a context of package context, whose cancel function is not a scheduling point

	Never bool // a task has looked at a context that the search must not cancel
	Draws bool // a random number was drawn, for example by Select, and was the same in every run
}

// And combines the results of two searches for different kinds of runs.
func (x Result) And(y Result) Result {
	x.Executions += y.Executions
	x.Atomics = x.Atomics || y.Atomics
	if x.Preemptions == Unlimited || y.Preemptions == Never || y.Preemptions >= 0 && y.Preemptions < x.Preemptions {
		x.Preemptions = y.Preemptions
	}
	x.Failure, x.Cut.Cancellations = y.Failure, y.Cut.Cancellations
	x.Cut.Yields = x.Cut.Yields || y.Cut.Yields
	x.Cut.Rounds = x.Cut.Rounds || y.Cut.Rounds
	x.Cut.Contexts = x.Cut.Contexts || y.Cut.Contexts
	x.Cut.Draws = x.Cut.Draws || y.Cut.Draws
	return x
}

// String describes which runs were executed.
func (x Result) String() string {
	if x.Preemptions == Never {
		return Count(x.Executions, "run") + ", and there are more"
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
	if x.Cut.Rounds {
		bounds = append(bounds, "more rounds of a loop that waits for a change")
	}
	if x.Cut.Contexts {
		bounds = append(bounds, "other turns at contexts of package context")
	}
	if x.Cut.Draws {
		bounds = append(bounds, "other random choices, such as those of Select")
	}
	runs := Count(x.Executions, "run")
	switch {
	case bounds != nil:
		return runs + ", all but those with " + strings.Join(bounds, ", or with ")
	case x.Executions == 1:
		return runs + ", the only one"
	}
	return runs + ", all of them"
}

// Count returns a text such as "1 run" or "2 runs".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
