package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// TestMarks fails. TestSometimes runs it in another process.
func TestMarks(t *testing.T) {
	seeds := map[string]int{"few": 99, "many": 100}[os.Getenv("BRAID_MARKS")]
	if seeds == 0 {
		return // see TestSometimes
	}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		w.Sometimes("an even seed", w.Seed()%2 == 0)
		w.Sometimes("an even seed", false)
		w.Sometimes("never", false)
		return nil
	}, simulation.TestOptions{Seeds: seeds})
}

// A Test counts the seeds that have reached a mark. If none of a hundred seeds has reached it, the Test fails.
func TestSometimes(t *testing.T) {
	for how, want := range map[string][]string{
		"few":  {"an even seed: 49 seeds", "never: 0 seeds", "PASS"},
		"many": {"an even seed: 50 seeds", `none of 100 seeds has reached "never"`, "FAIL"},
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestMarks$", "-test.v")
		c.Env = append(os.Environ(), "BRAID_MARKS="+how)
		out, err := c.CombinedOutput()
		for _, s := range want {
			require.Contains(t, string(out), s)
		}
		require.Equal(t, how == "many", err != nil)
	}
	(*simulation.World)(nil).Sometimes("nowhere", true)

	// The trace records the first time that each place in the code reaches a mark.
	var trace bytes.Buffer
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		w.Always(func() error { w.Sometimes("after a step", true); return nil })
		w.AfterFunc(1, func() { w.Sometimes("in a callback", true) })
		w.Sometimes("not yet", false)
		return suspend.Sleep(ctx, 2)
	}, simulation.Options{Seed: 1, Trace: &trace})
	require.NoError(t, r.Err)
	require.Equal(t, map[string]bool{"after a step": true, "in a callback": true, "not yet": false}, r.Sometimes)
	require.Equal(t, 1, bytes.Count(trace.Bytes(), []byte("sometimes: after a step")))
	require.NotContains(t, trace.String(), "not yet")
}

// In some runs a name is on, and then it is rarely true. This depends on the seed, but not on other names.
func TestBuggify(t *testing.T) {
	require.False(t, (*simulation.World)(nil).Buggify("nowhere"))
	on, both, calls := 0, 0, 0
	for seed := range uint64(400) {
		draws := func(names ...string) (text string, first, second int) {
			simulation.Run(func(_ context.Context, w *simulation.World) error {
				for range 40 {
					for i, name := range names {
						switch rare := w.Buggify(name); {
						case i == 0 && rare:
							first++
							text += "x"
						case i == 0:
							text += "."
						case rare:
							second++
						}
					}
				}
				return nil
			}, simulation.Options{Seed: seed + 1})
			return text, first, second
		}
		alone, _, _ := draws("a")
		beside, first, second := draws("a", "b")
		require.Equal(t, alone, beside)
		if calls += first; first > 0 {
			on++
			if second > 0 {
				both++
			}
		}
	}
	require.InDelta(t, 100, on, 40)
	require.InDelta(t, 25, both, 20)
	require.InDelta(t, 10, float64(calls)/float64(on), 3)
}

// Guests can use Buggify and Sometimes, and a second run is the same.
func TestGuestMarks(t *testing.T) {
	var first [2]string
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		done := make(chan string)
		for i := range 2 {
			w.Node(fmt.Sprint(i)).Start(func(context.Context, *simulation.Host) {
				text := ""
				for k := range 40 {
					text += fmt.Sprint(w.Buggify(fmt.Sprint("name ", k%4)))
					w.Sometimes("a true one", text != "")
				}
				done <- text
			})
		}
		text := <-done + <-done
		if was := &first[w.Seed()-1]; *was == "" {
			*was = text
		} else if *was != text {
			return errors.New("another")
		}
		return nil
	}, simulation.TestOptions{Seeds: 2, Twice: true, InProcess: true, Options: simulation.Options{Guests: true}})
}
