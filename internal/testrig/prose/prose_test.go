package prose_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/prose"
)

// limit is the share of sentences, in percent, that may match a pattern.
const limit = 2

// TestProse counts the sentences in comments and documents that break the rules of CONTRIBUTING.md.
func TestProse(t *testing.T) {
	const root = "../../.."
	scores := map[string]*prose.Score{}
	score := func(name string) *prose.Score {
		if scores[name] == nil {
			scores[name] = new(prose.Score)
		}
		return scores[name]
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(file, root), string(filepath.Separator)))
		switch {
		case d.IsDir():
			if name != "" && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go"):
			return score(filepath.ToSlash(filepath.Dir(name))).Go(file)
		case strings.HasSuffix(name, ".md"):
			return score(name).Markdown(file)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(scores), 30, "where is the repository?")

	var all prose.Score
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		s := scores[name]
		all.Sentences += s.Sentences
		all.Hits = append(all.Hits, s.Hits...)
		allowed := max(1, limit*s.Sentences/100) // one in a small package
		t.Logf("%5.1f %%  %4d of %4d  %s", s.Percent(), len(s.Hits), s.Sentences, name)
		if len(s.Hits) <= allowed {
			continue
		}
		var b strings.Builder
		for _, h := range s.Hits {
			fmt.Fprintf(&b, "\n%s:%d: %s: %s", filepath.ToSlash(strings.TrimPrefix(h.File, root+string(filepath.Separator))), h.Line, h.Pattern, h.Sentence)
		}
		t.Errorf("%s: %d of %d sentences break a rule of CONTRIBUTING.md, at most %d may:%s", name, len(s.Hits), s.Sentences, allowed, b.String())
	}
	t.Logf("%5.1f %%  %4d of %4d  everything", all.Percent(), len(all.Hits), all.Sentences)
}

// The limits of all comments together, and of all pages, in percent. The aims were 3, 5 and 4; TestHabits measures the standard library
// beside ours.
const (
	habits    = 1.5 // of sentences
	fragments = 2.0 // of comments behind code
	purposes  = 5.0 // of sentences
)

// TestHabits measures the comments of all files that are no tests, and the pages.
func TestHabits(t *testing.T) {
	const root = "../../.."
	var ours, pages prose.Score
	packages := map[string]*prose.Score{}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(file, ".md") && filepath.Base(file) != "CHANGELOG.md" && filepath.Base(file) != "tried.md":
			in := filepath.ToSlash(strings.TrimPrefix(file, root))
			packages[in] = new(prose.Score)
			return errors.Join(packages[in].Markdown(file), pages.Markdown(file))
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		in := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), root))
		if packages[in] == nil {
			packages[in] = new(prose.Score)
		}
		return errors.Join(packages[in].Go(file), ours.Go(file))
	}))
	show := os.Getenv("BRAID_PROSE") // a package whose hits are listed
	for _, in := range slices.Sorted(maps.Keys(packages)) {
		s := packages[in]
		t.Logf("%5.1f %% habits, %5.1f %% fragments of %4d, %5.1f %% purposes of %4d  %s", percent(len(s.Habits), s.Sentences), percent(len(s.Fragments), s.Tails),
			s.Tails, percent(s.Purposes, s.Sentences), s.Sentences, in)
		for _, h := range append(s.Habits, s.Fragments...) {
			if show != "" && strings.Trim(in, "/") == show {
				t.Logf("%s:%d: %s: %s", h.File, h.Line, h.Pattern, h.Sentence)
			}
		}
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	var theirs prose.Score
	for _, in := range []string{"context", "sync", "net/http", "os"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "src", filepath.FromSlash(in), "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, theirs.Go(file))
		}
	}
	for name, s := range map[string]*prose.Score{"the library": &ours, "the pages": &pages, "the standard library": &theirs} {
		t.Logf("%s: %.1f %% habits, %.1f %% fragments, %.1f %% purposes", name, percent(len(s.Habits), s.Sentences), percent(len(s.Fragments), s.Tails),
			percent(s.Purposes, s.Sentences))
	}
	require.Less(t, percent(len(theirs.Habits), theirs.Sentences), 2.0, "a habit is plain English")
	require.Less(t, percent(len(theirs.Fragments), theirs.Tails), 9.0, "a fragment is plain English")
	require.LessOrEqual(t, percent(len(ours.Habits), ours.Sentences), habits)
	require.LessOrEqual(t, percent(len(ours.Fragments), ours.Tails), fragments)
	require.GreaterOrEqual(t, percent(ours.Purposes, ours.Sentences), purposes)
	require.LessOrEqual(t, percent(len(pages.Habits), pages.Sentences), habits)
	require.GreaterOrEqual(t, percent(pages.Purposes, pages.Sentences), purposes)
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

// TestControl measures packages whose English is the standard. A pattern that hits them would be wrong.
func TestControl(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	for _, pkg := range []string{"context", "iter", "sync", "testing/synctest"} {
		var s prose.Score
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "src", filepath.FromSlash(pkg), "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, s.Go(file))
		}
		require.Greater(t, s.Sentences, 100, pkg)
		require.LessOrEqual(t, s.Percent(), 1.0, pkg)
	}
}

// TestPatterns checks that each habit is found, and that similar plain sentences are not.
func TestPatterns(t *testing.T) {
	score := func(comment string) int {
		var s prose.Score
		s.Text(comment)
		return len(s.Hits)
	}
	for _, bad := range []string{
		"Who ends a context leaves the reason in the list.",
		"It goes to whoever asks.",
		"A Task is where what is needed lies.",
		"A scheduler has the next one fetched.",
		"Of all waiters, the last one wins.",
		"A value is kept for ever.",
		"The caller asks if that is done.",
	} {
		require.Equal(t, 1, score(bad), bad)
	}
	for _, good := range []string{
		"Cancelling a context stores its error in the list.",
		"The task has been resumed by then.",
		"Await returns the value once it has been called.",
		"Done reports whether the context has ended.",
	} {
		require.Zero(t, score(good), good)
	}
}
