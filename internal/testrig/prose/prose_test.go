package prose_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/prose"
)

// limit is the share of sentences, in percent, that may match a pattern.
const limit = 2

const root = "../../.."

// scores holds the score of each comment or page of the repository, by file.
var scores = sync.OnceValues(func() (map[string]*prose.Score, error) {
	all := map[string]*prose.Score{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(file, root), string(filepath.Separator)))
		s := new(prose.Score)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "" && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go"):
			err = s.Go(file)
		case strings.HasSuffix(name, ".md"):
			err = s.Markdown(file)
		}
		all[name] = s
		return err
	})
	return all, err
})

// folders adds up the scores of the Go files of each folder. A page has a score of its own. skip reports which files to leave
// out.
func folders(t *testing.T, skip func(file string) bool) map[string]*prose.Score {
	files, err := scores()
	require.NoError(t, err)
	sums := map[string]*prose.Score{}
	for file, s := range files {
		if s.Sentences == 0 || skip(file) {
			continue
		}
		name := file
		if strings.HasSuffix(file, ".go") {
			name = path.Dir(file)
		}
		if sums[name] == nil {
			sums[name] = new(prose.Score)
		}
		sums[name].Add(s)
	}
	return sums
}

// TestProse counts the sentences in comments and documents that break the rules of CONTRIBUTING.md.
func TestProse(t *testing.T) {
	scores := folders(t, func(string) bool { return false })
	require.Greater(t, len(scores), 30, "where is the repository?")

	var all prose.Score
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		s := scores[name]
		all.Add(s)
		allowed := max(1, limit*s.Sentences/100) // a small package may have one
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

// These are the limits of all comments together, and of all pages, in percent. TestHabits also measures the standard library,
// for comparison.
const (
	habits    = 1.5 // percent of the sentences
	fragments = 2.0 // percent of the comments behind code
	purposes  = 5.0 // percent of the sentences
)

// TestHabits measures the comments of all files except tests, and the pages.
func TestHabits(t *testing.T) {
	packages := folders(t, func(file string) bool {
		return strings.HasSuffix(file, "_test.go") || path.Base(file) == "CHANGELOG.md" || path.Base(file) == "tried.md"
	})
	var ours, pages prose.Score
	show := os.Getenv("BRAID_PROSE") // the package whose hits are listed
	for _, in := range slices.Sorted(maps.Keys(packages)) {
		s := packages[in]
		if strings.HasSuffix(in, ".md") {
			pages.Add(s)
		} else {
			ours.Add(s)
		}
		t.Logf("%5.1f %% habits, %5.1f %% fragments of %4d, %5.1f %% purposes of %4d  %s", percent(len(s.Habits), s.Sentences), percent(len(s.Fragments), s.Tails),
			s.Tails, percent(s.Purposes, s.Sentences), s.Sentences, in)
		for _, h := range append(s.Habits, s.Fragments...) {
			if in == show {
				t.Logf("%s:%d: %s: %s", h.File, h.Line, h.Pattern, h.Sentence)
			}
		}
	}
	var theirs prose.Score
	for _, pkg := range []string{"context", "sync", "os"} {
		theirs.Add(standard(t, pkg))
	}
	for name, s := range map[string]*prose.Score{"the library": &ours, "the pages": &pages, "the standard library": &theirs} {
		t.Logf("%s: %.1f %% habits, %.1f %% fragments, %.1f %% purposes", name, percent(len(s.Habits), s.Sentences), percent(len(s.Fragments), s.Tails),
			percent(s.Purposes, s.Sentences))
	}
	require.Less(t, percent(len(theirs.Habits), theirs.Sentences), 2.0, "the pattern of a habit matches plain English")
	require.Less(t, percent(len(theirs.Fragments), theirs.Tails), 9.0, "the pattern of a fragment matches plain English")
	require.LessOrEqual(t, percent(len(ours.Habits), ours.Sentences), habits)
	require.LessOrEqual(t, percent(len(ours.Fragments), ours.Tails), fragments)
	require.GreaterOrEqual(t, percent(ours.Purposes, ours.Sentences), purposes)
	require.LessOrEqual(t, percent(len(pages.Habits), pages.Sentences), habits)
	require.GreaterOrEqual(t, percent(pages.Purposes, pages.Sentences), purposes)
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

var goroot = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out)), err
})

// standard returns the score of a package of the standard library.
func standard(t *testing.T, pkg string) *prose.Score {
	dir, err := goroot()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "src", filepath.FromSlash(pkg), "*.go"))
	require.NoError(t, err)
	s := new(prose.Score)
	for _, file := range files {
		require.NoError(t, s.Go(file))
	}
	return s
}

// TestControl measures packages whose English sets the standard. A pattern that matches them often would be wrong.
func TestControl(t *testing.T) {
	for _, pkg := range []string{"context", "iter", "sync", "testing/synctest"} {
		s := standard(t, pkg)
		require.Greater(t, s.Sentences, 100, pkg)
		require.LessOrEqual(t, s.Percent(), 1.0, pkg)
	}
}

// TestPatterns checks that the patterns find each habit, and do not match similar plain sentences.
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
