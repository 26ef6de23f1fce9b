// Package schedtest runs a test on every scheduler of Braid.
package schedtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Deadline is the time after which a running test counts as hung. The environment variable BRAID_DEADLINE overrides the default of 60
// seconds.
var Deadline = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("BRAID_DEADLINE")); err == nil {
		return d
	}
	return 60 * time.Second
}()

// A Scheduler is a kind of scheduler. Open starts a scheduler, which runs until close is called. The call of close waits for every task.
type Scheduler struct {
	Name string
	Open func() (s suspend.Spawner, close func())
}

// All contains every kind of scheduler, including plain goroutines.
var All = []Scheduler{
	{"goroutines", openGoroutines},
	{"fifo", openFIFO},
	{"random", openRandom},
	{"workstealing", openPool},
	{"eventloop", openLoop},
	{"callback", openCallback},
}

// Each runs body as a subtest on every scheduler. Each waits for all tasks of a scheduler before it opens the next scheduler.
func Each(t *testing.T, body func(t *testing.T, s suspend.Spawner)) {
	for _, sched := range All {
		t.Run(sched.Name, func(t *testing.T) {
			defer Within(t, Deadline)()
			s, closeAll := sched.Open()
			defer closeAll()
			body(t, s)
		})
	}
}

// Mixed opens every kind of scheduler and calls body. Each call of the function next returns another of these schedulers, in turn.
func Mixed(t *testing.T, body func(t *testing.T, next func() suspend.Spawner)) {
	defer Within(t, Deadline)()
	var opened []suspend.Spawner
	for _, sched := range All {
		s, closeAll := sched.Open()
		defer closeAll()
		opened = append(opened, s)
	}
	i := 0
	body(t, func() suspend.Spawner {
		i++
		return opened[i%len(opened)]
	})
}

// Run spawns fs as tasks of s, in order, and waits natively until all tasks have ended. The tasks may call t.FailNow.
func Run(t testing.TB, s suspend.Spawner, fs ...func()) {
	t.Helper()
	var all sync.WaitGroup
	for _, f := range fs {
		all.Add(1)
		if err := s.Go(func() { defer all.Done(); f() }); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

// Within starts a timer, and returns a function that stops it. If the timer fires after d, because the test hangs, Within prints every
// goroutine's stack and ends the process.
func Within(t testing.TB, d time.Duration) (stop func()) {
	return within(t.Name(), d)
}

func within(what string, d time.Duration) (stop func()) {
	timer := time.AfterFunc(d, func() {
		fmt.Fprintf(os.Stderr, "%s: no end after %v\n%s", what, d, Stacks())
		os.Exit(2)
	})
	return func() { timer.Stop() }
}

func openGoroutines() (suspend.Spawner, func()) {
	g := new(goroutines)
	return g, g.wg.Wait
}

type goroutines struct{ wg sync.WaitGroup }

func (g *goroutines) Go(f func()) error {
	g.wg.Go(f)
	return nil
}

// Execute calls f on a goroutine, where it must not suspend.
func (g *goroutines) Execute(f func()) error {
	g.wg.Go(func() { suspend.Bind(nil, f) })
	return nil
}

// drive does the same as suspendtest.Drive. Importing package suspendtest would link its checkers and models into all test programs.
func drive(run func(ctx context.Context, main func(ctx context.Context) error) error) (stop func()) {
	var over promise.Promise[struct{}]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(context.Background(), func(ctx context.Context) error { _, err := over.Await(ctx); return err })
	}()
	return func() { over.Fill(struct{}{}); <-ended }
}

func openFIFO() (suspend.Spawner, func()) {
	s := fifo.New(fifo.Options{})
	return s, drive(s.Run)
}

func openRandom() (suspend.Spawner, func()) {
	s := random.New(random.Options{})
	return s, drive(s.Run)
}

func openPool() (suspend.Spawner, func()) {
	p := workstealing.New(workstealing.Options{Workers: 2})
	return p, func() { _ = p.Close() }
}

// A thread is the simplest event loop, which only runs the functions that it receives.
type thread chan func()

func (q thread) Execute(f func()) error { q <- f; return nil }

func openCallback() (suspend.Spawner, func()) {
	q, ended := make(thread), make(chan struct{})
	go func() {
		defer close(ended)
		for f := range q {
			f()
		}
	}()
	l := callback.New(q, callback.Options{})
	return l, func() {
		_ = l.Close()
		close(q)
		<-ended
	}
}

func openLoop() (suspend.Spawner, func()) {
	l, err := eventloop.New(eventloop.Options{Loops: 2})
	if err != nil {
		panic(err)
	}
	return l, func() { _ = l.Close() }
}
