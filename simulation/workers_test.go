package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// ran appends the process and the seed to a file of the parent process.
func ran(w *simulation.World) {
	f, err := os.OpenFile(os.Getenv("BRAID_RAN"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid(), w.Seed())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// TestInWorkers runs in other processes, see TestProcesses.
func TestInWorkers(t *testing.T) {
	how := os.Getenv("BRAID_IN_WORKERS")
	if how == "" {
		return
	}
	o := simulation.TestOptions{Seeds: 50, Guided: how == "guided", InProcess: true}
	o.Guests, o.Bubble = how == "guests", how == "bubble"
	simulation.SetOutputOpen(100 * time.Millisecond)
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error { // the first call
		w.Sometimes("even", w.Seed()%2 == 0)
		if how == "guests" {
			first := sync.OnceFunc(func() {
				ran(w)
				if b, _ := os.ReadFile(os.Getenv("BRAID_RAN")); strings.Count(string(b), " 20\n") <= 2 && w.Seed() == 20 {
					w.Log("process %d", os.Getpid()) // differs in the first two processes only, each of which has a long window
				}
			})
			w.Always(func() error { first(); return nil }) // on a busy machine, a guest that opens a file may look stuck
			done := make(chan int)
			w.Node("a").Start(func(context.Context, *simulation.Host) { done <- 1 })
			<-done
			for begun := processor.Used(); w.Seed() == 20 && processor.Used()-begun < 20*time.Millisecond; {
			}
			return nil
		}
		ran(w)
		_ = suspend.Sleep(ctx, time.Second)
		switch w.Seed() {
		case 20:
			if how == "process id" {
				w.Log("process %d", os.Getpid())
			}
		case 37:
			switch how {
			case "output": // inherits the output, and keeps it open
				c := exec.Command("sleep", "30")
				c.Stdout, c.Stderr = os.Stdout, os.Stderr
				require.NoError(t, c.Start())
				t.Cleanup(func() { _ = c.Process.Release() })
			case "error":
				return errors.New("it is 37")
			case "no text":
				return errors.New("")
			case "mark":
				t.Error("it is 37")
			case "fatal":
				t.Fatal("it is 37")
			case "exit":
				os.Exit(3)
			case "goroutine":
				go panic("on a goroutine")
				select {}
			}
		}
		return nil
	}, o)
	if how == "second" {
		t.Run("a subtest", func(t *testing.T) {
			simulation.Test(t, func(_ context.Context, w *simulation.World) error { ran(w); return nil }, simulation.TestOptions{Seeds: 3})
			simulation.Test(t, func(_ context.Context, w *simulation.World) error {
				if ran(w); w.Seed() == 4 {
					return errors.New("4 of the second call")
				}
				return nil
			}, simulation.TestOptions{Seeds: 5})
		})
	}
	if os.Getenv("BRAID_WORKER") != "" && how != "second" { // the end of a subtest does not end its test
		_ = os.WriteFile(os.Getenv("BRAID_RAN")+".goes-on", nil, 0o600)
	}
}

// With BRAID_PROCESSES, the runs are made in other processes, with the same results.
func TestProcesses(t *testing.T) {
	test := func(how string, env ...string) (out string, seeds map[string]int, processes map[string]int) {
		file := filepath.Join(t.TempDir(), "ran")
		c := exec.Command(os.Args[0], "-test.run=^TestInWorkers$", "-test.v", "-test.timeout=1m")
		c.Env = append(append(os.Environ(), "BRAID_IN_WORKERS="+how, "BRAID_PROCESSES=2", "BRAID_RAN="+file), env...)
		b, _ := c.CombinedOutput()
		require.NoFileExists(t, file+".goes-on", "a worker ends after its job")
		f, err := os.Open(file)
		if err != nil {
			return string(b), nil, nil
		}
		seeds, processes = map[string]int{}, map[string]int{}
		for {
			var process, seed string
			if _, err := fmt.Fscan(f, &process, &seed); err != nil {
				return string(b), seeds, processes
			}
			seeds[seed]++
			processes[process]++
			if process == fmt.Sprint(c.Process.Pid) {
				seeds["in the parent"]++
			}
		}
	}
	for _, how := range []string{"passes", "bubble"} {
		out, seeds, processes := test(how)
		require.Regexp(t, `50 seeds, [1-9]\d* steps each`, out, how)
		require.Contains(t, out, "even: 25 seeds", how)
		require.Contains(t, out, "\nPASS", how)
		require.Len(t, processes, 4, how)
		for seed, n := range seeds {
			require.Equal(t, map[bool]int{true: 2, false: 1}[len(seed) == 2 && seed[1] == '0'], n, "seed %s", seed)
		}
		require.Len(t, seeds, 50)
	}
	out, seeds, _ := test("guests")
	require.Contains(t, out, "even: 25 seeds")
	require.Contains(t, out, "\nPASS", "the machine may have decided an order")
	require.Len(t, seeds, 50)
	require.Equal(t, 4, seeds["20"])
	begun := time.Now()
	out, _, _ = test("output")
	require.Contains(t, out, "\nPASS")
	require.Less(t, time.Since(begun), 25*time.Second, "the output of a worker was awaited")
	for _, how := range []string{"error", "mark", "fatal"} {
		out, seeds, _ := test(how)
		require.Contains(t, out, "seed 37: ", how)
		require.Contains(t, out, "it is 37", how)
		require.Contains(t, out, "BRAID_PROCESSES= BRAID_SEED=37 go test -v -run '^TestInWorkers$'", how)
		require.Contains(t, out, "main goes on, one of 1 that could run", "the end of the trace")
		require.NotContains(t, out, "not deterministic", how)
		require.Equal(t, 1, seeds["in the parent"], how)
	}
	out, _, _ = test("error", "BRAID_PROCESSES=", "BRAID_SEED=37")
	require.Contains(t, out, "main begins, one of 1", "the whole trace")
	out, _, _ = test("no text")
	require.Contains(t, out, "seed 37: ")
	require.Contains(t, out, "\n--- FAIL")
	out, _, _ = test("exit")
	require.Contains(t, out, "seed 37: simulation: the process of the run ended: exit status 3")
	out, _, _ = test("goroutine")
	require.Regexp(t, `seed 37: simulation: the process of the run ended: exit status 2\n\s+panic: on a goroutine`, out)

	out, _, _ = test("process id")
	require.Contains(t, out, "seed 20: simulation: seed 20 is not deterministic. Two runs did the same up to step 3, 1s:")
	require.Regexp(t, `Then in the first run:\n\s+1s  main: process \d+\n\s+and in the second:\n\s+1s  main: process \d+\n`, out)
	require.Contains(t, out, "The two runs were in two processes")
	require.Contains(t, out, "BRAID_PROCESSES=2 BRAID_SEED=20 go test")
	out, _, processes := test("process id", "BRAID_SEED=20")
	require.Contains(t, out, "seed 20 is not deterministic")
	require.Len(t, processes, 4)
	out, _, _ = test("process id", "BRAID_PROCESSES=")
	require.Contains(t, out, "\nPASS", "one process has one id")

	out, seeds, _ = test("second")
	require.Contains(t, out, "seed 4: 4 of the second call")
	require.Equal(t, 1, seeds["50"]-1)
	require.Equal(t, 3, seeds["4"], "in the first and third call, and in the parent for its trace")

	out, _, _ = test("passes", "BRAID_SEEDS=300ms")
	require.Contains(t, out, "\nPASS")
	for env, want := range map[string]string{"BRAID_PROCESSES=x": "not a number of processes", "BRAID_PROCESSES=0": "not a number of processes", "BRAID_JOBS=2": "in one process"} {
		out, _, _ = test("passes", env)
		require.Contains(t, out, want, env)
	}
	out, _, _ = test("guided")
	require.Contains(t, out, "a guided search and BRAID_JOBS make their runs in one process")
}
