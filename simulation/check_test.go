package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// culprits are programs that behave differently each time, with the words by which the report names the step.
var culprits = map[string]struct {
	names []string
	main  func(ctx context.Context, w *simulation.World) error
}{
	"a range over a map decides an order": {[]string{"culprit#1 wakes waiter", "Look at what culprit#1 did"}, func(ctx context.Context, w *simulation.World) error {
		waiting := map[int]*mvar.MVar[int]{}
		for i := range 10 {
			waiting[i] = new(mvar.MVar[int])
			_ = w.Node(fmt.Sprintf("waiter%d", i)).Go(func() { _, _ = waiting[i].Take(ctx) })
		}
		_ = suspend.Sleep(ctx, 1)
		_ = w.Node("culprit").Go(func() {
			for _, m := range waiting {
				m.TryPut(1)
			}
		})
		return suspend.Sleep(ctx, 1)
	}},
	"a range over a map decides the order of new tasks": {[]string{"culprit#1 starts a task of waiter", "Look at what culprit#1 did"}, func(ctx context.Context, w *simulation.World) error {
		waiters := map[int]*simulation.Node{}
		for i := range 10 {
			waiters[i] = w.Node(fmt.Sprintf("waiter%d", i))
		}
		_ = w.Node("culprit").Go(func() {
			for _, n := range waiters {
				_ = n.Go(func() {})
			}
		})
		return suspend.Sleep(ctx, 1)
	}},
	"math/rand": {[]string{"culprit#1 sets a timer for 1s", "culprit#1 sets a timer for 2s", "Look at what culprit#1 did"}, func(ctx context.Context, w *simulation.World) error {
		_ = w.Node("other").Go(func() {
			for range 100 {
				_ = suspend.Sleep(ctx, 50*time.Millisecond)
			}
		})
		_ = w.Node("culprit").Go(func() {
			for range 100 {
				_ = suspend.Sleep(ctx, time.Duration(1+rand.IntN(2))*time.Second)
			}
		})
		return suspend.Sleep(ctx, 10*time.Second)
	}},
	"bytes": {[]string{"culprit#1 sends ", "to server: \""}, func(ctx context.Context, w *simulation.World) error {
		_, err := w.Node("server").Listen("tcp", ":1")
		require.NoError(nil, err)
		_ = w.Node("culprit").Go(func() {
			c, _ := w.Node("culprit").Dial(ctx, "tcp", "server:1")
			_, _ = fmt.Fprintf(c, "%08d", rand.IntN(1e8))
		})
		return suspend.Sleep(ctx, time.Second)
	}},
	"the end": {[]string{"the run ends: <nil>"}, func(ctx context.Context, w *simulation.World) error {
		if ends.Add(1)%2 == 0 { // in the second run of each pair
			return nil
		}
		return suspend.Sleep(ctx, 1)
	}},
}

var ends atomic.Int32

// A map of ten keys has the same order in two runs with a probability below 1/8, and the other programs with a lower one. So the
// probability that fewer than 4 of 20 pairs differ is below 1e-9.
func TestCheckNamesTheStep(t *testing.T) {
	for name, c := range culprits {
		t.Run(name, func(t *testing.T) {
			found := 0
			for seed := range uint64(20) {
				var n *simulation.Nondeterminism
				if !errors.As(simulation.Check(c.main, simulation.Options{Seed: seed + 1}), &n) {
					continue
				}
				if found++; found == 1 {
					t.Log(n)
				}
				require.Equal(t, seed+1, n.Seed)
				text := n.Error()
				for _, want := range c.names {
					require.Contains(t, text, want)
				}
				require.NotEqual(t, n.First, n.Second)
			}
			require.GreaterOrEqual(t, found, 4, "of 20 seeds")
		})
	}
}

// Check finds a goroutine that resumes a task, whenever its call comes.
func TestCheckFindsAGoroutine(t *testing.T) {
	for seed := range uint64(20) {
		err := simulation.Check(func(ctx context.Context, w *simulation.World) error {
			var m mvar.MVar[int]
			var calls sync.WaitGroup
			defer calls.Wait()
			calls.Go(func() { m.TryPut(1) })
			for range 1000 {
				suspend.Yield()
				if m.TryPut(2) {
					break
				}
			}
			calls.Wait()
			_, err := m.Take(ctx)
			return err
		}, simulation.Options{Seed: seed + 1})
		if err != nil {
			require.True(t, errors.Is(err, simulation.ErrForeign) || errors.As(err, new(*simulation.Nondeterminism)), "%v", err)
		}
	}
	err := simulation.Check(func(ctx context.Context, w *simulation.World) error {
		var m mvar.MVar[int]
		_ = w.Go(func() { _, _ = m.Take(ctx) })
		_ = suspend.Sleep(ctx, 1)
		var calls sync.WaitGroup
		calls.Go(func() { m.TryPut(1) })
		calls.Wait()
		return suspend.Sleep(ctx, 1)
	}, simulation.Options{})
	require.ErrorIs(t, err, simulation.ErrForeign)
}

// Two functions of time.AfterFunc that are due at the same time run in either order.
func TestCheckNamesAStockTimerTie(t *testing.T) {
	found := 0
	for seed := uint64(1); seed <= 40 && found < 3; seed++ {
		err := simulation.CheckInBubbles(t, simulation.Options{Seed: seed}, func(ctx context.Context, w *simulation.World) error {
			var mu sync.Mutex
			order := ""
			for i := range 8 {
				time.AfterFunc(time.Second, func() { mu.Lock(); defer mu.Unlock(); order += fmt.Sprint(i) })
			}
			_ = suspend.Sleep(ctx, 2*time.Second)
			mu.Lock()
			defer mu.Unlock()
			w.Log("the order is %s", order)
			return nil
		})
		if n := (*simulation.Nondeterminism)(nil); errors.As(err, &n) {
			found++
			require.Contains(t, n.First, "main: the order is")
			require.Contains(t, n.Second, "main: the order is")
			require.Contains(t, n.Error(), "stock timers")
		}
	}
	require.Equal(t, 3, found)
}

func TestCheckPasses(t *testing.T) {
	for seed := range uint64(30) {
		if err := simulation.Check(cluster(true), simulation.Options{Seed: seed + 1}); err != nil {
			t.Fatal(err)
		}
	}
	boom := errors.New("boom")
	require.Equal(t, boom, simulation.Check(func(context.Context, *simulation.World) error { return boom }, simulation.Options{}))
	require.ErrorContains(t, simulation.Check(nil, simulation.Options{Bubble: true}), "use simulation.Test")
}

// If two runs differ and one of them had a long window, this may be due to the machine, and the seed runs again. Without a
// long window, or after five attempts, the program is at fault.
func TestALongWindow(t *testing.T) {
	for _, c := range []struct{ long, same, runs int }{{0, 3, 2}, {1, 3, 6}, {1, 6, 10}} { // from the same'th pair on, both runs are equal
		runs := 0
		err := simulation.CheckRuns(simulation.Options{Seed: 1}, func(simulation.Options) simulation.Report {
			runs++
			r := simulation.Report{Long: c.long}
			if runs%2 == 1 && runs < 2*c.same-1 {
				r.Err = errors.New("the first of two")
			}
			return r
		})
		var differs *simulation.Nondeterminism
		require.Equal(t, c.long == 0 || c.same > 5, errors.As(err, &differs), "%v", err)
		require.Equal(t, c.runs, runs)
	}
}
