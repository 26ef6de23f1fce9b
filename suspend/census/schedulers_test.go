package census_test

import (
	"context"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
	"github.com/braidgo/braid/suspendtest"
	"github.com/braidgo/braid/watch"
)

// One task of each scheduler waits for a promise, and another one blocks natively. The census reports both with the lines of
// their Go, and forgets them when they have ended.
func TestEveryScheduler(t *testing.T) {
	try := func(t *testing.T, name string, s suspend.Spawner, natively bool) {
		on(t)
		p, q, waits, native := census.Name(promise.New[int](), "p"), promise.New[int](), make(chan struct{}), make(chan struct{})
		ended := make(chan struct{}, 2)
		require.NoError(t, s.Go(func() {
			close(waits)
			_, _ = p.Await(bg)
			_, _ = q.Await(bg) // the task now waits for another object
			ended <- struct{}{}
		}))
		<-waits
		tasks := func(f func(mine []census.Task) bool) (mine []census.Task) { // without the tasks of schedtest
			eventually(t, func(s census.Snapshot) bool {
				mine = slices.DeleteFunc(s.Tasks, func(t census.Task) bool {
					return !(t.Began != nil && strings.Contains(t.Began.At.Func, "TestEvery") || t.Waits != nil && strings.Contains(t.Waits.At.Func, "TestEvery"))
				})
				return f(mine)
			})
			return mine
		}
		waitsFor := func(object string) census.Task {
			return tasks(func(mine []census.Task) bool {
				return len(mine) == 1 && mine[0].Waits != nil && mine[0].Waits.For[0].Name == object
			})[0]
		}
		task := waitsFor(`promise.Promise "p"`)
		require.Equal(t, name, task.Scheduler)
		require.Contains(t, task.Waits.At.String(), "census_test.TestEveryScheduler.")
		require.Empty(t, task.Waits.For[0].Holders)
		require.False(t, task.Waits.MayEnd)
		if name != "" {
			require.Contains(t, task.Began.At.String(), "census_test.TestEveryScheduler.")
			require.Less(t, task.Began.At.Line, task.Waits.At.Line)
		}
		_ = census.Name(q, "q")
		_ = p.Fill(1)
		require.Equal(t, task.Goroutine, waitsFor(`promise.Promise "q"`).Goroutine)
		if natively {
			require.NoError(t, s.Go(func() {
				<-native
				ended <- struct{}{}
			}))
			if name != "" {
				other := tasks(func(mine []census.Task) bool { return len(mine) == 2 })[1]
				require.Nil(t, other.Waits)
				require.Equal(t, name, other.Scheduler)
				require.Contains(t, other.Began.At.String(), "census_test.TestEveryScheduler.")
			}
		}
		close(native)
		_ = q.Fill(1)
		<-ended
		if natively {
			<-ended
		}
		tasks(func(mine []census.Task) bool { return len(mine) == 0 })
	}
	for _, sched := range schedtest.All {
		t.Run(sched.Name, func(t *testing.T) {
			s, closeAll := sched.Open()
			defer closeAll()
			name := sched.Name
			if name == "goroutines" {
				name = ""
			}
			try(t, name, s, true)
		})
	}
	t.Run("limited", func(t *testing.T) {
		s := limited.New(1, limited.Options{})
		defer s.Close()
		try(t, "limited", s, true)
	})
}

func TestSimulation(t *testing.T) {
	on(t)
	var s census.Snapshot
	report := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		p := promise.New[int]()
		_ = suspend.Here().Go(func() { _, _ = p.Await(ctx) })
		for len(waiting(s, "promise.Promise.Await")) == 0 {
			suspend.Yield()
			s = census.Take()
		}
		p.Fill(1)
		return nil
	}, simulation.Options{})
	require.NoError(t, report.Err)
	require.Len(t, waiting(s, "promise.Promise.Await"), 1)
	require.Equal(t, "simulation", waiting(s, "promise.Promise.Await")[0].Scheduler)
	require.Empty(t, census.Take().Tasks)
}

// The census names the operation that the program has called, even if it is implemented by another operation.
func TestOperations(t *testing.T) {
	on(t)
	ctx, cancel := context.WithCancel(bg)
	c, permits, open := chanx.New[int](0), semaphore.New(2), latch.New(1)
	require.NoError(t, permits.Acquire(ctx, 2))
	defer permits.Release(2)
	var s census.Snapshot
	err := fifo.Run(bg, func(context.Context) error {
		err := scope.Run(ctx, func(ctx context.Context, in *scope.Scope) error {
			in.Go(suspend.Here(), func(ctx context.Context) error { return c.Send(ctx, 1) })
			in.Go(suspend.Here(), func(ctx context.Context) error { return open.Wait(ctx) })
			in.Go(suspend.Here(), func(ctx context.Context) error {
				_, err := suspend.Select(ctx, suspend.CaseOf(permits.AcquireOp(2)), suspend.CaseOf(c.SendOp(2)), suspend.CaseOf(suspend.After(1<<40)))
				return err
			})
			in.Go(suspend.Here(), func(ctx context.Context) error { return suspend.Sleep(ctx, 1<<40) })
			in.Go(suspend.Here(), func(ctx context.Context) error { return c.AwaitClose(ctx) })
			in.Go(suspend.Here(), func(ctx context.Context) error {
				_, err := suspend.Do(ctx, watch.New(1).UntilOp(func(n int) bool { return n > 1 }))
				return err
			})
			suspend.Then(ctx, census.Name(promise.New[int](), "then").AwaitOp(), suspend.Here().(suspend.Executor), func(int, error) {})
			_ = suspend.Here().Go(func() {
				schedtest.Settle()
				s = census.Take()
				cancel()
			})
			return nil
		})
		return err
	})
	require.Error(t, err)
	for operation, object := range map[string]string{
		"chanx.Chan.Send":  "chanx.Chan 0x",
		"latch.Latch.Wait": "latch.Latch 0x",
		"scope.Run":        "scope.Scope 0x",
		"suspend.Select":   "semaphore.Semaphore 0x",
		"suspend.Sleep":    "",
		"suspend.Then":     `promise.await "then"`,

		"chanx.Chan.AwaitClose": "chanx.Chan 0x",
		"suspend.Do":            "watch.until 0x",
	} {
		all := waiting(s, operation)
		require.Len(t, all, 1, "%s\n%s", operation, s)
		w := all[0].Waits
		require.Contains(t, w.At.String(), "census_test.TestOperations.", operation)
		if object != "" {
			require.Contains(t, w.For[0].Name, object)
		}
	}
	w := waiting(s, "suspend.Select")[0].Waits
	require.EqualValues(t, 2, w.For[0].Wants)
	require.EqualValues(t, 2, w.For[0].Holders[0].N)
	require.Contains(t, w.For[1].Name, "chanx.send")
	require.Equal(t, "a timer", w.For[2].Name)
	require.Zero(t, waiting(s, "suspend.Then")[0].Goroutine)
	require.Len(t, census.Take().Tasks, 1, "only the holder of the permits is left: %s", census.Take())
}

// The conformance kit also passes while the census is on.
func TestConformance(t *testing.T) {
	on(t)
	suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
		s := fifo.New(fifo.Options{})
		return s, suspendtest.Drive(s.Run)
	}, suspendtest.Options{FIFO: true})
}

// Idle coroutines have a label in the goroutine profile. The next task on such a coroutine does not have this label.
func TestIdleCoroutinesHaveALabel(t *testing.T) {
	on(t)
	profile := func() string {
		var b strings.Builder
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		return b.String()
	}
	idle := regexp.MustCompile(`(?m)^(\d+) @ .*\n# labels: \{"braid":"idle coroutine"\}`)
	var profiles []string
	_ = fifo.Run(bg, func(context.Context) error {
		for range 2 { // the second time on the same coroutines
			p := promise.New[int]()
			for range 20 {
				_ = suspend.Here().Go(func() { _, _ = p.Await(bg) })
			}
			schedtest.Settle()
			profiles = append(profiles, profile())
			_ = p.Fill(1)
			schedtest.Settle()
			profiles = append(profiles, profile())
		}
		return nil
	})
	for i, p := range profiles { // other tests may have left idle coroutines
		for entry := range strings.SplitSeq(p, "\n\n") {
			if strings.Contains(entry, "promise.(*Promise[...]).Await") {
				require.NotContains(t, entry, "# labels:")
			}
		}
		if i%2 == 1 {
			require.Regexp(t, idle, p)
			n, err := strconv.Atoi(idle.FindStringSubmatch(p)[1])
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, 20, p)
		}
	}
}
