package schedtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// OnFIFO runs f as the main task of a fifo scheduler, which runs tasks in a known order.
func OnFIFO(t testing.TB, f func(s *fifo.Scheduler)) {
	t.Helper()
	defer Within(t, Deadline)()
	s := fifo.New(fifo.Options{})
	if err := s.Run(context.Background(), func(context.Context) error { f(s); return nil }); err != nil {
		t.Error(err)
	}
}

// Yield yields n times. On fifo, every other runnable task has then also had n turns.
func Yield(n int) {
	for range n {
		suspend.Yield()
	}
}

// Settle yields eight times. On fifo, this is enough for the other tasks of most tests to end or to wait.
func Settle() { Yield(8) }

// WithCancel returns a context and its cancel function. The function cancels all waits synchronously, in the order in which the waits
// began.
func WithCancel() (context.Context, context.CancelFunc) {
	ctx, end := cancel.New(context.Background())
	return ctx, func() { end(nil) }
}

// MayCancel returns a context and its cancel function. In half of the cases, a new goroutine soon calls the cancel function.
func MayCancel(rng *rand.Rand) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	switch rng.IntN(4) {
	case 0:
		go cancel()
	case 1:
		go func() { suspend.Yield(); cancel() }()
	}
	return ctx, cancel
}

// A Moody is a context that panics with Panic in each call of Done or Err except the first.
type Moody struct {
	context.Context
	Panic any
	asked atomic.Bool
}

func (m *Moody) ask() {
	if m.asked.Swap(true) {
		panic(m.Panic)
	}
}

func (m *Moody) Done() <-chan struct{} { m.ask(); return m.Context.Done() }
func (m *Moody) Err() error            { m.ask(); return m.Context.Err() }

// More reports whether a stress test must run round k. A test has at least n rounds. It then continues until the function covered returns
// true, for at most 100*n rounds. Some outcomes are rare on fast machines and on machines with few threads.
func More(k, n int, covered func() bool) bool { return k < n || k < 100*n && !covered() }

// Stress spawns n tasks, each on a scheduler that the function next returns and with its own random numbers. Stress blocks its
// goroutine until all tasks have ended.
func Stress(t testing.TB, next func() suspend.Spawner, n int, task func(i int, rng *rand.Rand)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		if err := next().Go(func() { defer all.Done(); task(i, rng) }); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

// Seeds runs a small program on the random scheduler with n seeds, or a tenth of them with -short or the race detector. The program
// starts its tasks on s, and returns a check that is called at the end. A failure or a hang is reported with its seed.
func Seeds(t testing.TB, n int, program func(rng *rand.Rand, s *random.Scheduler) (holds func() error)) {
	t.Helper()
	if testing.Short() || Race {
		n /= 10
	}
	for seed := uint64(1); seed <= uint64(n); seed++ {
		stop := within(fmt.Sprintf("%s, seed %d", t.Name(), seed), Deadline)
		s := random.New(random.Options{Seed: seed})
		var holds func() error
		err := s.Run(context.Background(), func(context.Context) error {
			holds = program(rand.New(rand.NewPCG(seed, 1)), s)
			return nil
		})
		stop()
		if err = errors.Join(err, holds()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Panics checks that f panics with the value want.
func Panics(t testing.TB, want any, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if v := recover(); v != want {
			t.Errorf("panic %v, want %v", v, want)
		}
	}()
	f()
}

// Eventually calls cond and yields until cond returns true. Use it only for conditions that no event announces. Otherwise a test must
// wait for the event.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(Deadline / 2); !cond(); suspend.Yield() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s\n%s", Deadline/2, what, Stacks())
		}
	}
}

// Quiet waits until every other goroutine of the process is blocked. Then only the caller, a timer or a file descriptor can wake a
// goroutine.
func Quiet(t testing.TB) {
	t.Helper()
	Eventually(t, "everybody waits", func() bool {
		_, others, _ := strings.Cut(Stacks(), "\n\n") // the first stack is the caller's
		for _, g := range strings.Split(others, "\n\n") {
			_, state, _ := strings.Cut(g, "[")
			switch state = strings.ToLower(state); {
			case strings.HasPrefix(state, "syscall"):
				if !strings.Contains(g, "EpollWait") && !strings.Contains(g, "signal_recv") {
					return false
				}
			case strings.HasPrefix(state, "run"), strings.HasPrefix(state, "preempted"), strings.HasPrefix(state, "gc"):
				return false
			}
		}
		return true
	})
}

// Stacks returns the stacks of all goroutines at one moment, the caller's first.
func Stacks() string {
	for size := 1 << 18; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return string(buf[:n])
		}
	}
}

// An Object is large enough for the runtime to allocate and collect it separately.
type Object [1 << 10]byte

// Objects counts the objects that were created, and how many were garbage collected.
type Objects struct{ made, gone atomic.Int32 }

// New returns a new Object and counts it.
func (o *Objects) New() *Object {
	v := new(Object)
	o.Track(v)
	return v
}

// Track counts v, which may be part of a larger object.
func (o *Objects) Track(v *Object) {
	o.made.Add(1)
	runtime.AddCleanup(v, func(struct{}) { o.gone.Add(1) }, struct{}{})
}

// Collected runs the garbage collector until at most the given number of objects are left. The test fails if this takes too long.
func (o *Objects) Collected(t testing.TB, stay int) {
	t.Helper()
	for end := time.Now().Add(Deadline / 2); ; suspend.Yield() {
		runtime.GC()
		made, gone := o.made.Load(), o.gone.Load()
		if int(gone) >= int(made)-stay {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d collected", gone, made)
		}
	}
}
