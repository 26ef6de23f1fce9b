package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Errors that end a run.
var (
	// ErrDeadlock says that nothing could happen any more: no task could run, and no timer was set. In a bubble the World does not see
	// timers of package time. The World waits for such timers until MaxTime, or for ten years of the bubble's time, before the run fails.
	ErrDeadlock = errors.New("deadlock: no task can run, and no timer is set")

	// ErrSteps says that a run reached Options.MaxSteps.
	ErrSteps = errors.New("the run has reached MaxSteps")

	// ErrTime says that a run reached Options.MaxTime.
	ErrTime = errors.New("the run has reached MaxTime")
)

var (
	// errNative says that a task waited natively in one place for eight times StallAfter: on a channel, a sync.Mutex or a real network.
	errNative = errors.New("a task waits natively, which stops the World")

	// errExited says that main or a callback called runtime.Goexit. The text of the error contains the place of the call.
	errExited = errors.New("main or a callback ended by runtime.Goexit, as t.FailNow does")
)

// ErrForeign says that a goroutine outside the World has called into the World, so the run could not be repeated. The text of the error
// contains the goroutine's stack.
var ErrForeign = errors.New("a goroutine outside the World has called into it")

// The errors of work that is refused.
var (
	errOver    = outcome.Named("simulation: the run is over", suspend.ErrClosed)
	errCrashed = outcome.Named("simulation: the node has crashed", suspend.ErrClosed)
)

// Errors that end a run with guests.
var (
	// ErrStuck says that a guest waited for a sync.Mutex, for real I/O or for a channel of a package while other guests waited for package
	// time, whose clock could not advance; or for a sync.Mutex that a guest of a crashed node had locked.
	ErrStuck = errors.New("stuck: a guest waits for a lock or for something outside the World, so the clock cannot advance")

	// ErrBusy says that a guest ran for ten seconds of processor time without waiting.
	ErrBusy = errors.New("busy: a guest runs without end")
)

// errStockTimeout is the error of a run that would otherwise wait forever for a timeout. AfterDone recognises a deadline of package context
// by its monotonic reading; a deadline by the World's clock has none.
var errStockTimeout = errors.New("a task waits with a timeout of package context, which uses real time, and never expires in a World. " +
	"Use cancel.WithTimeout, or a synctest bubble with Options.Bubble")

// exit must be called by a deferred function. If runtime.Goexit is running the deferred function, exit returns an errExited with the place
// of the Goexit call. The place is the nearest frame outside test packages such as testing. During a panic, exit returns errExited without
// a place.
func exit() error {
	var pcs [64]uintptr
	exited := false
	for frames, more := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])]), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.Goexit":
			exited = true
		case exited && !slices.ContainsFunc(between, func(pkg string) bool { return strings.HasPrefix(f.Function, pkg) }):
			return fmt.Errorf("%w: in %s, %s:%d", errExited, f.Function[strings.LastIndexByte(f.Function, '/')+1:], filepath.Base(f.File), f.Line)
		}
	}
	return errExited // a panic is running the deferred function
}

var between = []string{"testing.", "github.com/stretchr/testify/"}

// frames returns a stack trace without its first line.
func frames(trace []byte) string {
	_, frames, _ := strings.Cut(string(trace), "\n")
	return frames
}

// omitted lists prefixes of the functions that frame() omits from a stack, because they do not help a reader.
var omitted = []string{
	"runtime.", "iter.", "runtime/debug.", "github.com/braidgo/braid/adapters/internal/", "github.com/braidgo/braid/internal/",
	"github.com/braidgo/braid/simulation.(*task)", "github.com/braidgo/braid/suspend.(*binding)", "coroswitch",
	"github.com/braidgo/braid/suspend.(*continuation", "github.com/braidgo/braid/suspend.holdOn",
}

// frame removes the scheduler's frames from a stack. Each frame has two lines.
func frame(stack string) string {
	lines := strings.Split(strings.TrimRight(stack, "\n"), "\n")
	var kept []string
	for i := 0; i+1 < len(lines); i += 2 {
		foreign := !slices.ContainsFunc(omitted, func(p string) bool {
			return strings.HasPrefix(strings.TrimPrefix(lines[i], "created by "), p)
		})
		if foreign {
			kept = append(kept, lines[i], lines[i+1])
		}
	}
	return strings.Join(kept, "\n")
}

// cause returns a hint at the usual cause of a call from outside the World with this stack. The result stock reports whether package
// context or time has made the call.
func cause(stack []byte) (hint string, stock bool) {
	switch {
	case bytes.Contains(stack, []byte("context.(*afterFuncCtx)")):
		return "context.AfterFunc has called its function, which takes a goroutine. " +
			"Use cancel.AfterFunc, or a synctest bubble with Options.Bubble", true
	case bytes.Contains(stack, []byte("time.goFunc")):
		return "a timer of package time has fired. Use suspend.AfterFunc, or a synctest bubble with Options.Bubble", true
	}
	return "use the Go method of the World or of a Node, in place of the go statement", false
}
