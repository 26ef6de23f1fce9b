package seeds

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// environment is what environment variables choose, see simulation.Test.
type environment struct {
	n         int           // the number of runs
	lasts     time.Duration // how long to perform runs; if not 0, this duration replaces n
	one       bool          // BRAID_SEED is set, and run is the only run
	run       Run
	how       How
	tries     int    // the number of tries to shorten a failure
	file      string // the name of the file for the diagram
	jobs      int
	processes int // the number of workers; 0 means that this process performs the runs
}

func readEnvironment(t *testing.T, o Options) environment {
	e := environment{n: o.Seeds, how: How{Trace: o.Trace}, jobs: 1, file: os.Getenv("BRAID_DIAGRAM")}
	if e.n == 0 {
		if e.n = 100; testing.Short() {
			e.n = 10
		}
	}
	if v := os.Getenv("BRAID_SEED"); v != "" {
		var err error
		if e.run, err = Parse(v); err != nil {
			t.Fatalf("simulation: BRAID_SEED=%s is not the number of a seed, or of a shortened one", v)
		}
		e.n, e.one, e.how = 1, true, How{Tell: true, Trace: t.Output()}
	} else if v := os.Getenv("BRAID_SEEDS"); v != "" {
		var err error
		if e.n, err = strconv.Atoi(v); err != nil {
			e.lasts, err = time.ParseDuration(v)
		}
		if err != nil {
			t.Fatalf("simulation: BRAID_SEEDS=%s is neither a number nor a duration", v)
		}
	}
	e.tries = positive(t, "BRAID_SHORTEN", "tries")
	if !e.one {
		e.jobs = max(1, positive(t, "BRAID_JOBS", "jobs"))
	}
	if e.jobs > 1 && o.Turns {
		t.Fatalf("simulation: BRAID_JOBS=%d: runs with guests or with Bubble cannot run in parallel, so use BRAID_PROCESSES", e.jobs)
	}
	if e.processes = positive(t, "BRAID_PROCESSES", "processes"); e.processes > 0 && (o.Guided && !e.one && o.Program == "" || e.jobs > 1) {
		t.Fatalf("simulation: BRAID_PROCESSES=%d: a guided search and BRAID_JOBS make their runs in one process", e.processes)
	}
	if v := os.Getenv("BRAID_STOP"); v != "" {
		stop, err := strconv.Atoi(v)
		if err != nil || stop <= 0 || !e.one {
			t.Fatalf("simulation: BRAID_STOP=%s is not the number of a step, or there is no BRAID_SEED", v)
		}
		e.how.Stop = stop
	}
	if e.n <= 0 && e.lasts <= 0 {
		t.Fatal("simulation: no seeds to run: TestOptions.Seeds and BRAID_SEEDS have to be positive")
	}
	return e
}

// positive returns the positive number in an environment variable, or 0 if the variable is not set.
func positive(t *testing.T, name, of string) int {
	v := os.Getenv(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		t.Fatalf("simulation: %s=%s is not a number of %s", name, v, of)
	}
	return n
}
