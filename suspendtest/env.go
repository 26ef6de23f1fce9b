package suspendtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A check is one subtest. A check runs on a separate goroutine, which belongs to no scheduler, while the test's goroutine
// watches it.
type check struct {
	name string
	rule string // the rule that a failure breaks, printed for the author of the scheduler
	when func(Options) bool
	run  func(*env)
}

// The checks call Resume and Suspend through the types resume and suspendFunc, so that the tests of this package can use faulty
// versions.
type (
	resume      func(v *box, err error) bool
	suspendFunc func(ctx context.Context, block func(resume) (*box, bool)) (*box, error)
)

// A box is the value that a wait returns. A box is too large for Go's tiny allocator, which would put several values into one
// block.
type box struct {
	n int
	_ [8]int
}

func direct(ctx context.Context, block func(resume) (*box, bool)) (*box, error) {
	return suspend.Suspend(ctx, func(r suspend.Resumer[*box]) (*box, bool) { return block(r.Resume) })
}

var errTest = errors.New("an error that is delivered")

type env struct {
	opts     Options
	suspend  suspendFunc
	spawner  suspend.Spawner
	executor suspend.Executor
	end      func() // stops the executor of the scheduler for good; see Ending
	shut     func()
	panicked chan any // the values of panics that the scheduler has reported

	steps    atomic.Int64 // counts the steps of the check
	mu       sync.Mutex
	phase    string // describes the current wait, for the report
	problems []string
	bad      chan struct{} // closed when the first problem is reported
	over     atomic.Bool   // the check is over, and spinning tasks must stop
	late     bool          // the check was given up because it made no progress
}

// An opener starts what a check tests.
type opener interface {
	open(tb testing.TB, e *env)
}

type (
	openExecutor func(t testing.TB) (x suspend.Executor, close func())
	openEnding   func(t testing.TB) (s suspend.Spawner, end, close func())
)

func (open Open) open(tb testing.TB, e *env) {
	if e.opts.Panics != nil {
		e.panicked = make(chan any, 16)
		e.spawner, e.shut = e.opts.Panics(tb, func(v any, _ []byte) { e.panicked <- v })
		return
	}
	e.spawner, e.shut = open(tb)
}

func (open openExecutor) open(tb testing.TB, e *env) { e.executor, e.shut = open(tb) }

func (open openEnding) open(tb testing.TB, e *env) { e.spawner, e.end, e.shut = open(tb) }

// runChecks runs each of the checks in a subtest, unless its condition does not hold.
func runChecks(t *testing.T, checks []check, o Options, on opener) {
	for _, c := range checks {
		if c.when != nil && !c.when(o) {
			continue
		}
		e := &env{opts: o, suspend: direct}
		t.Run(c.name, func(t *testing.T) { c.supervise(t, e, on) })
		o.late = o.late || e.late
	}
}

// supervise runs the check and reports its problems to tb.
func (c check) supervise(tb testing.TB, e *env, on opener) {
	tb.Helper()
	on.open(tb, e)
	if e.shut == nil || e.spawner == nil && e.executor == nil {
		tb.Fatal("suspendtest: open returned nil")
	}
	e.bad = make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer e.caught("the check")
		c.run(e)
		e.close()
	}()
	if limit := e.opts.patience(); e.stands(done, limit) {
		e.mu.Lock()
		phase := e.phase
		e.mu.Unlock()
		e.late = true
		e.errorf("no progress within %v: %s", limit, phase)
	}
	e.over.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.problems) > 0 {
		tb.Errorf("%s\n%s", c.rule, strings.Join(e.problems, "\n"))
	}
}

// stands waits until the check ends or makes no progress within the limit. In the second case it returns true. stands polls ten
// times within the limit, and a late tick counts once, so that a process without processor time does not fail the check.
func (e *env) stands(done <-chan struct{}, limit time.Duration) bool {
	const most = 10
	ticker := time.NewTicker(limit / most)
	defer ticker.Stop()
	for looks, last := 0, e.steps.Load(); looks < most; looks++ {
		select {
		case <-done:
			return false
		case <-e.bad:
			return false
		case <-ticker.C:
		}
		if steps := e.steps.Load(); steps != last {
			looks, last = -1, steps
		}
	}
	return true
}

// progress counts a step of the check. A check must make only a bounded number of calls of progress, expect and submit; otherwise a hang goes
// unnoticed.
func (e *env) progress() { e.steps.Add(1) }

func (e *env) errorf(format string, args ...any) { e.report(format, args) }

// fatalf records a problem and ends the calling task or goroutine.
func (e *env) fatalf(format string, args ...any) {
	if e.report(format, args) {
		runtime.Goexit()
	}
}

// report records a problem, unless a test of the kit disables the assertion with the option blind. Only errorf and fatalf may
// call report, because the line of their caller identifies the assertion.
func (e *env) report(format string, args []any) (seen bool) {
	if e.opts.blind != nil {
		if _, file, line, _ := runtime.Caller(2); e.opts.blind(fmt.Sprintf("%s:%d", filepath.Base(file), line)) {
			return false
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.problems) == 0 {
		close(e.bad)
	}
	if len(e.problems) < 10 {
		e.problems = append(e.problems, "- "+fmt.Sprintf(format, args...))
	}
	return true
}

// expect describes the next wait, for the report if the wait does not end.
func (e *env) expect(phase string) {
	e.progress()
	e.mu.Lock()
	e.phase = phase
	e.mu.Unlock()
}

// caught recovers a panic and reports it as a problem. caught is deferred in functions that must not panic.
func (e *env) caught(who string) {
	if v := recover(); v != nil {
		e.errorf("%s panicked: %v\n%s", who, v, debug.Stack())
	}
}

// close closes the scheduler, unless it has been closed before.
func (e *env) close() {
	if shut := e.shut; shut != nil {
		e.shut = nil
		e.expect("close did not return although every task has ended")
		shut()
	}
}

// recv receives from ch. recv is called on goroutines that belong to no scheduler.
func recv[T any](e *env, ch <-chan T, phase string) T {
	e.expect(phase)
	return <-ch
}

// until calls runtime.Gosched until reached() returns true or the check is over.
func (e *env) until(reached func() bool, phase string) {
	e.expect(phase)
	for !reached() && !e.over.Load() {
		runtime.Gosched()
	}
}

// submit calls Execute in a check of an Executor, and Go in a check of a scheduler.
func (e *env) submit(f func()) error {
	e.progress()
	if e.executor != nil {
		return e.executor.Execute(f)
	}
	return e.spawner.Go(f)
}

// task submits f and returns a channel that is closed when f has ended, even if f panics or exits.
func (e *env) task(f func()) (ended chan struct{}) {
	ended = make(chan struct{})
	var begun atomic.Bool
	err := e.submit(func() {
		if begun.Swap(true) {
			e.errorf("a task ran twice")
			return
		}
		defer e.caught("a task")
		defer close(ended)
		f()
	})
	if err != nil {
		e.fatalf("a task was refused although close has not been called: %v", err)
	}
	return ended
}

// do submits f and waits for it.
func (e *env) do(phase string, f func()) {
	recv(e, e.task(f), phase)
}

// letPark gives tasks that are about to park the time to park.
func (e *env) letPark() {
	for range 3 {
		e.do("a new task did not run while others were suspended", func() {})
	}
}

// A waiter is a task that suspends once.
type waiter struct {
	resume    resume
	published chan struct{} // closed when block runs
	ended     chan struct{}
	v         *box
	err       error
	unless    string // a mistake that may have ended the wait, for the report
}

// waiter starts a task that calls the given functions and then suspends with ctx. waiter returns when the task is suspended, as
// far as a check can observe.
func (e *env) waiter(ctx context.Context, before ...func()) *waiter {
	w := &waiter{published: make(chan struct{})}
	w.ended = e.task(func() {
		for _, f := range before {
			f()
		}
		w.v, w.err = e.suspend(ctx, func(r resume) (*box, bool) {
			w.resume = r
			close(w.published)
			return nil, false
		})
	})
	e.expect("a task did not suspend")
	select {
	case <-w.published:
	case <-w.ended: // ctx was already done
	}
	e.letPark()
	return w
}

// pass suspends the calling task with ctx. Another goroutine resumes the task at once.
func (e *env) pass(ctx context.Context) {
	_, _ = e.suspend(ctx, func(r resume) (*box, bool) {
		go r(nil, nil)
		return nil, false
	})
}

// waits lets the scheduler run for a while, so that a mistake can end the wait of w. The argument why describes this mistake in
// the report of finish.
func (e *env) waits(w *waiter, why string) {
	w.unless = ", unless it was resumed " + why
	for range 10 {
		e.letPark()
		runtime.Gosched()
	}
}

// finish resumes w, which must be waiting, and checks its result.
func (e *env) finish(w *waiter) {
	v := new(box)
	if !w.resume(v, nil) {
		e.fatalf("the Resume of a waiting task returned false%s", w.unless)
	}
	recv(e, w.ended, "a task that was resumed did not continue")
	if w.v != v || w.err != nil {
		e.fatalf("Suspend returned %v, %v, not what Resume delivered%s", w.v, w.err, w.unless)
	}
}

// cancelled checks the result of a cancelled Suspend with ctx.
func (e *env) cancelled(ctx context.Context, v *box, err error) {
	if v != nil || err == nil {
		e.fatalf("a cancelled Suspend returned %v, %v", v, err)
	}
	e.isCancellation(ctx, err)
}

// isCancellation checks that err matches both ctx.Err() and the cause of ctx.
func (e *env) isCancellation(ctx context.Context, err error) {
	if !errors.Is(err, ctx.Err()) {
		e.errorf("a cancelled Suspend returned %q, which is not ctx.Err(): %q", err, ctx.Err())
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		e.errorf("a cancelled Suspend returned %q, which is not the cause: %q", err, cause)
	}
}

// panics reports a problem if f does not panic.
func (e *env) panics(what string, f func()) {
	defer func() {
		if recover() == nil {
			e.errorf("%s did not panic", what)
		}
	}()
	f()
}
