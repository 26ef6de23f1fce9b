package stocktest

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A row is stock code with its expected outcomes. The zero outcome is "works".
type row struct {
	name       string
	run        func(ctx context.Context, e *env) error
	server     string  // the server that the row needs
	held, pool outcome // the outcomes on a reactor with a negative HandOver, and in a pool
}

type outcome string

const (
	works    outcome = ""
	slow     outcome = "slow"     // another task was delayed for longer than slowly, and four times as long as a goroutine
	deadlock outcome = "deadlock" // the row has not ended within the limit
	either   outcome = "works, or a deadlock on a busy machine"
)

func (o outcome) String() string { return cmp.Or(string(o), "works") }

const (
	slowly = 250 * time.Millisecond
	limit  = 15 * time.Second
	soon   = 4 * time.Second // the limit of a row that is known to deadlock
)

var rows = slices.Concat(nativeRows, tlsRows, httpRows, websocketRows, redisRows, postgresRows, natsRows, grpcRows)

func (r row) expected(scheduler string) outcome {
	switch scheduler {
	case "held":
		return r.held
	case "pool":
		return r.pool
	}
	return works
}

// TestStock runs each row on each scheduler, in a process of its own, because a deadlock ends the process. With -v it prints the
// table. BRAID_ROUNDS=n runs all n times, in turn, with the full limit, and prints the best figures of each.
func TestStock(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("BRAID_ROUNDS"))
	servers := map[string]string{"": "", "redis-server": redisServer(t), "postgres": postgresServer(t)}
	found := map[string]result{}
	var mu sync.Mutex
	t.Run("each", func(t *testing.T) {
		for range max(1, rounds) {
			for _, r := range rows {
				for _, s := range schedulers {
					t.Run(s.name+"/"+r.name, func(t *testing.T) {
						expected := r.expected(s.name)
						o := order{r.name, s.name, servers[r.server], limit}
						if o.Server == "" && r.server != "" {
							t.Skip("there is no " + r.server)
						}
						if expected == deadlock {
							t.Parallel()
						}
						if rounds == 0 && (expected == deadlock || expected == either) {
							o.Limit = soon
						}
						got := o.run(t)
						for again := 0; again < 5 && got.Outcome == slow && expected == works; again++ { // repeats, because the machine may be busy
							got = o.run(t)
						}
						mu.Lock()
						defer mu.Unlock()
						found[r.name+s.name] = got.better(found[r.name+s.name])
						switch {
						case got.Err != "":
							t.Error(got.Err)
						case got.Outcome == expected, got.Outcome == works && expected == slow, got.Outcome != slow && expected == either:
						case got.Outcome == slow && expected == works && got.Longest < 4*slowly: // the machine was busy in each attempt
						default:
							t.Errorf("%q, expected is %q: %v\n%s\n%s", got.Outcome, expected, got.Longest, got.Report, got.Stacks)
						}
					})
				}
			}
		}
	})
	if testing.Verbose() {
		fmt.Print(table(found))
	}
}

// A result is the outcome of one row on one scheduler.
type result struct {
	Outcome      outcome
	Err          string
	Took         time.Duration // the time of the tasks
	Longest, P99 time.Duration // the delays of the sibling
	Report       string        // the scheduler's report of its first stall
	Stacks       string        // all stacks, after a deadlock
}

// better returns r with the better figures of both. The worse outcome counts.
func (r result) better(other result) result {
	if other.Took == 0 || r.Outcome == deadlock {
		return r
	}
	if other.Outcome != works {
		r.Outcome = other.Outcome
	}
	r.Took, r.Longest, r.P99 = min(r.Took, other.Took), min(r.Longest, other.Longest), min(r.P99, other.P99)
	return r
}

// An order tells a process of this test which row to run.
type order struct {
	Row, Scheduler, Server string
	Limit                  time.Duration
}

const ordered = "BRAID_STOCKTEST"

func (o order) run(t *testing.T) (r result) {
	t.Helper()
	encoded, _ := json.Marshal(o)
	ctx, cancel := context.WithTimeout(t.Context(), o.Limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), ordered+"="+string(encoded))
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		var stderr []byte
		if e, ok := err.(*exec.ExitError); ok {
			stderr = e.Stderr
		}
		t.Fatalf("%v\n%s\n%s", err, out, stderr)
	}
	return r
}

func TestMain(m *testing.M) {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(ordered)), &o); err == nil {
		o.obey()
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // deadlocks need no processor
	os.Exit(m.Run())
}

// obey runs the row, prints the result, and exits.
func (o order) obey() {
	var report string
	var once, reported sync.Once
	var s, goroutine sibling
	end := func(r result) {
		once.Do(func() {
			reported.Do(func() {}) // no report may be under way
			r.Report = report
			r.Longest, r.P99 = s.delays()
			if busy, _ := goroutine.delays(); r.Outcome == works && r.Longest > max(slowly, 4*busy) {
				r.Outcome = slow
			}
			_ = json.NewEncoder(os.Stdout).Encode(r)
			os.Exit(0)
		})
	}
	time.AfterFunc(o.Limit, func() {
		stacks := make([]byte, 1<<16)
		end(result{Outcome: deadlock, Stacks: string(stacks[:runtime.Stack(stacks, true)])})
	})
	for _, scheduler := range schedulers {
		if scheduler.name != o.Scheduler {
			continue
		}
		e, err := scheduler.make(func(text []byte) { reported.Do(func() { report = string(text) }) })
		if err != nil {
			end(result{Err: err.Error()})
		}
		e.server = o.Server
		ctx, cancel := context.WithCancel(context.Background())
		_ = e.spawn(func() { s.run(ctx) })
		go goroutine.run(ctx)
		err = rows[slices.IndexFunc(rows, func(r row) bool { return r.name == o.Row })].run(ctx, e)
		cancel()
		if closing := e.close(); err == nil {
			err = closing
		}
		r := result{Took: e.took}
		if err != nil {
			r.Err = err.Error()
		}
		end(r)
	}
}

// table returns the table of adapters/eventloop/README.md: the outcome, the throughput compared with goroutines, and the longest
// delay of the sibling.
func table(found map[string]result) string {
	var b strings.Builder
	b.WriteString("| stock code | reactor | throughput | delay | `HandOver: -1` | pool of one | throughput | delay |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		cells := []string{"", r.name}
		for _, s := range []string{"reactor", "held", "pool"} {
			got, beside := found[r.name+s], found[r.name+"goroutines"]
			switch {
			case s == "held":
				cells = append(cells, r.held.String())
			case got == result{}: // the row was not run
				cells = append(cells, "", "", "")
			case got.Outcome == deadlock:
				cells = append(cells, string(deadlock), "", "")
			default:
				cells = append(cells, got.Outcome.String(), fmt.Sprintf("%.2f", beside.Took.Seconds()/got.Took.Seconds()),
					fmt.Sprintf("%.0f ms", got.Longest.Seconds()*1000))
			}
		}
		if strings.Join(cells[2:], "") != "" {
			b.WriteString(strings.TrimLeft(strings.Join(cells, " | "), " ") + " |\n")
		}
	}
	return b.String()
}

// TestPage compares the rows with adapters/eventloop/README.md. The figures may differ.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		line := "\\n\\| " + regexp.QuoteMeta(r.name) + " \\| " + r.expected("reactor").String() + " \\|.*\\| " + r.held.String() + " \\| " + r.expected("pool").String() + " \\|.*\\n"
		if !regexp.MustCompile(line).Match(page) {
			t.Errorf("adapters/eventloop/README.md has no line %s", line)
		}
	}
}
