package simulation_test

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/internal/chance"
)

// identity is a random text that the program makes at its start, as github.com/nats-io/nuid does.
var identity = crand.Text()

// TestInApart runs in other processes, see TestApart.
func TestInApart(t *testing.T) {
	how := os.Getenv("BRAID_IN_APART")
	if how == "" {
		return
	}
	o := simulation.TestOptions{Seeds: 12, Twice: true, InProcess: how == "in this process", Guided: how == "guided"}
	o.Guests = true
	if name := os.Getenv("BRAID_IN_APART_TRACE"); name != "" {
		f, err := os.Create(name)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		o.Trace = f
	}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		if !o.InProcess {
			expvar.NewInt("runs") // panics if the name is in use
		}
		table := map[int]int{} // its order depends on the hash keys of the process
		for i := range 100 {
			table[i] = i
		}
		text := ""
		for i := range table {
			text += strconv.Itoa(i)
		}
		b, err := json.Marshal(struct{ A, B int }{1, 2}) // the first call for a type draws from the source of math/rand
		w.Log("%s %s %d %v %s", text, b, rand.IntN(1e6), err, identity)
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 50 * time.Millisecond})
		c, s := pipe(w)
		for range 20 {
			if _, err := c.Write([]byte("ping")); err != nil {
				return err
			}
			if _, err := s.Read(make([]byte, 4)); err != nil {
				return err
			}
		}
		w.Sometimes("odd", w.Seed()%2 == 1)
		fmt.Println("the output of seed", w.Seed())
		switch n := rand.IntN(4); {
		case how == "fails" && n == 0:
			return fmt.Errorf("drawn: %d", rand.IntN(1e6))
		case how == "error" && w.Seed() == 7:
			t.Error("it is 7")
		case how == "exits" && w.Seed() == 7:
			os.Exit(3)
		case how == "differs" && w.Seed() == 7:
			w.Log("process %d", os.Getpid())
			return errors.New("it is 7")
		}
		return nil
	}, o)
}

// With guests, each run has a process of its own, at level D. So the state of packages and the keys of maps are the same in each run, and the
// printed command repeats a failure.
func TestApart(t *testing.T) {
	test := func(how string, env ...string) string {
		c := exec.Command(os.Args[0], "-test.run=^TestInApart$", "-test.v", "-test.timeout=20m")
		c.Env = append(append(os.Environ(), "BRAID_IN_APART="+how), env...)
		b, _ := c.CombinedOutput()
		return string(b)
	}
	out := test("passes")
	if strconv.IntSize == 32 || testing.CoverMode() != "" {
		require.Contains(t, out, "the runs share this process")
		return
	}
	require.Contains(t, out, "\nPASS")
	require.Contains(t, out, "guests at level D; ")
	require.Contains(t, out, "sometimes: odd: 6 seeds")
	require.NotContains(t, out, "the output of seed")

	out = test("in this process")
	require.Contains(t, out, map[bool]string{true: "guests at level D; ", false: "guests at level B; "}[chance.Nodes()])
	require.Contains(t, out, "the output of seed 1\n")

	out = test("guided")
	require.Contains(t, out, "\nPASS")

	// The command repeats the failure, and so do a shortened run and a trace.
	out = test("fails")
	found := regexp.MustCompile(`seed (\d+): (drawn: \d+)\n`).FindStringSubmatch(out)
	require.NotNil(t, found, out)
	require.Contains(t, out, "The end of its trace:")
	require.Contains(t, out, "the output of seed "+found[1])
	require.Contains(t, out, "\tBRAID_SEED="+found[1]+" go test -v -run '^TestInApart$' github.com/braidgo/braid/simulation\n")
	again := test("fails", "BRAID_SEED="+found[1])
	require.Contains(t, again, "seed "+found[1]+": "+found[2]+"\n")
	require.Contains(t, again, "main makes node s\n", "the whole trace")
	require.Contains(t, again, "the output of seed "+found[1])
	picture := filepath.Join(t.TempDir(), "x.svg")
	out = test("fails", "BRAID_SHORTEN=5", "BRAID_DIAGRAM="+picture)
	short := regexp.MustCompile(`BRAID_SEED=(\S+) go test`).FindStringSubmatch(out)
	require.NotNil(t, short, out)
	require.Regexp(t, `sends 4 bytes to s, there at .*: "ping"`, out)
	require.Regexp(t, `the run ends: drawn: \d+`, out)
	require.FileExists(t, picture)
	name := regexp.MustCompile(`the run ends: drawn: \d+`).FindString(out)
	require.Contains(t, test("fails", "BRAID_SEED="+short[1]), name)

	file := filepath.Join(t.TempDir(), "trace")
	out = test("passes", "BRAID_IN_APART_TRACE="+file)
	require.Contains(t, out, "\nPASS")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "main makes node s\n")

	require.Regexp(t, `(?s)seed 7: main has marked the test as failed.*it is 7`, test("error"))
	for _, seed := range []string{"", "7"} {
		out = test("exits", "BRAID_SEED="+seed)
		require.Contains(t, out, "seed 7: simulation: the process of the run ended: exit status 3")
		require.Contains(t, out, "guests at level D; ")
		require.Contains(t, out, "the output of seed 7")
		require.Greater(t, strings.Count(out, `sends 4 bytes to s: "ping"`), 10, "the trace, or its end")
	}
	require.Contains(t, test("differs"), "seed 7: it is 7\n")

	// Without a go command, the runs share a process.
	out = test("in one process", "PATH=", "GOROOT=", "XDG_CACHE_HOME="+t.TempDir(), "BRAID_SEEDS=1", "BRAID_RANDOM=")
	if !chance.Nodes() {
		require.Contains(t, out, "the runs share this process, so package variables outlive a run, files of package os are the machine's, and a seed may not repeat: exec: \"go\"")
	}
}

// The text of a program shows the versions of its modules.
func TestVersions(t *testing.T) {
	got := simulation.Versions([]byte("\x00/mod/example.org/a/b@v1.2.3-rc.1/x/y.go\x00/mod/example.org/c@v2.0.0/z.go\x00me@v8, @v1/ @v"))
	require.Equal(t, map[string]string{"/mod/example.org/a/b": "v1.2.3-rc.1", "/mod/example.org/c": "v2.0.0"}, got)
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	for path, version := range simulation.Versions(text) {
		if strings.HasSuffix(path, "github.com/stretchr/testify") {
			require.Regexp(t, `^v1\.\d+\.\d+$`, version)
			return
		}
	}
	require.Fail(t, "testify is not there")
}

// The cache of programs is bounded by age and size, but keeps the programs of tests that may be running.
func TestRemoveOld(t *testing.T) {
	dir := t.TempDir()
	add := func(name string, age time.Duration, size int64) {
		folder := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "part"), 0o700))
		f, err := os.Create(filepath.Join(folder, "part", "x.test"))
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Truncate(size), f.Close()))
		used := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(folder, used, used))
	}
	const day = 24 * time.Hour
	add("a", 0, 700<<20)
	add("b", day/2, 700<<20)
	add("c", 2*day, 1)
	simulation.RemoveOld(dir)
	left := func() (names []string) {
		all, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, d := range all {
			names = append(names, d.Name())
		}
		return names
	}
	require.Equal(t, []string{"a", "b"}, left())

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "a")))
	add("c", 2*day, 200<<20)
	add("d", 3*day, 200<<20)
	add("e", 4*day, 100<<20)
	add("f", 40*day, 1)
	simulation.RemoveOld(dir)
	require.Equal(t, []string{"b", "c", "e"}, left())
	simulation.RemoveOld(filepath.Join(dir, "none"))
}
