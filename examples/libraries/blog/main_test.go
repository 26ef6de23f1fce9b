package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braidgo/braid/fetch"
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

// The README shows the output, apart from the times.
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
				continue // two batches of one round may come in either order
			}
			if !strings.Contains(out, line) {
				t.Errorf("the README has %q, which is not in:\n%s", line, out)
			}
		}
	}
}

// If a statement fails in the middle, all posts that it should read get the error, and none has half of its data.
func TestAnErrorOfTheDatabase(t *testing.T) {
	db, err := openDatabase(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	b := newBlog(db, fetch.SourceOptions{MaxBatch: 500})
	if _, err := db.Exec(`update info set topic = null where post = 3`); err != nil {
		t.Fatal(err)
	}
	read := func(want string) {
		t.Helper()
		_ = fetch.Run(t.Context(), func(ctx context.Context) error {
			_, _ = b.info.All(ctx, []int{1, 2, 3, 4, 5})
			for k := 1; k <= 5; k++ {
				if p, err := b.info.Get(ctx, k); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("post %d: %v, %v", k, p, err)
				}
			}
			return nil
		}, fetch.Options{})
	}
	read("converting NULL to string")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	read("database is closed")
}
