package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/braidgo/braid/suspend"
)

// A Spec describes one or several primitives and their models.
type Spec struct {
	Name string
	New  func(choose Choose) *System // returns a new System, and calls choose to select a variant
}

// A Choose function returns a number below n.
type Choose func(n int) int

// A System holds the objects that a program uses.
type System struct {
	Title   string // names the objects with their parameters
	Parts   []Part
	Selects bool   // programs have Selects over the parts
	Probe   []Call // calls at the end of a run, which detect leftover state of cancelled operations
	Close   func() // releases waiters that no cancellation ends; may be nil
	Slow    bool   // other goroutines pass on a cancellation
}

// A Part is one object.
type Part struct {
	Name  string
	Model Object
	Kinds []Kind
	Both  bool // a Select may have two cases of different kinds on the part, because they are never ready together
}

// A Kind is a kind of operation. The operation returns its result as a string.
type Kind struct {
	Name  string
	Args  int  // the argument is between 1 and Args; 0 means no argument
	Fresh bool // the operation has an argument, which must be unique
	Try   bool // the operation has no context and does not wait
	Run   func(ctx context.Context, arg int) string
	Op    func(arg int) suspend.Op[string] // may be nil
	Seen  string                           // the possible results, separated by commas, except cancelled and late
}

// A Call is one operation on one part.
type Call struct{ Part, Kind, Arg int }

// A Step is a line of a program.
type Step struct {
	Do    Do
	ID    int // the number of the operation
	Calls []Call
	Way   Way  // a Cancel or Expire happens at once with Method, and in a task with other Ways
	Turns int  // how often other tasks run, in a Turn; how often the task first yields, in other steps
	Done  bool // the operation starts with a context that has already ended
}

// A Do is the action of a step.
type Do int

const (
	Start  Do = iota
	Cancel    // the error is context.Canceled
	Expire    // the error is context.DeadlineExceeded
	Turn      // other tasks run
	Settle    // the run waits until no task can run
)

// A Way says how an operation is performed.
type Way int

const (
	Method Way = iota
	Do1        // the task calls suspend.Do, or Select if there are several calls
	Then
)

// A Program is a list of steps on a System. New returns a new System for each run.
type Program struct {
	New   func() *System
	Title string
	Parts []Part // their names are used for printing
	Steps []Step
}

// Program returns a random program. The function steps draws the steps by calling its argument, and returns the steps.
func (s Spec) Program(choose Choose, steps func(step func(Choose) Step) []Step) *Program {
	var chosen []int
	sys := s.New(func(n int) int { chosen = append(chosen, choose(n)); return chosen[len(chosen)-1] })
	return sys.program(steps(sys.draw), func() *System {
		i := -1
		return s.New(func(int) int { i++; return chosen[i] })
	})
}

// Random returns a random program of up to 30 steps.
func (s Spec) Random(rng *rand.Rand) *Program {
	return s.Program(rng.IntN, func(step func(Choose) Step) []Step {
		steps := make([]Step, 1+rng.IntN(30))
		for i := range steps {
			steps[i] = step(rng.IntN)
		}
		return steps
	})
}

// GoString returns a short form, because a failed test also prints the whole program.
func (s Step) GoString() string {
	return fmt.Sprint([]any{s.Do, s.ID, s.Calls, s.Way, s.Turns, s.Done}...)
}

// draw returns a random step. The ID of a Cancel or Expire counts backwards from the latest operation that can be cancelled.
func (sys *System) draw(choose Choose) Step {
	s := Step{}
	switch d := choose(12); {
	case d < 6:
		s.Do, s.Way, s.Turns, s.Done = Start, Way(max(0, choose(4)-1)), choose(3), choose(8) == 7
		calls := 1
		if sys.Selects {
			calls += choose(3)
		}
		for range calls {
			p := choose(len(sys.Parts))
			k := choose(len(sys.Parts[p].Kinds))
			for range choose(2) { // half of the draws prefer a kind that may wait
				for sys.Parts[p].Kinds[k].Try {
					k = (k + 1) % len(sys.Parts[p].Kinds)
				}
			}
			c := Call{p, k, 0}
			if n := sys.Parts[p].Kinds[k].Args; n > 0 {
				c.Arg = 1 + choose(n)
			}
			s.Calls = append(s.Calls, c)
		}
	case d < 9:
		s.Do = Cancel
		if choose(3) == 2 {
			s.Do = Expire
		}
		s.ID, s.Way, s.Turns = choose(5), Way(choose(2)), choose(3)
	case d < 10:
		s.Do, s.Turns = Turn, 1+choose(4)
	default:
		s.Do = Settle
	}
	return s
}

// program returns a program of the drawn steps, with numbered operations.
func (sys *System) program(steps []Step, anew func() *System) *Program {
	p := &Program{New: anew, Title: sys.Title, Parts: sys.Parts}
	started := 0
	var waits []int // ids of operations that can be cancelled
	for _, s := range steps {
		switch s.Do {
		case Start:
			if started == maxOps {
				continue
			}
			s.ID = started
			s.Calls = sys.allowed(s.Calls)
			for i := range s.Calls {
				if k := sys.kind(s.Calls[i]); k.Fresh {
					s.Calls[i].Arg = s.ID + 1
				}
			}
			if k := sys.kind(s.Calls[0]); len(s.Calls) == 1 && k.Op == nil {
				s.Way = Method
			} else if s.Way == Method && (k.Run == nil || len(s.Calls) > 1) {
				s.Way = Do1
			}
			if sys.kind(s.Calls[0]).Try {
				s.Done = false
			} else {
				waits = append(waits, started)
			}
			started++
		case Cancel, Expire:
			if s.ID >= len(waits) {
				continue
			}
			s.ID = waits[len(waits)-1-s.ID]
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

const maxOps = 40

func (sys *System) kind(c Call) *Kind { return &sys.Parts[c.Part].Kinds[c.Kind] }

// allowed returns the calls that one Select may have. Each call must have an Op, and no two calls on the same part may be ready together.
func (sys *System) allowed(calls []Call) []Call {
	if len(calls) == 1 {
		return calls
	}
	var all []Call
	for _, c := range calls {
		excluded := slices.ContainsFunc(all, func(d Call) bool {
			return d.Part == c.Part && (d.Kind == c.Kind || !sys.Parts[c.Part].Both)
		})
		if sys.kind(c).Op != nil && !excluded {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return calls[:1]
	}
	return all
}

// String returns the program with one step per line.
func (p *Program) String() string {
	var s strings.Builder
	s.WriteString("\t" + p.Title + "\n")
	for _, step := range p.Steps {
		s.WriteString("\t" + p.line(step) + "\n")
	}
	return s.String()
}

func (p *Program) line(s Step) string {
	switch s.Do {
	case Start:
		var calls []string
		for _, c := range s.Calls {
			k := p.Parts[c.Part].Kinds[c.Kind]
			arg := ""
			if k.Args > 0 || k.Fresh {
				arg = fmt.Sprint(c.Arg)
			}
			calls = append(calls, fmt.Sprintf("%s.%s(%s)", p.Parts[c.Part].Name, k.Name, arg))
		}
		what := strings.Join(calls, ", ")
		switch {
		case len(calls) > 1 && s.Way == Then:
			what = "Then(Choose(" + what + "))"
		case len(calls) > 1:
			what = "Select(" + what + ")"
		case s.Way == Do1:
			what = "Do(" + what + ")"
		case s.Way == Then:
			what = "Then(" + what + ")"
		}
		if s.Turns > 0 {
			what = strings.Repeat("yield, ", s.Turns) + what
		}
		if s.Done {
			what += ", with a context that has ended"
		}
		return name(s.ID) + ": " + what
	case Cancel, Expire:
		what := "cancel " + name(s.ID)
		if s.Do == Expire {
			what = name(s.ID) + " is late"
		}
		if s.Way != Method {
			what += ", by a task"
			if s.Turns > 0 {
				what += " that yields first"
			}
		}
		return what
	case Turn:
		return fmt.Sprintf("others run, %d times", s.Turns)
	case Settle:
		return "wait until no task can run"
	}
	return ""
}

// Shrink returns a smaller program that still fails. It deletes steps and simplifies the remaining steps, by delta debugging (Zeller and
// Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002).
func (p *Program) Shrink(fails func(p *Program) bool) *Program {
	best := *p
	try := func(steps []Step) bool {
		q := best
		q.Steps = steps
		if !fails(&q) {
			return false
		}
		best = q
		return true
	}
	for n := max(1, len(best.Steps)/2); ; n /= 2 {
		for end := len(best.Steps); end > 0; {
			begin := max(0, end-n)
			_ = try(append(append([]Step{}, best.Steps[:begin]...), best.Steps[end:]...))
			end = min(begin, len(best.Steps))
		}
		if n == 1 {
			break
		}
	}
	simpler := func(i int, f func(s *Step)) {
		steps := append([]Step{}, best.Steps...)
		if f(&steps[i]); !reflect.DeepEqual(steps[i], best.Steps[i]) {
			_ = try(steps)
		}
	}
	for i, s := range best.Steps {
		simpler(i, func(s *Step) { s.Turns = min(s.Turns, 1) })
		if s.Do == Turn {
			continue
		}
		simpler(i, func(s *Step) { s.Turns = 0 })
		if s.Do != Start || len(s.Calls) == 1 && best.Parts[s.Calls[0].Part].Kinds[s.Calls[0].Kind].Run != nil {
			simpler(i, func(s *Step) { s.Way = Method })
		}
	}
	return best.renumbered()
}

// renumbered returns p with consecutive numbers for the operations.
func (p *Program) renumbered() *Program {
	q, ids := *p, map[int]int{}
	q.Steps = nil
	for _, s := range p.Steps {
		if s.Do == Start {
			ids[s.ID] = len(ids)
		}
		id, ok := ids[s.ID]
		if s.Do == Turn || s.Do == Settle || ok {
			s.ID = id
			q.Steps = append(q.Steps, s)
		}
	}
	return &q
}
