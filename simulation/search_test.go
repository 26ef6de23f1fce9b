package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// TestLevels fails after three events, each with a probability of one in twenty. With "errorf" it marks itself as failed.
// TestGuided runs it in another process.
func TestLevels(t *testing.T) {
	how := os.Getenv("BRAID_LEVELS")
	if how == "" {
		return // see TestGuided
	}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		if how == "errorf" {
			t.Error("told t")
		}
		for level := range 3 {
			w.Sometimes(fmt.Sprint("level ", level), level > 0 || w.Seed()%10 == 3)
			suspend.Yield()
			if w.Rand().IntN(20) > 0 {
				return nil
			}
		}
		return errors.New("all came")
	}, simulation.TestOptions{Seeds: 500, Guided: how == "guided"})
}

// A search continues from rare states. Its result does not depend on the number of jobs, and its name repeats it.
func TestGuided(t *testing.T) {
	test := func(how string, env ...string) string {
		c := exec.Command(os.Args[0], "-test.run=^TestLevels$", "-test.v")
		c.Env = append(append(os.Environ(), "BRAID_LEVELS="+how), env...)
		out, _ := c.CombinedOutput()
		return string(out)
	}
	require.Contains(t, test("plain"), "500 seeds, ")
	found := regexp.MustCompile(`seed (\S+): all came`).FindStringSubmatch(test("guided"))
	require.NotNil(t, found)
	require.Contains(t, found[1], "-", "the run is named with a fork, and does not start from the beginning")
	require.Contains(t, test("guided", "BRAID_JOBS=4"), found[0])
	require.Contains(t, test("guided", "BRAID_SEED="+found[1]), found[0])
	require.Contains(t, test("plain", "BRAID_JOBS=3"), "500 seeds, ")
	require.Contains(t, test("guided", "BRAID_JOBS=0"), "BRAID_JOBS=0 is not a number of jobs")
	require.Contains(t, test("errorf", "BRAID_JOBS=2"), "in this run or one of the 31 runs after it: with BRAID_JOBS=1 the output shows which")
}

// After a fork, all randomness differs: that of the order, of Rand, of RandOf and of Buggify.
func TestForks(t *testing.T) {
	draws := func(of string) (before, after [4]string) {
		for seed := range uint64(5) {
			_, _, err := simulation.Shorten(simulation.Options{Seed: seed + 1}, of, 0, func(ctx context.Context, w *simulation.World) error {
				own, all := w.RandOf(rand.NewPCG(w.Rand().Uint64(), 1)), &before
				for i := range 80 {
					if i == 10 { // the fork comes soon
						all = new([4]string)
					} else if i == 40 {
						all = &after
					}
					all[0] += fmt.Sprint(w.Rand().IntN(1000), " ")
					all[1] += fmt.Sprint(own.IntN(1000), " ")
					all[2] += fmt.Sprint(w.Buggify("a"), w.Buggify("b"), w.Buggify("c"), " ")
					for k := range 2 {
						_ = w.Go(func() { all[3] += fmt.Sprint(i, k, " ") })
					}
					_ = suspend.Sleep(ctx, 1)
				}
				return nil
			})
			require.NoError(t, err)
		}
		return before, after
	}
	before, after := draws("")
	sameBefore, otherAfter := draws("-60:7")
	require.Equal(t, before, sameBefore)
	_, other := draws("-60.7") // except for separate sources
	require.NotEqual(t, after[0], other[0])
	require.NotEqual(t, after[3], other[3])
	require.Equal(t, after[1:3], other[1:3])
	for i := range after {
		require.NotEqual(t, after[i], otherAfter[i])
	}
}
