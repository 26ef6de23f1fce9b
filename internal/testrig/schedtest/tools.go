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

// OnFIFO runs f as the main task of a fifo scheduler, where the order of everything is known.
func OnFIFO(t testing.TB, f func(s *fifo.Scheduler)) {
	t.Helper()
	defer Within(t, Deadline)()
	s := fifo.New(fifo.Options{})
	if err := s.Run(context.Background(), func(context.Context) error { f(s); return nil }); err != nil {
		t.Error(err)
	}
}

// Yield yields n times. On fifo every other runnable task has run as often by then.
func Yield(n int) {
	for range n {
		suspend.Yield()
	}
}

// Settle lets all runnable tasks of a fifo run, as often as tests need it.
func Settle() { Yield(8) }

// WithCancel returns a context that cancels its waiters in its cancel function, in the order in which they came.
func WithCancel() (context.Context, context.CancelFunc) {
	ctx, end := cancel.New(context.Background())
	return ctx, func() { end(nil) }
}

// MayCancel returns a context that, one time in two, a goroutine cancels soon.
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

// A Moody context panics with Panic at each call of Done or Err but the first.
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

// More reports whether a stress test has a round k. It has n rounds at least. It has more, up to a hundred times as
// many, until covered reports that each outcome was there: a fast machine or one with few threads may see some rarely.
func More(k, n int, covered func() bool) bool { return k < n || k < 100*n && !covered() }

// Stress runs n tasks, each spawned on the next scheduler and with separate random numbers, and waits for them, natively.
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

// Seeds runs a small program under n seeds of the adversary, a tenth of them under -short and under the race detector.
// The program starts its tasks on s, and returns the check for the end. A program that fails or hangs is reported with its seed.
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

// Panics checks that f panics with want.
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

// Eventually calls cond again and again, and yields in between. It is for conditions that no event announces. Otherwise a test must wait
// for the event.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(Deadline / 2); !cond(); suspend.Yield() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s\n%s", Deadline/2, what, Stacks())
		}
	}
}

// Quiet waits until every other goroutine of the process waits, so that nothing goes on but by the caller, a timer or a
// descriptor.
func Quiet(t testing.TB) {
	t.Helper()
	Eventually(t, "everybody waits", func() bool {
		_, others, _ := strings.Cut(Stacks(), "\n\n") // the first is the caller
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

// An Object is large enough to be collected by itself.
type Object [1 << 10]byte

// Objects counts the objects that are made, and how many are collected.
type Objects struct{ made, gone atomic.Int32 }

// New returns a new object, which is counted.
func (o *Objects) New() *Object {
	v := new(Object)
	o.Track(v)
	return v
}

// Track counts v, which may belong to a larger object.
func (o *Objects) Track(v *Object) {
	o.made.Add(1)
	runtime.AddCleanup(v, func(struct{}) { o.gone.Add(1) }, struct{}{})
}

// Collected waits until all objects are collected, except this number that stays.
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
