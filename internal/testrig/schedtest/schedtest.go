// Package schedtest runs a test on every scheduler that there is.
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

// Deadline is how long a test may take; a test that takes longer counts as hung. The environment variable BRAID_DEADLINE sets another.
var Deadline = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("BRAID_DEADLINE")); err == nil {
		return d
	}
	return 60 * time.Second
}()

// A Scheduler has the name of a scheduler, and opens it. It runs until close, which waits for every task.
type Scheduler struct {
	Name string
	Open func() (s suspend.Spawner, close func())
}

// All are the schedulers, plain goroutines among them.
var All = []Scheduler{
	{"goroutines", openGoroutines},
	{"fifo", openFIFO},
	{"random", openRandom},
	{"workstealing", openPool},
	{"eventloop", openLoop},
	{"callback", openCallback},
}

// Each runs body as a subtest on every scheduler, and waits for all tasks before it goes on to the next.
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

// Mixed opens one of each scheduler, and next returns them in turn.
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

// Run runs fs as tasks of s, one spawned after the other, and waits for them, natively. They may use t.FailNow.
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

// Within ends the process with every goroutine's stack if the returned function is not called in time: a hang is
// a failure.
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

// drive does the same as suspendtest.Drive, to avoid that package, which would link its checkers and models into all test programs.
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

// A thread is a loop that offers nothing but to run a function.
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
