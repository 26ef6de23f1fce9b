// Package mutation makes mistakes in a package, one at a time, and runs the package's tests, which have to notice each.
package mutation

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Mutant is its name, a file of the package, the text in it, what replaces the text, and a pattern of the tests that notice. Without a
// pattern, all tests are run. IS in the replacement stands for whether the mistake is made; is(IS) is 1 or 0, and
// gosched() is runtime.Gosched().
type Mutant [5]string

func (m Mutant) name() string { return m[0] }
func (m Mutant) file() string { return m[1] }
func (m Mutant) text() string { return m[2] }
func (m Mutant) by() string {
	return strings.ReplaceAll(m[3], "IS", fmt.Sprintf("mutated(%q)", m.name()))
}

func (m Mutant) tests() string {
	if m[4] == "" {
		return "^Test"
	}
	return m[4]
}

// The variables by which the tests are told: to run mutants at all, and which mistake to make.
const (
	Variable = "BRAID_MUTANTS"
	which    = "BRAID_MUTANT"
)

// Run builds the package in the working directory with all mistakes in it, and runs its tests with one at a time. Mutants of the same
// lines go into different builds. flags are further flags of the tests, such as -test.skip. Without Variable, Run only looks whether the
// lines of the mutants are there.
//
//	func TestMutants(t *testing.T) {
//		mutation.Run(t, []mutation.Mutant{
//			{"a full queue is silent", "serve.go", "	if full {", "	if full && !IS {", "TestFull"},
//		})
//	}
func Run(t *testing.T, mutants []Mutant, flags ...string) {
	if os.Getenv(which) != "" {
		return // it is one of them
	}
	texts := map[string]string{}
	for _, m := range mutants {
		if texts[m.file()] == "" {
			b, err := os.ReadFile(m.file())
			must(t, err)
			texts[m.file()] = string(b)
		}
		if n := strings.Count(texts[m.file()], m.text()); n != 1 {
			t.Fatalf("%s: %s has it %d times: %s", m.name(), m.file(), n, m.text())
		}
	}
	if os.Getenv(Variable) == "" {
		t.Logf("%d mutants, which %s=1 builds and runs", len(mutants), Variable)
		return
	}
	for i, some := range apart(texts, mutants) {
		binary := build(t, fmt.Sprint("build", i), texts, some)
		run := func(name, tests string) (string, error) {
			c := exec.Command(binary, append([]string{"-test.short", "-test.run=" + tests, "-test.timeout=2m", "-test.failfast"}, flags...)...)
			c.Env = append(os.Environ(), which+"="+name)
			out, err := c.CombinedOutput()
			return string(out), err
		}
		right := map[string]bool{}
		for _, m := range some {
			if !right[m.tests()] {
				right[m.tests()] = true
				if out, err := run("none", m.tests()); err != nil || strings.Contains(out, "no tests to run") {
					t.Fatalf("without a mistake, %s: %v: %s", m.tests(), err, out)
				}
			}
		}
		for _, m := range some {
			t.Run(m.name(), func(t *testing.T) {
				t.Parallel() // many of them hang
				for range 3 {
					if _, err := run(m.name(), m.tests()); err != nil { // some need an order that a busy machine may not offer at once
						return
					}
				}
				t.Errorf("not noticed by %s", m.tests())
			})
		}
	}
}

// apart divides mutants, so that no two of the same lines are together.
func apart(texts map[string]string, mutants []Mutant) (builds [][]Mutant) {
	for _, m := range mutants {
		i := slices.IndexFunc(builds, func(some []Mutant) bool {
			return !slices.ContainsFunc(some, func(o Mutant) bool {
				at, of := strings.Index(texts[m.file()], m.text()), strings.Index(texts[m.file()], o.text())
				return o.file() == m.file() && at < of+len(o.text()) && of < at+len(m.text())
			})
		})
		if i < 0 {
			i, builds = len(builds), append(builds, nil)
		}
		builds[i] = append(builds[i], m)
	}
	return builds
}

// build returns a binary of the tests with these mistakes in the package.
func build(t *testing.T, name string, texts map[string]string, mutants []Mutant) (binary string) {
	f, err := parser.ParseFile(token.NewFileSet(), mutants[0].file(), nil, parser.PackageClauseOnly)
	must(t, err)
	mutated := map[string]string{"zz_mutated.go": "package " + f.Name.Name + `

import (
	"os"
	"runtime"
)

var mutation = os.Getenv("` + which + `")

func mutated(name string) bool { return mutation == name }

func is(mutated bool) int { return map[bool]int{true: 1}[mutated] }

func gosched() { runtime.Gosched() }
`}
	at := func(m Mutant) int { return strings.Index(texts[m.file()], m.text()) }
	slices.SortFunc(mutants, func(a, b Mutant) int { return at(b) - at(a) }) // from the end, so that none moves another
	for _, m := range mutants {
		if mutated[m.file()] == "" {
			mutated[m.file()] = texts[m.file()]
		}
		text := mutated[m.file()]
		mutated[m.file()] = text[:at(m)] + m.by() + text[at(m)+len(m.text()):]
	}
	here, err := os.Getwd()
	must(t, err)
	dir, replace := t.TempDir(), map[string]string{}
	for file, text := range mutated {
		to := filepath.Join(dir, file)
		must(t, os.WriteFile(to, []byte(text), 0o600))
		replace[filepath.Join(here, file)] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	binary = filepath.Join(dir, name)
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
