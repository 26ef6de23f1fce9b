package explore

import (
	"fmt"
	"strings"
)

// An Extent is how far Deepen has come.
type Extent struct {
	Executions  int
	Preemptions int // all runs with so many; Unlimited: all; less: not even those without any
	Cut         Cut
	Failure     *Failure
}

// Deepen explores all runs without a preemption, then those with one, and so on. So the first failure has as few as possible. It ends when a
// level leaves nothing out, at c.Preemptions unless it is Unlimited, or else after enough runs, of the levels above none.
func Deepen(c Config, enough int, program func(w *World)) Extent {
	x := Extent{Preemptions: Never}
	if c.Reduced || c.Depth > 0 { // a bound would not save anything
		r := Run(c, program)
		if x.Executions, x.Failure, x.Cut = r.Executions, r.Failure, r.Cut; r.Exhausted {
			x.Preemptions = Unlimited
		}
		return x
	}
	most, left := c.Preemptions, enough
	for level := 0; ; level++ {
		if c.Preemptions = level; level > 0 && most < 0 {
			c.Executions = left
		}
		r := Run(c, program)
		x.Executions += r.Executions
		x.Failure = r.Failure
		if level > 0 {
			left -= r.Executions
		}
		if r.Exhausted {
			x.Cut, x.Preemptions = r.Cut, level
		}
		switch {
		case r.Exhausted && !r.Cut.Preemptions:
			x.Preemptions = Unlimited
			return x
		case x.Failure != nil, !r.Exhausted, level == most, most < 0 && left <= 0:
			return x
		}
	}
}

// And is the extent of two searches, of runs of two kinds.
func (x Extent) And(y Extent) Extent {
	x.Executions += y.Executions
	if x.Preemptions == Unlimited || y.Preemptions == Never || y.Preemptions >= 0 && y.Preemptions < x.Preemptions {
		x.Preemptions = y.Preemptions
	}
	x.Failure, x.Cut.Cancellations = y.Failure, y.Cut.Cancellations
	x.Cut.Yields = x.Cut.Yields || y.Cut.Yields
	x.Cut.Draws = x.Cut.Draws || y.Cut.Draws
	return x
}

// String says which runs were made.
func (x Extent) String() string {
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
	if x.Cut.Draws {
		bounds = append(bounds, "other random choices, such as those of Select")
	}
	if bounds == nil {
		return fmt.Sprintf("%d runs, which are all", x.Executions)
	}
	return fmt.Sprintf("%d runs, which are all but those with %s", x.Executions, strings.Join(bounds, ", or with "))
}
