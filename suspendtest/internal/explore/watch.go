package explore

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/outcome"
)

// runWatched calls the function runs on a separate goroutine, because a task that waits natively, for example for a sync.Mutex, may block its
// goroutine forever, and a task that polls without a scheduling point may keep its goroutine busy forever. In these cases runWatched returns
// a failure, and leaves the goroutines behind.
func (e *explorer) runWatched(runs func() Result) Result {
	var r Result
	var how outcome.Outcome
	ended := make(chan struct{})
	go func() {
		e.gid = gid.Get()
		e.turn.Store(e.gid)
		outcome.Of(func() { r = runs() }, func(o outcome.Outcome) { how = o; close(ended) })
	}()
	looks := time.NewTicker(e.Stall / 5)
	defer looks.Stop()
	most := int(5 * e.Busy / e.Stall)
	for before, waits, busy := int64(0), 0, 0; ; {
		select {
		case <-ended:
			how.Rethrow()
			return r
		case <-looks.C:
		}
		steps := e.steps.Load()
		var all map[int64][]byte
		if steps == before && steps != 0 {
			all = stacks()
		}
		switch {
		case all == nil:
			before, waits, busy = steps, 0, 0
		case waitsNatively(all[e.turn.Load()]):
			waits++
		default:
			waits = 0
			busy++
		}
		if (waits == 5 || busy == most) && e.steps.CompareAndSwap(steps, math.MinInt64) {
			if e.failure != nil { // the search already had this failure and was looking for a shorter run
				return *e.failure
			}
			return Result{Executions: e.runs, Failure: e.stalled(all, waits == 5)}
		}
	}
}

// stalled returns the failure of a run in which a task waits natively, or computes for too long.
func (e *explorer) stalled(all map[int64][]byte, waits bool) *Failure {
	w := e.world
	name, stack := "the program", all[e.turn.Load()]
	var s, others, traces strings.Builder
	if w.current != nil {
		name = w.current.name
	} else {
		fmt.Fprintf(&traces, "\n%s: %s\n", name, stack)
	}
	for _, t := range w.tasks {
		if t.worker != nil {
			fmt.Fprintf(&traces, "\n%s: %s\n", t.name, all[t.worker.gid])
			if t != w.current {
				fmt.Fprintf(&others, ", %s at %s", t.name, lineOf(all[t.worker.gid]))
			}
		}
	}
	failure := func(reason string) *Failure {
		return &Failure{Reason: reason, Trace: w.story(), Replay: e.format(), Stacks: traces.String()}
	}
	if !waits {
		return failure(fmt.Sprintf("%s makes no progress for %v: it computes, or polls in a loop without a scheduling point, at %s, and continues in the background. A loop that polls must call suspend.Yield", name, e.Busy, lineOf(stack)))
	}
	fmt.Fprintf(&s, "%s makes no progress: it blocks natively (%s) at %s.", name, waitState(stack), lineOf(stack))
	if others.Len() > 0 {
		fmt.Fprintf(&s, " One of these tasks probably holds what it waits for: %s.", others.String()[2:])
	}
	s.WriteString(" No task may hold a lock of package sync, or a Guard, at a point where Explore may switch to another task")
	if e.Points {
		s.WriteString("; with ExploreOptions.Waits, it switches only where a task waits, yields or ends")
	}
	return failure(s.String())
}

func stacks() map[int64][]byte {
	all := map[int64][]byte{}
	for id, stack := range gid.Stacks() {
		all[id] = stack
	}
	return all
}

// waitState returns the goroutine's state from the first line of its stack trace.
func waitState(stack []byte) string {
	head, _, _ := bytes.Cut(stack, []byte{'\n'})
	_, head, _ = bytes.Cut(head, []byte{'['})
	if end := bytes.IndexAny(head, ",]"); end >= 0 {
		return string(head[:end])
	}
	return ""
}

// waitsNatively reports whether the goroutine with this stack trace is blocked, and does not merely wait for a processor.
func waitsNatively(stack []byte) bool {
	switch state := waitState(stack); state {
	case "", "running", "runnable", "preempted", "syscall", "wait for GC cycle":
		return false
	default:
		return !strings.HasPrefix(state, "GC ")
	}
}

// lineOf returns the innermost source line of a stack trace that belongs to neither the library nor the runtime.
func lineOf(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		_, ours := inside(lines[i], at[:max(0, strings.LastIndexByte(at, ':'))])
		if !ours && !below.MatchString(lines[i]) {
			return at[strings.LastIndexByte(at, '/')+1:]
		}
	}
	return "its beginning"
}

// The pattern below matches the lines of a stack trace that belong to the runtime and the standard library.
var below = regexp.MustCompile(`^(created by|runtime|sync|time|internal|iter)[ ./]`)
