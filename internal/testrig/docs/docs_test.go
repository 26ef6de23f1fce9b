// Package docs checks the code, the links and the commands in the documents.
package docs

import (
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// files returns the paths of the repository's files with the given ending, from its root.
func files(t *testing.T, ending string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(file, ending) {
			names = append(names, filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))))
		}
		return nil
	}))
	require.NotEmpty(t, names)
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

var block = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// normal removes indentation and alignment, which may differ between a document and the code that it shows.
func normal(code string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(code), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestCode checks that each block of Go in a document is part of an example, which is compiled and run. Indentation does not
// count.
func TestCode(t *testing.T) {
	var examples []string
	for _, name := range files(t, ".go") {
		if strings.HasPrefix(name, "examples/") || strings.HasSuffix(name, "_test.go") && strings.Contains(path.Base(name), "example") {
			examples = append(examples, "\n"+normal(read(t, name))+"\n")
		}
	}
	blocks := 0
	for _, name := range files(t, ".md") {
		for _, m := range block.FindAllStringSubmatch(read(t, name), -1) {
			blocks++
			code := "\n" + normal(m[1]) + "\n"
			found := slices.ContainsFunc(examples, func(text string) bool { return strings.Contains(text, code) })
			require.True(t, found, "%s shows code that no example has:\n%s", name, m[1])
			if strings.Contains(code, "\nfunc main() {") {
				require.True(t, strings.HasPrefix(m[1], "package main\n"), "%s shows a program that is not complete:\n%s", name, m[1])
			}
		}
	}
	require.GreaterOrEqual(t, blocks, 4, "no code was found in README.md")
}

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// TestTutorials checks that the declarations of a tutorial are complete: in a file of their own, they use no name that the page
// does not show.
func TestTutorials(t *testing.T) {
	for tutorial, example := range map[string]string{"scheduler": "scheduler", "primitive": "primitive", "cancellation": "cancellation", "javascript": "libraries/javascript", "gui": "gui"} {
		known := map[string]bool{}
		for _, name := range files(t, ".go") {
			if path.Dir(name) != "examples/"+example {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ImportsOnly)
			require.NoError(t, err)
			for _, i := range f.Imports {
				imported := majorVersion.ReplaceAllString(strings.Trim(i.Path.Value, `"`), "")
				known[path.Base(imported)] = true
			}
		}
		require.NotEmpty(t, known)
		name := "docs/" + tutorial + ".md"
		text := "package tutorial\n"
		for _, m := range block.FindAllStringSubmatch(read(t, name), -1) {
			if f, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+m[1], 0); err == nil && len(f.Decls) > 0 {
				text += m[1]
			}
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		require.Greater(t, len(f.Decls), 4, name)
		for _, id := range f.Unresolved {
			if types.Universe.Lookup(id.Name) == nil && !known[id.Name] {
				t.Errorf("%s uses %s and does not show it", name, id.Name)
			}
		}
	}
}

var (
	indented = regexp.MustCompile(`(?m)(?:^    .*\n)+`)
	explored = regexp.MustCompile(`explored: |of the exploration`)
	command  = regexp.MustCompile(`(?m)^ *\$ .*\n`)
	seconds  = regexp.MustCompile(`\([0-9.]+s\)`)
)

// TestOutput runs the tests of the examples whose explorations a document shows, and checks that their output has each such
// report: the number of runs, the steps, the lines of the code. Indentation and seconds do not count.
func TestOutput(t *testing.T) {
	printed := map[string]string{}
	reports := 0
	for _, name := range files(t, ".md") {
		for _, report := range indented.FindAllString(read(t, name), -1) {
			if !explored.MatchString(report) {
				continue
			}
			reports++
			example := strings.TrimSuffix(path.Base(name), ".md")
			if printed[example] == "" {
				cmd := exec.Command("go", "test", "-v", "-count=1", "./examples/"+example)
				cmd.Dir = root
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s has a report, so ./examples/%s must print it: %s", name, example, out)
				printed[example] = seconds.ReplaceAllString(normal(string(out)), "") + "\n"
			}
			want := seconds.ReplaceAllString(normal(command.ReplaceAllString(report, "")), "") + "\n"
			require.Contains(t, printed[example], want, "%s shows what go test -v ./examples/%s does not print", name, example)
		}
	}
	require.GreaterOrEqual(t, reports, 4, "no reports of Explore were found")
}

var lineNumber = regexp.MustCompile(`(_test)?\.go:[0-9]+`)

// TestPrimitiveInAnEmptyModule follows docs/primitive.md: its blocks, pasted into a new module, print the reports that it shows,
// except for line numbers. The imports are copied from the example, as goimports would add them.
func TestPrimitiveInAnEmptyModule(t *testing.T) {
	text, dir := read(t, "docs/primitive.md"), t.TempDir()
	code, tests, ok := strings.Cut(text, "## 4. ")
	require.True(t, ok)
	for name, text := range map[string]string{"box.go": code, "box_test.go": tests} {
		head, _, ok := strings.Cut(read(t, "examples/primitive/"+name), "\n)\n")
		require.True(t, ok)
		head = "package box\n" + head[strings.Index(head, "import ("):] + "\n)\n"
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			head += "\n" + m[1]
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(head), 0o600))
	}
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	printed := ""
	for _, command := range []string{
		"go mod init example.com/box",
		"go mod edit -require=github.com/braidgo/braid@v0.0.0 -replace=github.com/braidgo/braid=" + here,
		"go mod tidy",
		"go test -v -count=1 .",
	} {
		shown := strings.ReplaceAll(command, here, "../braid")
		require.Contains(t, text, strings.ReplaceAll(shown, " -count=1", ""))
		args := strings.Fields(command)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		printed = string(out)
	}
	plain := func(s string) string {
		return lineNumber.ReplaceAllString(seconds.ReplaceAllString(normal(command.ReplaceAllString(s, "")), ""), "$1.go:N")
	}
	reports := 0
	for _, report := range indented.FindAllString(text, -1) {
		if explored.MatchString(report) {
			reports++
			require.Contains(t, plain(printed), plain(report))
		}
	}
	require.Equal(t, 2, reports)
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
var code = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
var heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)

// anchor returns the anchor that GitHub makes from a heading.
func anchor(heading string) string {
	heading = strings.ToLower(strings.ReplaceAll(heading, "`", ""))
	return strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(heading, ""), " ", "-")
}

// TestLinks checks that the links in documents to files and headings of the repository exist.
func TestLinks(t *testing.T) {
	links := 0
	for _, name := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, name), ""), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(target)))
			require.NoError(t, err, "%s links to %s", name, to)
			if fragment != "" && strings.HasSuffix(target, ".md") {
				var anchors []string
				for _, h := range heading.FindAllStringSubmatch(read(t, target), -1) {
					anchors = append(anchors, anchor(h[1]))
				}
				require.Contains(t, anchors, fragment, "%s links to %s", name, to)
			}
		}
	}
	require.GreaterOrEqual(t, links, 10)
}

var (
	decided  = regexp.MustCompile(`(?m)^\| (?:how|when|whether|which) .* \| (.+) \| (.+) \|$`)
	name     = regexp.MustCompile("`([a-zA-Z]+)`")
	fileLink = regexp.MustCompile(`\]\(([^)]+\.go)\)`)
)

// TestDecided checks that the functions in the table of CONTRIBUTING.md are declared in the files that the table names.
func TestDecided(t *testing.T) {
	rows := decided.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1)
	require.GreaterOrEqual(t, len(rows), 9)
	for _, row := range rows {
		text := ""
		for _, file := range fileLink.FindAllStringSubmatch(row[2], -1) {
			text += read(t, file[1])
		}
		functions := name.FindAllStringSubmatch(row[1], -1)
		require.NotEmpty(t, functions, row[0])
		for _, f := range functions {
			require.Regexp(t, `(?m)^func (\(.+\) )?`+f[1]+`[\[(]`, text, row[0])
		}
	}
}

var (
	essayStep = regexp.MustCompile(`(?m)^//  ?([0-9]+)\. `)
	codeStep  = regexp.MustCompile(`(?m)^\t+// Steps? ([0-9]+)(?: and ([0-9]+))?[ .,]`)
)

// TestSteps checks that the code has the number of each step of an essay, so that a reader finds the way from one to the other.
func TestSteps(t *testing.T) {
	for _, essay := range []string{"suspend/select.go", "fetch/schedule.go", "stage/do.go", "actor/mailbox.go"} {
		var steps, marked []string
		for _, m := range essayStep.FindAllStringSubmatch(read(t, essay), -1) {
			steps = append(steps, m[1])
		}
		require.GreaterOrEqual(t, len(steps), 9, essay)
		for _, name := range files(t, ".go") {
			if path.Dir(name) == path.Dir(essay) {
				for _, m := range codeStep.FindAllStringSubmatch(read(t, name), -1) {
					marked = append(marked, m[1:]...)
				}
			}
		}
		require.Subset(t, marked, steps, "the steps of %s that the code marks", essay)
	}
}

var (
	mention  = regexp.MustCompile("`((?:[a-z]+/)*)([a-z]+)\\.([A-Z][A-Za-z0-9]*)")
	exported = regexp.MustCompile(`(?m)^(?:[a-z]+/)*([a-z]+): (?:func|type|var|const) (?:\([a-z]+ \*?([A-Za-z]+)[^)]*\) )?([A-Za-z0-9]+)`)
)

// TestNames checks that the names of Braid's packages that a document mentions are exported.
func TestNames(t *testing.T) {
	known, packages := map[string]bool{}, map[string]bool{}
	for _, m := range exported.FindAllStringSubmatch(read(t, "internal/testrig/api/v0.txt"), -1) {
		packages[m[1]] = true
		known[m[1]+"."+m[3]] = true
	}
	delete(packages, "atomic") // usually sync/atomic
	mentions := 0
	for _, name := range files(t, ".md") {
		for _, m := range mention.FindAllStringSubmatch(read(t, name), -1) {
			if packages[m[2]] && !strings.HasPrefix(m[1], "x/") {
				mentions++
				if !known[m[2]+"."+m[3]] {
					t.Errorf("%s mentions %s.%s, which is not exported", name, m[2], m[3])
				}
			}
		}
	}
	require.Greater(t, mentions, 100)
}

var exampleRow = regexp.MustCompile("(?m)^\\| \\[([^\\]]+)\\]\\(([^)]+)\\) \\| `([^`]+)` \\| .+ \\|$")

// TestExamples compares the index of the examples with their folders. The command of a row is the command that the example itself names, in a
// comment or in its README, and it runs this example.
func TestExamples(t *testing.T) {
	texts := map[string]string{} // by folder
	for _, name := range files(t, ".go") {
		if strings.HasPrefix(name, "examples/") {
			texts[path.Dir(name)] += read(t, name)
		}
	}
	for _, name := range files(t, "README.md") {
		if texts[path.Dir(name)] != "" {
			texts[path.Dir(name)] += read(t, name)
		}
	}
	require.Greater(t, len(texts), 20)
	shown := map[string]bool{}
	for _, m := range exampleRow.FindAllStringSubmatch(read(t, "examples/README.md"), -1) {
		folder, command := "examples/"+m[2], m[3]
		require.Equal(t, m[1], m[2])
		require.Contains(t, texts, folder, "examples/README.md names %s", folder)
		require.False(t, shown[folder], folder)
		shown[folder] = true
		at, does, moves := strings.Cut(command, " && ")
		if !moves {
			at, does = "", command
		}
		require.Regexp(t, `(?m)^(//\s+|\s*)(cd \S+ && )?`+regexp.QuoteMeta(does)+`(\s|$)`, texts[folder], "%s does not name the command %s", folder, does)
		if moves {
			require.Equal(t, "cd "+folder, at)
		} else {
			require.Regexp(t, `^go (run|test -v) \./`+folder+`( |$)`, does)
		}
	}
	for folder := range texts {
		require.True(t, shown[folder], "examples/README.md has no row for %s", folder)
	}
}
