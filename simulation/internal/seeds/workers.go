package seeds

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A worker is a process that runs the same test again. Test writes a job to a file, and starts the program of the test again. In the
// worker, Test runs the seeds of the job, appends a result for each seed to a second file, and skips the rest of the test. If a run ends
// its worker, the first seed without a result is the seed of that run. Goroutines that a run leaves behind end with the worker. Guests of
// different workers use different processors.
//
// The program of a worker may be another build of the test, see Options.Program. Then each run has a worker of its own.
//
// A seed that runs twice runs in two workers, which have different process ids, addresses and hash keys of maps. A job for a call of Test
// in a subtest skips only the rest of the subtest. The outer test continues in the worker, where its other calls of Test do nothing.

// perWorker is the maximum number of runs of a worker.
const perWorker = 1000

// pairs is the maximum number of pairs of processes in which a seed runs again.
const pairs = 5

// errEnded says that the run of a seed has ended its process.
var errEnded = errors.New("simulation: the process of the run ended")

// OutputOpen is how long the output of a worker that has ended may stay open, because processes that main has started inherit it.
var OutputOpen = 10 * time.Second

// A job is a list of runs for a worker.
type job struct {
	Name string
	Call int      // the number of the call of Test in that test
	Runs []string // their names, see Run.String
	How  How
}

// testCalls counts the calls of Test in each test, so that a worker finds the call that its job is for.
var testCalls = struct {
	sync.Mutex
	of map[*testing.T]int
}{of: map[*testing.T]int{}}

// callNumber returns the number of calls of Test in t, including the current call.
func callNumber(t *testing.T) int {
	testCalls.Lock()
	defer testCalls.Unlock()
	if testCalls.of[t]++; testCalls.of[t] == 1 {
		t.Cleanup(func() {
			testCalls.Lock()
			defer testCalls.Unlock()
			delete(testCalls.of, t)
		})
	}
	return testCalls.of[t]
}

// work executes the job of this process and ends the test, if the process is a worker and the job is for this call of Test. It returns true
// if the job is for another call.
func (s *session) work(t *testing.T) (elsewhere bool) {
	file := os.Getenv("BRAID_WORKER")
	if file == "" {
		return false
	}
	b, err := os.ReadFile(file)
	var j job
	if err = errors.Join(err, json.Unmarshal(b, &j)); err != nil {
		t.Fatalf("simulation: BRAID_WORKER: %v", err)
	}
	if j.Name != t.Name() || j.Call != s.call {
		return true
	}
	out, err := os.Create(file + ".results")
	if err != nil {
		t.Fatalf("simulation: BRAID_WORKER: %v", err)
	}
	defer func() { _ = out.Close() }()
	if j.How.Keep {
		trace, err := os.Create(file + ".trace")
		if err != nil {
			t.Fatalf("simulation: BRAID_WORKER: %v", err)
		}
		defer func() { _ = trace.Close() }()
		j.How.Trace = trace
	}
	results := json.NewEncoder(out)
	for _, name := range j.Runs {
		p, err := Parse(name)
		if err != nil {
			t.Fatalf("simulation: BRAID_WORKER: %v", err)
		}
		r := s.first.Run(p, j.How)
		if r.Err != nil {
			text := r.Err.Error()
			r.Error = &text
		}
		r.Failed = t.Failed()
		if err := results.Encode(r); err != nil {
			t.Fatalf("simulation: BRAID_WORKER: %v", err)
		}
		if r.Failed || r.Error != nil {
			break
		}
	}
	t.SkipNow()
	return true
}

// employ performs the given runs in a new worker, and returns their results up to the first failure.
func (s *session) employ(t *testing.T, how How, some ...Run) (all []Result) {
	file := filepath.Join(t.TempDir(), "job")
	fail := func(err error, output []byte) []Result {
		r := Result{Events: traced(file), Unending: true, Err: fmt.Errorf("%w: %w\n%s", errEnded, err, bytes.TrimSpace(output))}
		if len(all) < len(some) {
			r.Seed = some[len(all)].Seed
		}
		return append(all, r)
	}
	j := job{Name: t.Name(), Call: s.call, How: how}
	for _, p := range some {
		j.Runs = append(j.Runs, p.String())
	}
	b, err := json.Marshal(j)
	if err = errors.Join(err, os.WriteFile(file, b, 0o600)); err != nil {
		return fail(err, nil)
	}
	program := s.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return fail(err, nil)
		}
	}
	output, ended := s.worker(t, program, file).CombinedOutput()
	b, err = os.ReadFile(file + ".results")
	if err != nil {
		return fail(errors.Join(ended, err), output)
	}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r Result
		if err := d.Decode(&r); err != nil {
			return fail(errors.Join(ended, err), output)
		}
		if r.Error != nil {
			r.Err = errors.New(*r.Error)
		}
		all = append(all, r)
	}
	if n := len(all); n == len(some) || n > 0 && all[n-1].failed() {
		if n > 0 {
			all[n-1].Output = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(output)), "PASS"))
		}
		return all
	}
	if ended == nil {
		ended = errors.New("the process did not reach this call of Test")
	}
	return fail(ended, output)
}

// traced returns the events of the trace that a worker has written until its run ended it.
func traced(file string) (all []Event) {
	text, _ := os.ReadFile(file + ".trace")
	for line := range strings.Lines(string(text)) {
		all = append(all, Event{Text: strings.TrimSuffix(line, "\n")})
	}
	return all
}

// worker returns the command that starts a worker for the job in file. The worker inherits the user's flags, and the environment without
// the variables that only the first process needs.
func (s *session) worker(t *testing.T, program, file string) *exec.Cmd {
	args := []string{"-test.run=" + pattern(t.Name()), fmt.Sprintf("-test.short=%v", testing.Short())}
	if d, ok := t.Deadline(); ok { // a run without an end must end first, so that its seed is named
		args = append(args, "-test.timeout="+max(time.Until(d)*9/10, time.Second).String())
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	c := exec.CommandContext(t.Context(), program, args...)
	c.WaitDelay = OutputOpen
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"BRAID_PROCESSES", "BRAID_SHORTEN", "BRAID_DIAGRAM", "BRAID_RANDOM", "BRAID_SEED", "BRAID_SEEDS"}, name)
	})
	if os.Getenv("BRAID_RANDOM") != "" && s.Program == "" { // the value in this process is "set"
		c.Env = append(c.Env, "BRAID_RANDOM=1")
	}
	// The race detector sleeps for a second at the end of a process, in case another thread still has to report something.
	race := strings.TrimSpace(os.Getenv("GORACE") + " atexit_sleep_ms=0")
	c.Env = append(append(c.Env, s.Env...), "GORACE="+race, "BRAID_WORKER="+file)
	return c
}

// inWorkers performs all plans in workers. Runs that must be performed twice are then performed in other workers, too. It returns a function
// that returns the i'th result.
func (s *session) inWorkers(t *testing.T, plans []Run) func(i int) Result {
	first := s.share(t, plans)
	var again []Run
	var at []int // the indexes of again in plans
	for i, r := range first {
		if r.Seed != 0 && s.twice(plans[i]) && !r.failed() {
			again, at = append(again, plans[i]), append(at, i)
		}
	}
	for k, r := range s.share(t, again) {
		if was := first[at[k]]; r.Seed != 0 && !was.same(r) {
			first[at[k]] = s.across(t, again[k], was, r)
		}
	}
	return func(i int) Result {
		r := first[i]
		r.Failed = r.failed()
		return r
	}
}

// share divides plans equally among workers, and returns their results. Plans of a worker that follow a failure have zero Results.
func (s *session) share(t *testing.T, plans []Run) []Result {
	all := make([]Result, len(plans))
	var wait sync.WaitGroup
	free := make(chan struct{}, s.processes)
	size := 1
	if s.Program == "" {
		size = max(1, min(perWorker, (len(plans)+s.processes-1)/s.processes))
	}
	for from := 0; from < len(plans); from += size {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			copy(all[from:], s.employ(t, s.how, plans[from:min(from+size, len(plans))]...))
		})
	}
	wait.Wait()
	return all
}

// across returns the result of the run p, whose performances in two processes, a and b, differed. Further pairs of processes record events, so that the
// error describes the first difference. If a run has had a long window, the machine may have decided an order there, and a pair of equal
// runs is accepted.
func (s *session) across(t *testing.T, p Run, a, b Result) Result {
	long := a.Long + b.Long
	for n := range pairs {
		x, y := s.pair(t, p, s.how)
		x.Again = n + 1
		switch now := x.Long + y.Long; {
		case x.same(y) && long > 0:
			return x
		case !x.same(y) && now == 0:
			x.Differs, x.Err = true, fmt.Errorf("%w\n\nThe two runs were in two processes, which have other hash keys of maps, other addresses and other process ids",
				s.Differ(x, y))
			return x
		default:
			long += now
		}
	}
	a.Again = pairs
	a.Err = fmt.Errorf("simulation: seed %d is not deterministic: its runs in two processes had the hashes %016x and %016x, and ended like this:\n\t%s\n\t%s\n"+
		"In %d further pairs of processes no event that explains it was found", a.Seed, a.Hash, b.Hash, Verdict(a.Err), Verdict(b.Err), pairs)
	return a
}

// pair performs the run p in two workers, which record events.
func (s *session) pair(t *testing.T, p Run, how How) (x, y Result) {
	how.Events = true
	var both sync.WaitGroup
	both.Go(func() { x = s.employ(t, how, p)[0] })
	both.Go(func() { y = s.employ(t, how, p)[0] })
	both.Wait()
	return x, y
}
