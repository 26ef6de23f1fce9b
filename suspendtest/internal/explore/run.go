package explore

import (
	"strconv"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// Run explores program, which starts the tasks of a World. It calls program for each run, until all runs within the bounds have been
// executed or a run has failed.
func Run(c Config, program func(w *World)) Result {
	if c.Steps == 0 {
		c.Steps = 10_000
	}
	if c.Stall == 0 {
		c.Stall = 5 * time.Second
	}
	if c.Busy == 0 {
		c.Busy = 30 * time.Second
	}
	e := &explorer{Config: c, level: Never}
	var path []choice
	if c.Replay != "" {
		var err error
		if path, err = e.parse(c.Replay); err == nil && e.Reduced && !c.Fine {
			err = errReplay // the string comes from another kind of search
		}
		if err != nil {
			return Result{Failure: &Failure{Reason: err.Error(), Replay: c.Replay}}
		}
	}
	if e.Reduced {
		if !c.Fine {
			panic("explore: Reduced is for Fine only")
		}
		e.search = newReduction(e)
	} else {
		b := &bounded{e: e}
		if c.Depth > 0 && c.Replay == "" {
			e.Preemptions, b.pct = Unlimited, new(pct)
		}
		e.search = b
	}
	e.search.replay(path)
	defer e.trace(c.Fine)()
	defer preempt.Watch(watcher{e})()
	r := e.runWatched(func() Result { defer e.stop(); return e.all(program) })
	if r.Failure == nil && e.looked&^e.looks != 0 && c.Replay == "" {
		c.looks |= e.looked
		return Run(c, program)
	}
	if f := r.Failure; f != nil && !c.tracing {
		c.Replay, c.tracing, c.random = f.Replay, true, nil
		again := Run(c, program).Failure
		if again == nil {
			again = new(Failure)
		}
		if f.Trace = again.Trace; again.Reason != f.Reason {
			f.Reason += "\n(but when it was repeated, the result was " + strconv.Quote(again.Reason) + ": the program depends on something else)"
		}
	}
	if r.Preemptions, r.Cut = e.level, e.cut; r.Exhausted && !r.Cut.Preemptions {
		r.Preemptions = Unlimited
	}
	return r
}

// all executes the runs of the search that Run has chosen.
func (e *explorer) all(program func(w *World)) (r Result) {
	least, failed := 0, 0
	end := func() {}
	if !e.Fine {
		end = e.notice()
	}
	for {
		w := e.run(program)
		end()
		r.Atomics = e.atomics
		if f := r.Failure; w.failure != "" && (f == nil || w.failure == f.Reason && w.steps < least) {
			r.Executions, least = e.runs, w.steps
			r.Failure = &Failure{Reason: w.failure, Trace: w.story(), Replay: e.format()}
			e.failure = &r
		}
		if r.Failure != nil {
			if failed++; failed > e.Shorter || least > e.Steps || e.Replay != "" || e.runs == e.Executions || !e.nextRun() {
				return r
			}
			continue
		}
		r.Executions = e.runs
		if w.redundant {
			r.Blocked++
		}
		if e.Replay != "" || e.looked&^e.looks != 0 { // Run then starts again, with more kinds of releases as scheduling points
			return r
		}
		if !e.nextRun() {
			r.Exhausted = true
			return r
		}
		if e.runs == e.Executions {
			return r
		}
	}
}
