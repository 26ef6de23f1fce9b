package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	page    = regexp.MustCompile(`(?s)Its messages, faults and lines of Log, with their steps:\n(.*?)\n\s*\n`)
	command = regexp.MustCompile(`(?m)^\s*(BRAID_SEED=.* go test .*)$`)
	verdict = regexp.MustCompile(`seed \S+ (.*)`)
	digits  = regexp.MustCompile(`\d+`)
)

// Found checks that the named test, which passes here, finds a bug of history: that it fails with the older versions of history.mod, within n
// seeds and with the text want, where each number is 0. After 40 tries to shorten the failure, its list must have at most 40
// lines, and the command that the failure prints must repeat it, in a process of its own.
func Found(t *testing.T, test string, n int, want string) {
	t.Helper()
	old, err := filepath.Abs("../history.mod")
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string) (out, end string) {
		c := exec.Command("sh", "-c", text)
		c.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -modfile="+old)
		b, err := c.CombinedOutput()
		if err == nil || !verdict.Match(b) {
			t.Fatalf("%s: %v: %s", text, err, b)
		}
		return string(b), verdict.FindStringSubmatch(string(b))[1]
	}
	out, end := run("BRAID_SHORTEN=40 BRAID_SEEDS=" + strconv.Itoa(n) + " go test -v -run '^" + test + "$' .")
	if !strings.Contains(digits.ReplaceAllString(end, "0"), want) {
		t.Fatal(out)
	}
	list, again := page.FindStringSubmatch(out), command.FindStringSubmatch(out)
	if list == nil || again == nil || strings.Count(list[1], "\n") > 40 {
		t.Fatalf("no page, or no command: %s", out)
	}
	t.Log(list[0] + again[1])
	if out, second := run(again[1]); second != end {
		t.Fatalf("%q, and then %q: %s", end, second, out)
	}
}
