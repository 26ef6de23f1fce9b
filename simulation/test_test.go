package simulation_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

var flips int // how often two runs of a seed differed

// TestFails fails with a seed in which the second task comes first. TestTest runs it in another process.
func TestFails(t *testing.T) {
	how := os.Getenv("BRAID_FAILS")
	if how == "" {
		return // see TestTest
	}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		var order []int
		for i := range 2 {
			_ = w.Go(func() { suspend.Yield(); w.Log("task %d", i); order = append(order, i) })
		}
		_ = suspend.Sleep(ctx, 1)
		if order[0] == 0 {
			return nil
		}
		switch how {
		case "error":
			t.Error("told t")
			return nil
		case "fatal":
			require.Fail(t, "told t")
		case "leak":
			go func() { select {} }()
		case "native":
			<-make(chan int)
		case "panic":
			panic("boom")
		case "short":
			if flips++; w.Fault("x") {
				w.Log("a fault")
				w.Log("and more")
			} else {
				w.Log("flips %d", flips)
			}
		}
		return errors.New("in the wrong order")
	}, simulation.TestOptions{Options: simulation.Options{Bubble: how == "bubble" || how == "leak" || how == "native"}})
}

// Test reports the seed, the end of the trace and a command that repeats the failure.
func TestTest(t *testing.T) {
	test := func(how string, env ...string) string {
		c := exec.Command(os.Args[0], "-test.run=^TestFails$", "-test.v")
		c.Env = append(append(os.Environ(), "BRAID_FAILS="+how), env...)
		out, err := c.CombinedOutput()
		require.Error(t, err, "%s", out)
		return string(out)
	}
	for how, want := range map[string]string{
		"return": "in the wrong order", "bubble": "in the wrong order", "error": "told t", "fatal": "told t", "panic": "boom",
		"leak": "a goroutine of the bubble:", "native": "all goroutines in bubble are blocked",
	} {
		out := test(how)
		require.Contains(t, out, want, how)
		require.Contains(t, out, "goes on, one of 2 that could run", how)
		require.Regexp(t, `#\d: task 1`, out, how)
		require.Regexp(t, `BRAID_SEED=\d+ go test -v -run '\^TestFails\$' github.com/braidgo/braid/simulation\n`, out)
		require.Regexp(t, `seed \d: `, out)
		if how == "leak" {
			require.Contains(t, out, "in the wrong order")
		}
		require.NotContains(t, out, "not deterministic", how)
	}
	seed := regexp.MustCompile(`BRAID_SEED=\d+`).FindString(test("return"))
	require.Contains(t, test("return", seed), seed)
	require.Contains(t, test("return", seed), "main begins, one of 1", "the whole trace")
	for _, seed := range []string{"x", "0", "1-", "1-2", "1-x", "1-x1,", "1-x1..", "1-1.x", "1-1.2.3", "1-x1..9999999", "1 -x1"} {
		require.Contains(t, test("return", "BRAID_SEED="+seed), "not the number of a seed", seed)
	}
	require.Contains(t, test("return", seed, "BRAID_STOP=3"), "simulation: before step 3:")
	require.Contains(t, test("return", seed, "BRAID_STOP=99999"), "BRAID_STOP=99999: the run has no such step. It ended at step ")
	passes := exec.Command(os.Args[0], "-test.run=^TestLevels$", "-test.v")
	passes.Env = append(os.Environ(), "BRAID_LEVELS=plain", "BRAID_SEED=1", "BRAID_STOP=99999")
	passed, err := passes.CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(passed), "BRAID_STOP=99999: the run has no such step. It ended at step ")
	require.Contains(t, test("error", "BRAID_SHORTEN=20"), "It is not shortened: main has returned no error")
	require.Regexp(t, `(?s)seed \d+: in the wrong order\n.*It is not shortened: the shorter seed \S+ is not deterministic`, test("short", "BRAID_SHORTEN=20"))
	require.Contains(t, test("return", "BRAID_STOP=3"), "there is no BRAID_SEED")
	require.Contains(t, test("return", seed, "BRAID_STOP=x"), "not the number of a step")
	require.Contains(t, test("return", "BRAID_SHORTEN=0"), "not a number of tries")
	for _, how := range []string{"return", "bubble", "panic", "leak", "native", "fatal"} {
		short := regexp.MustCompile(`(?s)Its messages, faults.*(BRAID_SEED=\S+) `)
		out := short.FindStringSubmatch(test(how, "BRAID_SHORTEN=20"))
		require.NotNil(t, out, how)
		require.Equal(t, out, short.FindStringSubmatch(test(how, out[1])), how)
	}
	require.Contains(t, test("return", "BRAID_SEEDS=x"), "neither a number nor a duration")
	require.Contains(t, test("return", "BRAID_SEEDS=1m"), "in the wrong order")
}

// Each seed runs twice, or only every tenth.
func TestTwice(t *testing.T) {
	for _, twice := range []bool{false, true} {
		runs := 0
		count := func(context.Context, *simulation.World) error { runs++; return nil }
		simulation.Test(t, count, simulation.TestOptions{Seeds: 10, Twice: twice})
		require.Equal(t, map[bool]int{false: 11, true: 20}[twice], runs)
	}
}

// TestFailingSubtest has a subtest that fails. TestTheCommandOfASubtest runs it in another process.
func TestFailingSubtest(t *testing.T) {
	if os.Getenv("BRAID_FAILING_SUBTEST") != "" {
		t.Run("3+1 nodes (it's 4)/x", func(t *testing.T) {
			simulation.Test(t, func(context.Context, *simulation.World) error { return errors.New("it fails") }, simulation.TestOptions{})
		})
	}
}

func TestTheCommandOfASubtest(t *testing.T) {
	child := func(run string) string {
		c := exec.Command(os.Args[0], "-test.run", run)
		c.Env = append(os.Environ(), "BRAID_FAILING_SUBTEST=1")
		out, _ := c.CombinedOutput()
		return string(out)
	}
	out := child("^TestFailingSubtest$")
	command := regexp.MustCompile(`-run '([^']*)' `).FindStringSubmatch(out)
	require.NotNil(t, command, out)
	require.Contains(t, child(command[1]), "it fails", "-run '%s'", command[1])
}
