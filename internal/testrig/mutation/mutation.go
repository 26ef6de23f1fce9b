// Package mutation checks that tests notice mistakes. It puts mistakes into packages, and activates one mistake in each run of the tests.
package mutation

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Mutant consists of six strings: its name, a file, a piece of text in the file, the replacement for this text, a pattern for the tests
// that must fail, and the tests' package. Comments are removed from the file first, and the text must not contain any, so that rewording a
// comment cannot break a mutant. If a local variable is renamed, the mutant usually follows, see renamed.go. If the pattern is empty, all
// tests are run. If the package is empty, it is the package in the folder root.
//
// In the replacement, IS is true if the mistake is active, is(IS) is 1 or 0, and gosched() calls runtime.Gosched. If the text contains a
// boolean expression between the brackets ⟦ and ⟧, the replacement is the value of this expression while the mistake is active.
type Mutant [6]string

func (m Mutant) name() string { return m[0] }
func (m Mutant) file() string { return m[1] }
func (m Mutant) text() string { return strings.NewReplacer("⟦", "", "⟧", "").Replace(m[2]) }
func (m Mutant) tests() string {
	if m[4] == "" {
		return "^Test"
	}
	return m[4]
}
func (m Mutant) pkg() string { return m[5] }

func (m Mutant) by() string {
	is := fmt.Sprintf("mutated(%q)", m.name())
	by := strings.ReplaceAll(m[3], "IS", is)
	if before, rest, ok := strings.Cut(m[2], "⟦"); ok {
		expr, after, _ := strings.Cut(rest, "⟧")
		by = before + "(" + is + " && (" + by + ") || !" + is + " && (" + expr + "))" + after
	}
	return by
}

// Variable is the environment variable that selects the mutants to run. Run sets the other environment variable to the name of the active
// mistake.
const (
	Variable = "BRAID_MUTANTS"
	which    = "BRAID_MUTANT"
)

// Run builds packages with all mistakes in them, and runs their tests for each mistake, with only this mistake active. Mutants that change
// the same lines go into different builds. File and package names are relative to root. flags are additional flags for the tests, such as
// -test.skip. If Variable is not set, Run only checks that the text of each mutant exists. The value "1" selects all mutants, and "k/n"
// selects every n-th mutant.
//
//	func TestMutants(t *testing.T) {
//		mutation.Run(t, ".", []mutation.Mutant{
//			{"a full queue is not reported", "serve.go", "	if full {", "	if full && !IS {", "TestFull"},
//		})
//	}
func Run(t *testing.T, root string, mutants []Mutant, flags ...string) {
	if os.Getenv(which) != "" {
		return // this process runs the tests of a mutant
	}
	mutants = upToDate(t, root, mutants)
	ran := 0
	for _, build := range apart(t, root, mutants) {
		Inject(t, root, build)
		some, err := share(build, os.Getenv(Variable))
		must(t, err)
		if ran += len(some); len(some) > 0 {
			runBuild(t, root, some, flags)
		}
	}
	t.Logf("%d of %d mutants were run; %s=1 runs all", ran, len(mutants), Variable)
}

// share returns the mutants that are selected by the given value of the environment variable.
func share(mutants []Mutant, value string) (some []Mutant, err error) {
	k, n := 0, 1
	switch value {
	case "":
		return nil, nil
	case "1":
	default:
		if _, err := fmt.Sscanf(value, "%d/%d", &k, &n); err != nil || k < 0 || n < 1 || value != fmt.Sprintf("%d/%d", k, n) {
			return nil, fmt.Errorf("%s is %q: it should be 1 for all mutants, or k/n for every n-th mutant", Variable, value)
		}
	}
	for i := k % n; i < len(mutants); i += n {
		some = append(some, mutants[i])
	}
	return some, nil
}

func runBuild(t *testing.T, root string, mutants []Mutant, flags []string) {
	dir, overlay := t.TempDir(), Overlay(t, root, mutants, source, nil)
	binary := func(m Mutant) string { return filepath.Join(dir, strings.ReplaceAll(m.pkg(), "/", "_")+".test") }
	run := func(m Mutant, name string, limit time.Duration) (string, error) {
		c := exec.Command(binary(m), append([]string{"-test.short", "-test.run=" + m.tests(), "-test.failfast", "-test.timeout=" + limit.String()}, flags...)...)
		c.Dir, c.Env = filepath.Join(root, m.pkg()), append(os.Environ(), which+"="+name)
		if name != "none" {
			c.Env = append(c.Env, "BRAID_DEADLINE=10s") // a mutant that hangs would otherwise take a minute
		}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	built, right := map[string]bool{}, map[[2]string]time.Duration{}
	for _, m := range mutants {
		t.Run(m.name(), func(t *testing.T) {
			if !built[m.pkg()] {
				built[m.pkg()] = true
				c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary(m), "./"+m.pkg())
				c.Dir = root
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", m.pkg(), err, out)
				}
			}
			what := [2]string{m.pkg(), m.tests()}
			if right[what] == 0 {
				began := time.Now()
				if out, err := run(m, "none", 2*time.Minute); err != nil || strings.Contains(out, "no tests to run") {
					t.Fatalf("without a mistake, %s: %v: %s", what, err, out)
				}
				right[what] = time.Since(began)
			}
			limit := 30*time.Second + 5*right[what]
			t.Parallel() // many mutants hang
			for range 3 {
				if _, err := run(m, m.name(), limit); err != nil { // some mistakes show only in an order that may be rare on a busy machine
					return
				}
			}
			t.Errorf("not noticed by %s", what)
		})
	}
}

const source = `
import (
	"os"
	"runtime"
)

var mutation = os.Getenv("` + which + `")

func mutated(name string) bool { return mutation == name }

func is(mutated bool) int { return map[bool]int{true: 1}[mutated] }

func gosched() { runtime.Gosched() }
`

// apart divides the mutants into builds, so that mutants that change the same lines are in different builds.
func apart(t *testing.T, root string, mutants []Mutant) (builds [][]Mutant) {
	type span struct {
		file     string
		from, to int
	}
	var taken [][]span
	for _, m := range mutants {
		from := strings.Index(read(t, root, m), m.text())
		s := span{m.file(), from, from + len(m.text())}
		i := slices.IndexFunc(taken, func(some []span) bool {
			return !slices.ContainsFunc(some, func(o span) bool { return o.file == s.file && s.from < o.to && o.from < s.to })
		})
		if i < 0 {
			i, builds, taken = len(builds), append(builds, nil), append(taken, nil)
		}
		builds[i], taken[i] = append(builds[i], m), append(taken[i], s)
	}
	return builds
}

// Inject returns the text of each mutated file with all mistakes in it. The test fails if a mutant's text does not occur exactly once in
// its file.
func Inject(t *testing.T, root string, mutants []Mutant) map[string]string {
	texts, named := map[string]string{}, map[string]bool{}
	for _, m := range upToDate(t, root, mutants) {
		if texts[m.file()] == "" {
			texts[m.file()] = read(t, root, m)
		}
		if _, err := os.Stat(filepath.Join(root, m.pkg())); err != nil {
			t.Errorf("%s: its tests have moved: %v", m.name(), err)
		}
		if n := strings.Count(texts[m.file()], m.text()); n != 1 || named[m.name()] {
			t.Errorf("%s: change the mutant: %s has %d of\n%s", m.name(), m.file(), n, m.text())
		}
		texts[m.file()] = strings.Replace(texts[m.file()], m.text(), m.by(), 1)
		named[m.name()] = true
	}
	return texts
}

// Overlay writes the mutated files and a list of them for go test -overlay, and returns the list's file name. Each mutated package also
// gets the code in the argument source, which must declare a function named mutated that reports whether a mistake is active. The argument
// more contains additional files.
func Overlay(t *testing.T, root string, mutants []Mutant, source string, more map[string]string) (list string) {
	root, err := filepath.Abs(root)
	must(t, err)
	dir, replace := t.TempDir(), map[string]string{}
	write := func(file, text string) {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		must(t, os.WriteFile(at, []byte(text), 0o600))
		replace[filepath.Join(root, file)] = at
	}
	for file, text := range Inject(t, root, mutants) {
		write(file, text)
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
		must(t, err)
		write(filepath.Join(filepath.Dir(file), "zz_mutated.go"), "package "+f.Name.Name+"\n"+source)
	}
	for file, text := range more {
		write(file, text)
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	list = filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(list, b, 0o600))
	return list
}

// read returns the source file of m without comments.
func read(t *testing.T, root string, m Mutant) string {
	b, err := os.ReadFile(filepath.Join(root, m.file()))
	must(t, err)
	return withoutComments(string(b))
}

// withoutComments returns the source of a Go file without comments and without lines that have only a comment, but with its directives.
func withoutComments(src string) string {
	var code strings.Builder
	var s scanner.Scanner
	files, done := token.NewFileSet(), 0
	file := files.AddFile("", files.Base(), len(src))
	s.Init(file, []byte(src), nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return code.String() + src[done:]
		}
		if tok != token.COMMENT || strings.HasPrefix(text, "//go:") {
			continue
		}
		from := file.Offset(pos)
		before := strings.TrimRight(src[done:from], " \t")
		done = from + len(text)
		if strings.HasSuffix(before, "\n") && strings.HasPrefix(src[done:], "\n") {
			done++ // the line has no code
		}
		code.WriteString(before)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
