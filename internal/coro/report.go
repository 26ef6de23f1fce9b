package coro

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/ledger"
)

// Reports returns the function that a scheduler with these options must pass its reports to. If report is nil, the
// function writes to standard error. If after is negative, nothing is reported, and Reports returns nil.
func Reports(after time.Duration, report func(text []byte)) func(text []byte) {
	switch {
	case after < 0:
		return nil
	case report == nil:
		return func(text []byte) { fmt.Fprintf(os.Stderr, "%s\n", text) }
	}
	return report
}

// threadStays reports that a task of the worker has ended with its thread locked. Further such tasks of the worker are not reported.
func (s *Stalls) threadStays() {
	if s != nil && s.after != unlimited && s.toldThread.CompareAndSwap(false, true) {
		go s.report([]byte("a task has ended with its thread locked: its goroutine and its thread never end; call runtime.UnlockOSThread, or see suspend.Blocking"))
	}
}

// text returns the text of a report: the event, the remedy and the stack.
func (s *Stalls) text(what string, again bool, held time.Duration, id int64, stack []byte) []byte {
	var b bytes.Buffer
	state, task, remedy := waitState(stack), "a task", "see suspend.Blocking and adapters/eventloop/README.md"
	if s.about != nil {
		waits := time.Duration(0)
		if again && s.waitsAt != nil {
			waits = held - s.waited.Sub(s.since)
		}
		task, remedy = s.about(id, waits)
	}
	if id != 0 {
		what = task + " " + what
	}
	if again {
		fmt.Fprintf(&b, "still stalled after %v: ", held.Round(s.every))
	}
	fmt.Fprintf(&b, "%s for more than %v", what, s.after)
	if s.others != nil {
		fmt.Fprintf(&b, "; %d other tasks wait behind it", max(0, s.others()))
	}
	if !computes(state) {
		fmt.Fprintf(&b, "\na native wait in a task (%s): %s", state, remedy)
	}
	if at := lineOf(stack, program()); at != nil {
		fmt.Fprintf(&b, "\nat %s", at)
	}
	if known := ledger.Tell(id); known != "" {
		fmt.Fprintf(&b, "\n%s", known)
	}
	fmt.Fprintf(&b, "\n%s", stack)
	return b.Bytes()
}

// program returns the prefixes of function names in the program's own module.
func program() []string {
	own := []string{"main."}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" {
		own = append(own, info.Main.Path+".", info.Main.Path+"/")
	}
	return own
}

// lineOf returns the innermost line of a stack trace whose function has one of the given prefixes, or nil if there is
// none.
func lineOf(stack []byte, own []string) []byte {
	lines := bytes.Split(stack, []byte{'\n'})
	for i, line := range lines[:len(lines)-1] {
		for _, prefix := range own {
			if bytes.HasPrefix(line, []byte(prefix)) {
				at, _, _ := bytes.Cut(bytes.TrimSpace(lines[i+1]), []byte(" +0x"))
				return at
			}
		}
	}
	return nil
}

// waitState returns the state of a goroutine, from the first line of its stack trace.
func waitState(stack []byte) string {
	head, _, _ := bytes.Cut(stack, []byte{'\n'})
	_, head, _ = bytes.Cut(head, []byte{'['})
	end := bytes.IndexAny(head, ",]")
	if end < 0 {
		return ""
	}
	state, _, _ := bytes.Cut(head[:end], []byte(" ("))
	return string(state)
}

// waitPlace returns the frames in the stack trace of a goroutine that waits natively, but not in a system call.
// Otherwise it returns nil.
func waitPlace(stack []byte) []byte {
	head, at, _ := bytes.Cut(stack, []byte{'\n'})
	if state := waitState(head); computes(state) || state == "syscall" {
		return nil
	}
	return at
}

// computes reports whether a goroutine in this state would run if it had a processor.
func computes(state string) bool {
	switch state {
	case "running", "runnable", "preempted":
		return true
	}
	return strings.HasPrefix(state, "GC ")
}
