package prose_test

import (
	"fmt"
	"io/fs"
	"maps"
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
