package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// shorten shortens a run that fails, and repeats the shorter run by its name.
func shorten(t *testing.T, seed uint64, tries int, main func(ctx context.Context, w *simulation.World) error) (name, story string, err error) {
	o := simulation.Options{Seed: seed}
	name, story, err = simulation.Shorten(o, "", tries, main)
	require.Error(t, err)
	again, storyAgain, errAgain := simulation.Shorten(o, name, 0, main)
	require.Equal(t, []any{name, story, err}, []any{again, storyAgain, errAgain})
	return name, story, err
}

// Numbers, times and the names of nodes may differ in the shorter failure, but the text may not.
func TestShortenKeepsTheFailure(t *testing.T) {
	_, story, err := shorten(t, 4, 300, func(ctx context.Context, w *simulation.World) error {
		lines := w.Rand().IntN(20)
		for i := range lines {
			w.Log("line %d", i)
		}
		took := time.Duration(lines) * 700 * time.Millisecond
		switch {
		case lines < 2:
			return errors.New("another failure")
		case lines%2 == 1:
			return nil
		}
		name := map[bool]string{true: "server1", false: "client"}[lines > 8]
		w.Node(name)
		return fmt.Errorf("%s took %v for %d", name, took, lines)
	})
	require.EqualError(t, err, "client took 1.4s for 2")
	require.Equal(t, 3, strings.Count(story, "\n"), story)
}

// A shorter run that ends at another call of t.Fatal is a different failure.
func TestShortenKeepsThePlace(t *testing.T) {
	_, story, err := shorten(t, 4, 300, func(ctx context.Context, w *simulation.World) error {
		lines := w.Rand().IntN(20)
		for i := range lines {
			w.Log("line %d", i)
		}
		if lines < 3 {
			runtime.Goexit()
		}
		runtime.Goexit()
		return nil
	})
	require.ErrorIs(t, err, simulation.ErrExited)
	require.Regexp(t, `in simulation_test.TestShortenKeepsThePlace.func1, shorten_test.go:\d+$`, err.Error())
	require.Equal(t, 4, strings.Count(story, "\n"), story)
}

// A run ends at the event that makes its story too long.
func TestShortenEndsALongTry(t *testing.T) {
	runs, most := 0, 0
	_, _, _ = shorten(t, 1, 50, func(ctx context.Context, w *simulation.World) error {
		runs++
		long := runs > 1 && w.Rand().IntN(2) == 0
		for n := 0; n < 10 || long && n < 1000; n++ {
			w.Log("a line")
			suspend.Yield()
			most = max(most, n)
		}
		if long {
			return nil
		}
		return errors.New("it fails")
	})
	require.LessOrEqual(t, most, 10)
}

// Faults that do not matter are left out, and the name of the run says which.
func TestShortenLeavesFaultsOut(t *testing.T) {
	for seed := range uint64(10) {
		name, story, _ := shorten(t, seed+1, 100, func(ctx context.Context, w *simulation.World) error {
			first, err := false, errors.New("it fails")
			for i := range 10 {
				if w.Fault("spill") {
					w.Log("spill %d", i)
					first = first || i == 0
				} else if i == 6 {
					err = nil
				}
				if i == 6 && !first { // the run does not reach the others
					return err
				}
			}
			return err
		})
		require.Regexp(t, `^-spill1\.\.6(-\d+\.\d+)*$`, name)
		require.Equal(t, 1, strings.Count(story, "spill"), story)
	}
}

// All faults can be left out: those of links and disks, and those of a nemesis.
func TestShortenLeavesAllFaultsOut(t *testing.T) {
	_, story, _ := shorten(t, 1, 200, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{Reset: 1, Refuse: 1, Write: 1, Sync: 1})
		server, client := w.Node("server"), w.Node("client")
		nemesis.Start(w, nemesis.Options{Every: 5 * time.Millisecond, Nodes: []string{"other"}, Kinds: nemesis.Pause | nemesis.Skew | nemesis.SlowDisk})
		ln, err := server.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		_ = server.Go(func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, err = c.Read(make([]byte, 1))
				lengthen(w, "read", err)
			}
		})
		_ = client.Go(func() {
			f, err := client.FS().Create("x")
			lengthen(w, "create", err)
			_, err = f.WriteAt([]byte("x"), 0)
			lengthen(w, "write", err)
			lengthen(w, "sync", f.Sync())
			c, err := client.Dial(ctx, "tcp", "server:80")
			if lengthen(w, "dial", err); err == nil {
				_, _ = c.Write([]byte("x"))
			}
		})
		_ = suspend.Sleep(ctx, time.Second)
		return errors.New("it fails")
	})
	require.Equal(t, 1, strings.Count(story, "nemesis:"), story) // the nemesis prints its options once, and has no fault
	for _, fault := range []string{"read:", "write:", "sync:", "dial:"} {
		require.NotContains(t, story, fault)
	}
}

// lengthen makes the story longer with a fault than without it, by events that can occur only without the fault.
func lengthen(w *simulation.World, what string, err error) {
	if err != nil {
		for range map[bool]int{false: 20, true: 5}[what == "read"] {
			w.Log("%s: %v", what, err)
		}
	}
}

func TestFault(t *testing.T) {
	require.True(t, (*simulation.World)(nil).Fault("x"))
	for _, kind := range []string{"", "x1", "a b"} {
		require.PanicsWithValue(t, "simulation: the kind of a fault must consist of letters", func() { (*simulation.World)(nil).Fault(kind) })
	}
}
