package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

var errBroken = errors.New("the invariant is broken")

// invariant adds an invariant to w, and returns the switch that breaks it.
func invariant(w *simulation.World) *bool {
	broken := new(bool)
	w.Always(func() error {
		if *broken {
			return errBroken
		}
		return nil
	})
	return broken
}

// An invariant that the last step breaks fails the run, whatever main returns.
func TestAnInvariantIsCheckedAfterTheLastStep(t *testing.T) {
	for _, result := range []error{nil, errors.New("an error of main")} {
		failing(t, simulation.Options{Seed: 1}, errBroken, func(_ context.Context, w *simulation.World) error {
			broken := invariant(w)
			suspend.Yield()
			*broken = true
			return result
		})
	}
}

// An invariant that a timer breaks fails the run, even if the next timer of the same time restores it.
func TestAnInvariantIsCheckedBetweenTimersOfOneMoment(t *testing.T) {
	failing(t, simulation.Options{Seed: 1}, errBroken, func(ctx context.Context, w *simulation.World) error {
		broken := invariant(w)
		w.AfterFunc(time.Second, func() { *broken = true })
		w.AfterFunc(time.Second, func() { *broken = false })
		return suspend.Sleep(ctx, time.Minute)
	})
	require.PanicsWithValue(t, "simulation: Always with a nil function", func() { new(simulation.World).Always(nil) })
}

// A callback that sets its timer again for the same time lets the runnable tasks run.
func TestTimersOfOneMomentStarveNoTask(t *testing.T) {
	done := false
	r := run(t, func(ctx context.Context, w *simulation.World) error {
		_ = w.Go(func() { _ = suspend.Sleep(ctx, time.Millisecond); done = true })
		var poll func()
		poll = func() {
			if !done {
				w.AfterFunc(0, poll)
			}
		}
		w.AfterFunc(time.Millisecond, poll)
		return suspend.Sleep(ctx, time.Minute)
	})
	require.Less(t, r.Steps, 20)
}

// A run that fails only the second time is not a success, and neither is one that panics.
func TestCheckSeesTheEndOfTheSecondRun(t *testing.T) {
	for _, end := range []func() error{
		func() error { return errBroken },
		func() error { panic(errBroken) },
	} {
		for _, fails := range []int{1, 2} {
			runs := 0
			err := simulation.Check(func(context.Context, *simulation.World) error {
				if runs++; runs == fails {
					return end()
				}
				return nil
			}, simulation.Options{Seed: 1})
			var n *simulation.Nondeterminism
			require.ErrorAs(t, err, &n)
			both := []string{n.First, n.Second}
			require.Contains(t, both[fails-1], errBroken.Error())
			require.Equal(t, "the run ends: <nil>", both[2-fails])
		}
	}
	// Verdicts are compared without stacks: if both runs panic in the same way, this is an error of the program.
	err := simulation.Check(func(context.Context, *simulation.World) error { panic(errBroken) }, simulation.Options{Seed: 1})
	var p *suspend.PanicError
	require.ErrorAs(t, err, &p)
}

// Two runs that create their nodes in different orders have different traces, and so different hashes.
func TestTheNamesOfNodesAreInTheHash(t *testing.T) {
	runs := 0
	main := func(ctx context.Context, w *simulation.World) error {
		names := []string{"a", "b"}
		if runs++; runs%2 == 0 {
			names = []string{"b", "a"}
		}
		for _, name := range names {
			_ = w.Node(name).Go(func() { w.Log("hello") })
		}
		return suspend.Sleep(ctx, time.Minute)
	}
	var n *simulation.Nondeterminism
	require.ErrorAs(t, simulation.Check(main, simulation.Options{Seed: 1}), &n)
	require.Contains(t, n.First, "main makes node a")
	require.Contains(t, n.Second, "main makes node b")
	require.NotEqual(t, simulation.Run(main, simulation.Options{Seed: 1}).Hash, simulation.Run(main, simulation.Options{Seed: 1}).Hash)
}

// A panic of main is reported even if a hook has recovered it.
func TestMainPanicsWithAHook(t *testing.T) {
	r := simulation.Run(func(context.Context, *simulation.World) error { panic(errBroken) }, simulation.Options{OnPanic: func(any, []byte) {}})
	require.ErrorIs(t, r.Err, errBroken)
	require.NotErrorIs(t, r.Err, simulation.ErrExited)
}

// A run that reaches MaxTime has taken exactly this time, and not the time until its next timer.
func TestMaxTimeIsTheTimeOfTheRun(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, _ *simulation.World) error {
		return suspend.Sleep(ctx, 24*time.Hour)
	}, simulation.Options{Seed: 1, MaxTime: time.Minute})
	require.ErrorIs(t, r.Err, simulation.ErrTime)
	require.Equal(t, time.Minute, r.Elapsed)
}

// A task may call its World where suspending is forbidden, whatever the ids of its goroutines are.
func TestAWorldIsCalledInATransaction(t *testing.T) {
	for name, forbidden := range map[string]func(f func()) error{
		"transaction": func(f func()) error { return stm.Atomically(bg, func(*stm.Tx) error { f(); return nil }) },
		"Bind":        func(f func()) error { suspend.Bind(nil, f); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var want uint64
			for numbers := range 130 {
				r := run(t, func(ctx context.Context, w *simulation.World) error {
					begin, done := promise.New[int](), promise.New[int]()
					_ = w.Go(func() {
						_, _ = begin.Await(ctx)
						require.NoError(t, forbidden(func() { w.Log("inside at %v, by the node %v", w.Now(), w.Node("n").Now()) }))
						_ = done.Fill(1)
					})
					_ = suspend.Sleep(ctx, time.Second)
					ended := make(chan struct{})
					for range numbers { // goroutines that never use the World
						go func() { ended <- struct{}{} }()
						<-ended
					}
					_ = w.Go(func() { w.Log("another"); _ = begin.Fill(1) })
					_, err := done.Await(ctx)
					return err
				})
				if want == 0 {
					want = r.Hash
				}
				require.Equal(t, want, r.Hash)
			}
		})
	}
}

// A goroutine that draws a random number is detected, even if a task has passed the Rand to it: in another run it would draw at
// another time.
func TestAGoroutineThatDraws(t *testing.T) {
	failing(t, simulation.Options{Seed: 1}, simulation.ErrForeign, func(_ context.Context, w *simulation.World) error {
		r, drawn := w.Rand(), make(chan uint64)
		go func() { drawn <- r.Uint64() }()
		<-drawn
		suspend.Yield()
		return nil
	})
}

// The error that ends a run says where, and what to write instead, even if main returns an error of its own.
func TestTheTextOfAnEnd(t *testing.T) {
	for name, test := range map[string]struct {
		main func(ctx context.Context, w *simulation.World) error
		want []string
	}{
		"a library's error that wraps ErrForeign": {func(_ context.Context, w *simulation.World) error {
			refused := make(chan error)
			go func() { refused <- w.Go(func() {}) }()
			return fmt.Errorf("library: %w", <-refused)
		}, []string{"TestTheTextOfAnEnd.func", "go statement"}},
		"a timeout of package context": {func(ctx context.Context, w *simulation.World) error {
			short, end := context.WithTimeout(ctx, 20*time.Millisecond)
			defer end()
			return suspend.Sleep(short, time.Hour)
		}, []string{"seed 1, step 1, 0s: a task waits with a timeout of package context", "cancel.WithTimeout"}},
		"a timeout below one of package context": {func(ctx context.Context, w *simulation.World) error {
			short, end := context.WithTimeout(ctx, 20*time.Millisecond)
			defer end()
			return scope.Run(short, func(ctx context.Context, _ *scope.Scope) error {
				below, end := cancel.New(ctx)
				defer end(nil)
				_, err := w.Node("a").Dial(below, "tcp", "b:80")
				return err
			})
		}, []string{"a task waits with a timeout of package context"}},
		"a goroutine that is too late": {func(ctx context.Context, w *simulation.World) error {
			never := make(chan int)
			defer close(never)
			go func() { <-never }()
			waitForever()
			return nil
		}, []string{"deadlock", "a goroutine that a task has started, outside the World", "TestTheTextOfAnEnd.func"}},
	} {
		err := simulation.Run(test.main, simulation.Options{Seed: 1}).Err
		for _, want := range test.want {
			require.ErrorContains(t, err, want, name)
		}
	}
	// The timeouts of package cancel, and of contexts derived from them, use the World's clock.
	run(t, func(ctx context.Context, w *simulation.World) error {
		short, end := cancel.WithTimeout(ctx, time.Second)
		defer end()
		below, endBelow := context.WithCancel(short)
		defer endBelow()
		require.ErrorIs(t, suspend.Sleep(below, time.Hour), context.DeadlineExceeded)
		return nil
	})
}

// TestHangs fails: a task blocks natively, without an end. TestANativeWaitEndsTheRun runs it in another process.
func TestHangs(t *testing.T) {
	if os.Getenv("BRAID_HANGS") == "" {
		return // see TestANativeWaitEndsTheRun
	}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		_ = w.Node("client").Go(func() { <-make(chan int) })
		return suspend.Sleep(ctx, time.Second)
	}, simulation.TestOptions{Seeds: 1, Options: simulation.Options{Seed: 7, StallAfter: 10 * time.Millisecond}})
}

// A native wait that never ends is reported with the seed and the task, and then fails the test.
func TestANativeWaitEndsTheRun(t *testing.T) {
	limited, end := context.WithTimeout(bg, 2*time.Minute)
	defer end()
	c := exec.CommandContext(limited, os.Args[0], "-test.run=^TestHangs$")
	c.Env = append(os.Environ(), "BRAID_HANGS=1")
	out, err := c.CombinedOutput()
	require.NoError(t, limited.Err(), "%s", out)
	require.Error(t, err)
	for _, want := range []string{
		"simulation: seed 7: client#1 has held its scheduler", "no other task of its World runs meanwhile",
		"seed 7: simulation: seed 7: client#1: a task waits natively", "TestHangs.func", "BRAID_SEED=7 go test",
	} {
		require.Contains(t, string(out), want)
	}

	// The run ends as soon as the wait ends.
	over, completed := make(chan struct{}), make(chan bool, 1)
	require.ErrorIs(t, simulation.Check(func(ctx context.Context, w *simulation.World) error {
		slept := false
		defer func() { completed <- slept }()
		_ = w.Go(func() { <-over })
		slept = suspend.Sleep(ctx, time.Second) == nil
		return nil
	}, simulation.Options{Seed: 1, StallAfter: time.Millisecond}), simulation.ErrNative)
	close(over)
	require.False(t, <-completed)
}

// A connection that outlives its World no longer has any effect. A pool in a package variable may have such connections.
func TestAConnectionOfAnEarlierSeed(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		var old interface{ Write([]byte) (int, error) }
		var errs []error
		simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
			if old != nil {
				write := func() { _, err := old.Write([]byte("hello")); errs = append(errs, err) }
				if write(); forbidden {
					suspend.Bind(nil, write)
				}
				return nil
			}
			old, _ = pair(ctx, w)
			return nil
		}, simulation.TestOptions{Seeds: 3})
		require.NotEmpty(t, errs)
		for _, err := range errs {
			require.Error(t, err)
		}
	}
}

// The memory of a World is freed before the next seed, including what its idle tasks have used.
func TestMemoryOfEarlierSeeds(t *testing.T) {
	const seeds = 5
	var freed atomic.Int32
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		big := new([1 << 20]byte)
		runtime.AddCleanup(big, func(int) { freed.Add(1) }, 0)
		w.Always(func() error { big[0]++; return nil })
		for range 2*seeds - int(w.Seed()) { // each seed has one task less, so each leaves one that is not used again
			_ = w.Go(func() { _ = suspend.Sleep(ctx, time.Second) })
		}
		_ = suspend.Sleep(ctx, time.Minute)
		if w.Seed() == seeds {
			for end := time.Now().Add(10 * time.Second); freed.Load() < seeds-2 && time.Now().Before(end); { // the last run may have left its frame twice
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
			require.GreaterOrEqual(t, freed.Load(), int32(seeds-2))
		}
		return nil
	}, simulation.TestOptions{Seeds: seeds})
}

// TestExits fails: a callback ends by t.FailNow. TestACallbackThatExits runs it in another process.
func TestExits(t *testing.T) {
	in, ok := map[string]func(w *simulation.World, f func()){
		"Always":    func(w *simulation.World, f func()) { w.Always(func() error { f(); return nil }) },
		"AfterFunc": func(w *simulation.World, f func()) { w.AfterFunc(time.Second, f) },
		"Execute":   func(w *simulation.World, f func()) { _ = w.Execute(f) },
	}[strings.TrimSuffix(os.Getenv("BRAID_EXITS"), " in a bubble")]
	if !ok {
		return // see TestACallbackThatExits
	}
	bubble := strings.HasSuffix(os.Getenv("BRAID_EXITS"), "bubble")
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		w.Log("the reason is here")
		in(w, t.FailNow)
		return suspend.Sleep(ctx, time.Minute)
	}, simulation.TestOptions{Options: simulation.Options{Bubble: bubble}})
}

// A failing require in an invariant or in a callback fails the test, with its seed.
func TestACallbackThatExits(t *testing.T) {
	for _, in := range []string{"Always", "AfterFunc", "Execute", "Always in a bubble"} {
		c := exec.Command(os.Args[0], "-test.run=^TestExits$")
		c.Env = append(os.Environ(), "BRAID_EXITS="+in)
		out, err := c.CombinedOutput()
		require.Error(t, err, "%s", out)
		require.Contains(t, string(out), "seed 1: main or a callback ended by runtime.Goexit", in)
		require.Contains(t, string(out), "the reason is here", in)
		require.Contains(t, string(out), "BRAID_SEED=1 go test", in)
	}
}

// A Test without seeds fails. Otherwise a CI with a wrong variable would pass.
func TestATestOfNoSeedsFails(t *testing.T) {
	for _, seeds := range []string{"0", "-5", "0s", "-5s"} {
		c := exec.Command(os.Args[0], "-test.run=^TestFails$")
		c.Env = append(os.Environ(), "BRAID_FAILS=return", "BRAID_SEEDS="+seeds)
		out, err := c.CombinedOutput()
		require.Error(t, err, "%s", out)
		require.Contains(t, string(out), "no seeds to run", seeds)
	}
}

// Two critical sections that are not atomic together lose an update, although no task ever waits for a lock. A run without
// Preempt never shows this.
func TestPreempt(t *testing.T) {
	lost := func(o simulation.Options) (n int) {
		for seed := range uint64(50) {
			o.Seed = seed + 1
			err := simulation.Check(func(ctx context.Context, w *simulation.World) error {
				var m mutex.Mutex
				x := 0
				for range 2 {
					_ = w.Go(func() {
						_ = m.LockContext(ctx)
						v := x
						m.Unlock()
						_ = m.LockContext(ctx)
						x = v + 1
						m.Unlock()
					})
				}
				if _ = suspend.Sleep(ctx, 1); x != 2 {
					return errBroken
				}
				return nil
			}, o)
			if err != nil {
				require.Equal(t, errBroken, err)
				n++
			}
		}
		return n
	}
	require.Zero(t, lost(simulation.Options{}))
	require.Positive(t, lost(simulation.Options{Preempt: true}))

	for _, off := range []bool{false, true} {
		preempts := false
		simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
			var m mutex.Mutex
			between := false
			_ = w.Go(func() { preempts = preempts || between })
			_ = w.Go(func() { between = true; _ = m.LockContext(ctx); between = false; m.Unlock() })
			return suspend.Sleep(ctx, 1)
		}, simulation.TestOptions{Seeds: 100, NoPreempt: off})
		require.Equal(t, !off, preempts)
	}
}
