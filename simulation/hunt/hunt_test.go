package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/edited"
)

// TestMain makes the test binary behave like a binary with orders, if HUNT_PLAYS is set.
func TestMain(m *testing.M) {
	if play := os.Getenv("HUNT_PLAYS"); play != "" {
		os.Exit(plays(play))
	}
	os.Exit(m.Run())
}

// plays is a test that fails in every fifth order, if the switches 3 and 17 of 40 are both on, or 300 and 11,000 of 12,000.
func plays(play string) int {
	order, mask, masked := strings.Cut(os.Getenv("BRAID_ORDER"), ":")
	if name, ok := strings.CutPrefix(mask, "@"); ok {
		text, _ := os.ReadFile(name)
		mask = strings.ReplaceAll(string(text), "\n", ",")
	}
	seed, _ := strconv.Atoi(strings.TrimRight(order, "ydl"))
	switches, first, second := 40, 3, 17
	if play == "many" {
		switches, first, second = 12_000, 300, 11_000
	}
	mask = "," + mask + ","
	on := func(n int) bool {
		return seed%5 == 0 && (!masked || strings.Contains(mask, ","+key{0xabcdef, 'p', uint64(n)}.String()+","))
	}
	if to := os.Getenv("BRAID_ORDER_LOG"); to != "" {
		var log strings.Builder
		log.WriteString("n 1 0 0 TestPlay\n")
		for n := range switches {
			if on(n) {
				fmt.Fprintf(&log, "q abcdef0000000001 %d 0 main.f\t/x/f.go:%d\t\np abcdef0000000001 %d 4 \nr 1 0 0 \n", n, n, n)
			}
		}
		if play == "fails" {
			log.WriteString("q 1 1 0 main.f\t/x/play_test.go:12\t\nn 2 0 0 TestNext\nq 2 1 0 main.f\t/x/next_test.go:1\t\n")
		}
		_ = os.WriteFile(to, []byte(log.String()), 0o666)
	}
	switch {
	case !on(first) || !on(second):
		fmt.Println("PASS")
		return 0
	case play == "endless":
		time.Sleep(time.Hour)
	case play == "panic":
		fmt.Printf("panic: send on closed channel\n\ngoroutine 7 [running]:\np.(*pool).submit(...)\n\t/x/p.go:9\n")
		return 2
	case play == "once":
		if _, err := os.Stat("once"); err == nil {
			return 0
		}
		_ = os.WriteFile("once", nil, 0o666)
	}
	fmt.Printf("--- FAIL: TestPlay (0.00s)\n    play_test.go:12: got %d\nFAIL\n", seed)
	return 1
}

// played returns a search that uses the binary of plays.
func played(t *testing.T, play string, h hunt) *search {
	t.Setenv("HUNT_PLAYS", play)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector makes a process wait for a second
	require.NoError(t, h.parse([]string{"-n=50", "-jobs=2", "-limit=10s"}))
	h.dir, h.g, h.log = t.TempDir(), &edited.Go{Command: "go", List: "/list.json", Root: "/go"}, t.Output()
	return &search{hunt: &h, pkg: &pkg{ImportPath: "example.com/p", Dir: t.TempDir(), binary: os.Args[0]}, known: map[string]bool{}}
}

// A failure is found by trying the seeds in order, repeated, and shortened to the switches that it needs. The report has a line
// for each.
// A shell reads the words of a printed command as the hunt means them.
func TestQuoted(t *testing.T) {
	for _, a := range []string{"-run=^TestA$/it's", "BRAID_ORDER=5:@/home/a user/list", "/opt/go 1/bin/go", "example.com/p", "-tags=a,b", "a'b c"} {
		out, err := exec.Command("sh", "-c", "env "+quoted("A="+a)+" sh -c 'printf %s \"$A\"'").Output()
		require.NoError(t, err)
		require.Equal(t, a, string(out))
		out, err = exec.Command("sh", "-c", "printf %s "+quoted(a)).Output()
		require.NoError(t, err)
		require.Equal(t, a, string(out))
	}
	require.Equal(t, "BRAID_ORDER=5:abcp3", quoted("BRAID_ORDER=5:abcp3"))
}

func TestSearch(t *testing.T) {
	s := played(t, "fails", hunt{})
	o := s.next(t.Context(), time.Now())
	require.NotNil(t, o)
	require.Equal(t, "5", o.order)
	require.Equal(t, 5, s.tried)
	require.Equal(t, "TestPlay play_test.go:12", o.kind)
	f := s.examine(t.Context(), o)
	require.Equal(t, [...]int{5, 5, 40, 2, 5}, [...]int{f.Repeats, f.Failed, f.Switches, f.Needed, f.ShortFailed})
	require.Equal(t, "5:abcdefp3,abcdefp17", f.ShortOrder)
	require.Len(t, f.Steps, 3)
	require.Equal(t, "play_test.go:12", f.Steps[2].Place, "the report ends where the test ends")
	require.Contains(t, f.Command, "BRAID_ORDER=5:abcdefp3,abcdefp17 go test -vet=off -count=1 -parallel=4 -overlay=/list.json -run='^TestPlay$' example.com/p")
	text := f.asText()
	for _, part := range []string{
		"TestPlay fails in order 5, the 5th that was tried", "    play_test.go:12: got 5\n", "it failed in the same way 5 times of 5", "Of its 40 switches, 2 are needed (5 times of 5)",
		"f.go:3", "<- here others run first, for up to 4 operations", f.Command,
	} {
		require.Contains(t, text, part)
	}
	require.Nil(t, s.next(t.Context(), time.Now()), "the same failure was reported again")
}

// A list of switches may be longer than a variable of the environment.
func TestManySwitches(t *testing.T) {
	s := played(t, "many", hunt{})
	s.first = 5
	o := s.next(t.Context(), time.Now())
	require.NotNil(t, o)
	f := s.examine(t.Context(), o)
	require.Equal(t, [...]int{5, 12_000, 2, 5}, [...]int{f.Failed, f.Switches, f.Needed, f.ShortFailed})
	require.True(t, f.Minimal)
	require.Equal(t, "5:abcdefp300,abcdefp11000", f.ShortOrder)
	left, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The output of a panic in a goroutine does not name the test. The log does.
func TestPanicInGoroutine(t *testing.T) {
	s := played(t, "panic", hunt{})
	o := s.next(t.Context(), time.Now())
	require.NotNil(t, o)
	require.Empty(t, o.test)
	f := s.examine(t.Context(), o)
	require.Equal(t, "TestPlay", f.Test)
	require.Contains(t, f.Command, "-run='^TestPlay$'")
}

// A sweep finds, in few runs, a set of switches of which none can be left out, and ends when its time is over.
func TestSweep(t *testing.T) {
	var all []key
	for n := range uint64(3405) {
		all = append(all, key{n % 50, 'p', n})
	}
	for name, c := range map[string]struct {
		fails func([]key) bool
		left  int
		runs  int // at most
	}{
		"every one":     {func([]key) bool { return true }, 1, 2 * 12},
		"far apart":     {func(keys []key) bool { return slices.Contains(keys, all[7]) && slices.Contains(keys, all[3400]) }, 2, 4 * 12},
		"twenty":        {func(keys []key) bool { return len(keys) >= 20 }, 20, 300},
		"a third":       {func(keys []key) bool { return len(keys) >= 1135 }, 1135, 5000},
		"every hundred": {func(keys []key) bool { return count(keys, func(k key) bool { return k.n%100 == 0 }) == 35 }, 35, 35 * 2 * 12},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			first := func(candidates ...[]key) (int, bool) {
				require.LessOrEqual(t, len(candidates), 2)
				for i, keys := range candidates {
					if runs++; c.fails(keys) {
						return i, true
					}
				}
				return 0, false
			}
			s := &search{hunt: &hunt{jobs: 2}}
			keys := all
			require.True(t, s.sweep(t.Context(), &keys, first))
			require.True(t, c.fails(keys))
			require.Len(t, keys, c.left)
			t.Log(runs, "runs")
			require.LessOrEqual(t, runs, c.runs)
			ctx, cancel := context.WithCancel(t.Context())
			keys = all
			require.False(t, s.sweep(ctx, &keys, func(candidates ...[]key) (int, bool) {
				cancel()
				return 1, true
			}))
			require.Len(t, keys, 1703)
		})
	}
}

func count(keys []key, f func(key) bool) (n int) {
	for _, k := range keys {
		if f(k) {
			n++
		}
	}
	return n
}

// A report with very many switches is short, and says where all of them are.
func TestManyNeeded(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var keys []key
	var log strings.Builder
	for n := range uint64(3405) {
		keys = append(keys, key{0xabcdef, 'p', n})
		fmt.Fprintf(&log, "q abcdef0000000001 %d 0 main.f\t/x/f.go:%d\t\np abcdef0000000001 %d 4 \nr 1 0 0 \n", n, n, n)
	}
	f := &Failure{Test: "TestX", Order: "5", Repeats: 5, Failed: 5, ShortFailed: 5, Switches: 4000, Needed: len(keys), ShortOrder: kept(with("5", keys)),
		module: new(pkg), root: "/go"}
	f.Steps = f.steps(parse([]byte(log.String()), f.place))
	f.Command = played(t, "fails", hunt{}).repeatCommand(f.ShortOrder, "X")
	text := f.asText()
	require.Less(t, len(text), 4000)
	require.Contains(t, text, "Of its 4000 switches, 3405 are enough (5 times of 5). The time of -shorten ran out before each of them had been tried.\n"+
		"The last 20 are in the table.\n")
	require.InDelta(t, 20+shown, strings.Count(text, "<- here others run first"), shown)
	require.Contains(t, text, "f.go:3404")
	_, name, ok := strings.Cut(f.ShortOrder, "5:@")
	require.True(t, ok, f.ShortOrder)
	list, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, with("5", keys), "5:"+strings.ReplaceAll(strings.TrimSpace(string(list)), "\n", ","))
	f.Minimal = true
	require.Contains(t, f.asText(), "Of its 4000 switches, 3405 are needed (5 times of 5).\n")
	f.ShortOrder, f.Needed = "", 0
	require.Contains(t, f.asText(), "The order has 4000 switches. It was not shortened")
}

// A failure that the order does not decide is reported as such.
func TestNotRepeated(t *testing.T) {
	s := played(t, "once", hunt{})
	o := s.next(t.Context(), time.Now())
	require.NotNil(t, o)
	f := s.examine(t.Context(), o)
	require.Zero(t, f.Failed)
	require.Contains(t, f.asText(), "not decided by the order alone")
}

// An order that does not end is a failure after -limit. Its output has the stacks of the test.
func TestEndless(t *testing.T) {
	s := played(t, "endless", hunt{})
	s.limit = 300 * time.Millisecond
	o := s.perform(t.Context(), s.pkg, s.binary, "", "5", "")
	require.True(t, o.failed)
	require.Equal(t, "endless", o.kind)
	require.Contains(t, o.output, "SIGQUIT")
	s.limit = time.Hour
	_, log, err := s.logged(t.Context(), o, "", "5") // only for a short time
	require.NoError(t, err)
	require.NotEmpty(t, log)
}

// An interrupt ends the search without a failure.
func TestInterrupt(t *testing.T) {
	s := played(t, "endless", hunt{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	require.Nil(t, s.next(ctx, time.Now()))
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ output, test, kind, message string }{
		"assertion": {"--- FAIL: TestA (0.00s)\n    a_test.go:3: got 3\n        want 4\nFAIL\n", "TestA", "TestA a_test.go:3", "    a_test.go:3: got 3\n        want 4\n"},
		"subtest":   {"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:3: got 3\nFAIL\n", "TestA/b", "TestA/b a_test.go:3", "        a_test.go:3: got 3\n"},
		"panic": {"panic: send on closed channel\n\ngoroutine 7 [running]:\nx.TestC.func1()\n\t/x/c_test.go:9\n", "", " panic: send on closed channel",
			"    panic: send on closed channel\n"},
		"deadlock": {"panic: test timed out after 10m0s\n\trunning tests:\n\t\tTestD (10m0s)\n\ngoroutine 9 [running]:\n", "TestD", " panic: test timed out",
			"    panic: test timed out after 10m0s: all its goroutines wait, and no timer is left to end a wait\n"},
		"exit": {"bad\n", "", " exit status 3", "    bad\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outcome{output: c.output}
			o.read(fmt.Errorf("exit status 3"))
			require.Equal(t, c.test, o.test)
			require.Equal(t, c.kind, o.kind)
			require.Equal(t, c.message, o.message)
		})
	}
}

func TestParse(t *testing.T) {
	h := &hunt{log: t.Output()}
	require.NoError(t, h.parse([]string{"./a", "-run", "X", "./b", "-n=7", "-stall=50ms", "-strategy=delays"}))
	require.Equal(t, []string{"./a", "./b"}, h.packages)
	require.Equal(t, "X", h.run)
	require.Equal(t, 7, h.n)
	require.Equal(t, "d+50", h.how)
	for _, bad := range [][]string{{"-strategy=x"}, {"-n=0"}, {"-jobs=0"}, {"-repeat=0"}, {"-stall=1ns"}, {"-nonsense"}} {
		require.Error(t, (&hunt{log: t.Output()}).parse(bad), bad)
	}
	require.Equal(t, []string{"1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th"}, []string{ordinal(1), ordinal(2), ordinal(3), ordinal(4), ordinal(11), ordinal(12), ordinal(21), ordinal(112)})
	require.Equal(t, []string{"A", "Z", "A1"}, []string{letter(0), letter(25), letter(26)})
}

// A goroutine has a second step where it continues after a switch, and each goroutine has a name.
func TestSteps(t *testing.T) {
	const log = "n 1 0 0 \nq 1 1 0 main.main\t/x/main.go:3\t\nn 2 0 0 TestA\ng 2 1 3 main.f\t/x/a.go:1\t\ng 2 2 4 net.f\t/go/src/net/net.go:1\t\n" +
		"q 2 3 0 main.f\t/x/a.go:5\t\np 2 3 0 \nr 3 0 0 \nq 3 1 0 main.g\t/x/a.go:9\t\nr 4 0 0 \nq 4 1 0 main.h\t/x/a.go:7\t\nr 2 0 0 \nr 3 0 0 \n"
	f := &Failure{module: new(pkg), root: "/go"}
	f.Steps = f.steps(parse([]byte(log), f.place))
	require.Equal(t, []string{"main", "TestA", "started at a.go:1", "started by the standard library, for example by a timer"}, f.Goroutines)
	require.Equal(t, []Step{{0, "main.go:3", "", ""}, {1, "a.go:5", "", "here the others run first"}, {2, "a.go:9", "", ""}, {3, "a.go:7", "", ""},
		{1, "a.go:5", "", ""}}, f.Steps)
}

// What happens after a test is not in its report.
func TestUntilEnd(t *testing.T) {
	all := []event{{kind: 'n', id: 1}, {kind: 'q', id: 1}, {kind: 'n', id: 2, text: "TestA"}, {kind: 'q', id: 2, inCode: true}, {kind: 'q', id: 3, inCode: true},
		{kind: 'q', id: 2, inCode: true}, {kind: 'q', id: 2}, {kind: 'n', id: 4, text: "TestB"}, {kind: 'q', id: 4, inCode: true}}
	require.Equal(t, all[:6], untilEnd(all, "TestA"))
	require.Equal(t, all, untilEnd(all, "TestB"))
	require.Equal(t, all, untilEnd(all, "TestC"))
}

// A switch after which the same goroutine continues does not count, unless it has changed a priority.
func TestSwitches(t *testing.T) {
	const log = "q 10000000001 1 0 \np 10000000001 1 0 \nq 10000000001 2 0 \np 10000000001 2 0 \nr 20000000001 0 0 \nw 20000000001 3 0 \nq 20000000001 1 0 \nw 10000000001 3 0 \nq 2"
	events := parse([]byte(log), nil)
	effective, all := switches(events)
	require.Equal(t, []key{{1, 'p', 2}, {1, 'w', 3}}, effective)
	require.Equal(t, []key{{1, 'p', 1}, {1, 'p', 2}, {2, 'w', 3}, {1, 'w', 3}}, all)
	with1, _ := switches(parse([]byte("l 10000000001 0 0 \n"+log), nil))
	require.Equal(t, []key{{1, 'l', 0}, {1, 'p', 1}, {1, 'p', 2}, {2, 'w', 3}, {1, 'w', 3}}, with1)
	require.Equal(t, "5:000001p2,000001w3", with("5", effective))
}

// The middle of an output that is too long is dropped.
func TestClipped(t *testing.T) {
	c := &clipped{}
	for i := range 100_000 {
		fmt.Fprintln(c, "line", i)
	}
	got := c.String()
	require.Less(t, len(got), 4*most)
	require.True(t, strings.HasPrefix(got, "line 0\n"))
	require.True(t, strings.HasSuffix(got, "line 99999\n"))
	require.Contains(t, got, "\n...\n")
}

// TestFlaky searches the programs of testdata/flaky. It needs a build of the standard library, so it runs only with
// BRAID_OVERLAID. Each failure is found within 50 orders, repeats, and needs at most three switches. The command of the report
// repeats it.
func TestFlaky(t *testing.T) {
	if os.Getenv("BRAID_OVERLAID") == "" {
		return
	}
	t.Chdir("testdata/flaky")
	for _, name := range []string{"Counter", "Submit", "LostUpdate", "LostAtomic", "CloseRace", "LateCancel", "LateSend", "StartOrder", "SameMoment", "LockOrder"} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.Equal(t, 1, command(t.Context(), []string{".", "-json", "-n=50", "-run=^Test" + name + "$"}, &out, t.Output()))
			var f Failure
			require.NoError(t, json.Unmarshal(out.Bytes(), &f))
			require.Equal(t, "Test"+name, f.Test)
			require.Equal(t, 5, f.Failed)
			require.Equal(t, 5, f.ShortFailed)
			require.LessOrEqual(t, f.Needed, 3)
			t.Logf("order %s of %d: %s", f.ShortOrder, f.Orders, f.Message)
			again, err := exec.Command("sh", "-c", f.Command).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(again), strings.TrimSpace(strings.Split(f.Message, ": all its")[0]))
		})
	}
	t.Run("many switches", func(t *testing.T) { // their list is longer than a variable of the environment
		var out bytes.Buffer
		require.Equal(t, 1, command(t.Context(), []string{"-json", "-n=50", "-strategy=yields", "-run=^TestCrowd$"}, &out, t.Output()))
		var f Failure
		require.NoError(t, json.Unmarshal(out.Bytes(), &f))
		require.Equal(t, "TestCrowd", f.Test)
		require.Greater(t, f.Switches, 15_000)
		require.LessOrEqual(t, f.Needed, 3)
		require.Equal(t, 5, f.ShortFailed)
	})
	t.Run("race detector", func(t *testing.T) {
		if err := exec.Command("sh", "-c", "test $(go env CGO_ENABLED) = 1 && $(go env CC) --version").Run(); err != nil {
			return
		}
		for name, says := range map[string]string{"Unlocked": "the race detector reports a data race in this order", "Counter": "the race detector reports no data race in this order"} {
			var out bytes.Buffer
			require.Equal(t, 1, command(t.Context(), []string{"-n=50", "-race", "-run=^Test" + name + "$"}, &out, t.Output()))
			require.Contains(t, out.String(), says)
		}
	})
	t.Run("a sleep", func(t *testing.T) { // is found only if goroutines may be paused
		var out, log bytes.Buffer
		require.Equal(t, 0, command(t.Context(), []string{"-n=50", "-run=Work"}, &out, &log))
		require.Contains(t, log.String(), "try -stall 100ms")
		require.Equal(t, 1, command(t.Context(), []string{"-n=50", "-run=Work", "-stall=100ms"}, &out, t.Output()))
		require.Contains(t, out.String(), "here it is paused for ")
	})
	t.Run("a package that does not build", func(t *testing.T) {
		var log bytes.Buffer
		require.Equal(t, 2, command(t.Context(), []string{"./nothing"}, &log, &log))
		require.Contains(t, log.String(), "hunt: go list")
	})
	t.Run("no tests match", func(t *testing.T) {
		var log bytes.Buffer
		require.Equal(t, 0, command(t.Context(), []string{"-run=Nothing"}, &log, &log))
		require.Contains(t, log.String(), "no tests match")
	})
}
