package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func output(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func page(t *testing.T, out string) string {
	t.Helper()
	from, to := strings.Index(out, "Popular:"), strings.LastIndex(out, "  What I think of topic 1\n")
	if from < 0 || to < 0 {
		t.Fatalf("no page in:\n%s", out)
	}
	return out[from:to]
}

func TestFourStatements(t *testing.T) {
	out := output(t)
	if n := strings.Count(out, "select "); n != 4 {
		t.Errorf("%d statements:\n%s", n, out)
	}
	for _, want := range []string{
		`blog: 3 rounds, 4 batches, 33 keys for 54 gets`,
		`(?m)^ 1  postIds +1 .* popular, main, topics  main.go:\d+, main.go:\d+$`,
		`(?m)^ 3  postContent +8 .* popular 5, main 3 +main.go:\d+, main.go:\d+$`,
		`why 3: postIds \(main.go:\d+\) → post(Views|Info) of 12 \(main.go:\d+\) → postContent \d+ \(main.go:\d+\)`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestSequentialAndReplay(t *testing.T) {
	want := page(t, output(t))
	out := output(t, "-sequential")
	if n := strings.Count(out, "select "); n != 33 || page(t, out) != want || !strings.HasSuffix(out, "\n33 statements\n") {
		t.Errorf("%d statements:\n%s", n, out)
	}
	file := filepath.Join(t.TempDir(), "answers.json")
	output(t, "-record", file)
	out = output(t, "-replay", file)
	if strings.Contains(out, "select ") || page(t, out) != want || !strings.HasSuffix(out, "\n0 statements for 54 gets\n") {
		t.Errorf("replayed:\n%s", out)
	}
	if err := run(t.Context(), []string{"-replay", file + ".missing"}, os.Stderr); err == nil {
		t.Error("a file that is missing was replayed")
	}
}

// The README shows the output, but for the times.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	times := regexp.MustCompile(`[ ▇]*▇[ ▇]*|\d+\.\d ms|\d+ µs`)
	out := times.ReplaceAllString(output(t), "")
	for line := range strings.Lines(times.ReplaceAllString(string(text), "")) {
		if strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "    go run") {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "why") || strings.HasPrefix(line, "select post,") || line == "" || regexp.MustCompile(`^\d? *post(Views|Info)`).MatchString(line) {
				continue // two batches of one round come in any order
			}
			if !strings.Contains(out, line) {
				t.Errorf("the README has %q, which is not in:\n%s", line, out)
			}
		}
	}
}
