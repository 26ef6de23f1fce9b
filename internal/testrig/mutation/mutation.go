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
	"strings"
	"testing"
)

// A Mutant is its name, a file of the package, the text in it, what replaces the text, and a pattern of the tests that notice. IS in the
// replacement stands for whether the mistake is made.
type Mutant [5]string

type mutant struct{ name, file, before, after, tests string }

// The variables by which the tests are told: to run mutants at all, and which mistake to make.
const (
	Variable = "BRAID_MUTANTS"
	which    = "BRAID_MUTANT"
)

// Run builds the package in the working directory with all mistakes in it, and runs its tests with one at a time. Without Variable it
// only looks whether the lines of the mutants are there.
func Run(t *testing.T, list []Mutant) {
	if os.Getenv(which) != "" {
		return // it is one of them
	}
	var mutants []mutant
	for _, m := range list {
		mutants = append(mutants, mutant{m[0], m[1], m[2], m[3], m[4]})
	}
	texts := map[string]string{}
	for _, m := range mutants {
		text, ok := texts[m.file]
		if !ok {
			b, err := os.ReadFile(m.file)
			must(t, err)
			text = string(b)
		}
		if n := strings.Count(text, m.before); n != 1 {
			t.Fatalf("%s: %s has it %d times: %s", m.name, m.file, n, m.before)
		}
		texts[m.file] = strings.Replace(text, m.before, strings.ReplaceAll(m.after, "IS", fmt.Sprintf("mutated(%q)", m.name)), 1)
	}
	if os.Getenv(Variable) == "" {
		t.Logf("%d mutants, which %s=1 builds and runs", len(mutants), Variable)
		return
	}
	here, err := os.Getwd()
	must(t, err)
	dir, replace := t.TempDir(), map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), mutants[0].file, nil, parser.PackageClauseOnly)
	must(t, err)
	texts["zz_mutated.go"] = "package " + f.Name.Name + "\n\nimport \"os\"\n\nvar mutation = os.Getenv(\"" + which + "\")\n\n" +
		"func mutated(name string) bool { return mutation == name }\n"
	for name, text := range texts {
		at := filepath.Join(dir, name)
		must(t, os.WriteFile(at, []byte(text), 0o600))
		replace[filepath.Join(here, name)] = at
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	binary := filepath.Join(dir, "mutants.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(name, tests string) (string, error) {
		c := exec.Command(binary, "-test.run", tests, "-test.timeout=40s", "-test.failfast")
		c.Env = append(os.Environ(), which+"="+name)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	right := map[string]bool{}
	for _, m := range mutants {
		if !right[m.tests] {
			right[m.tests] = true
			if out, err := run("none", m.tests); err != nil || strings.Contains(out, "no tests to run") {
				t.Fatalf("without a mistake, %s: %v: %s", m.tests, err, out)
			}
		}
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // many of them hang
			for range 3 {
				if _, err := run(m.name, m.tests); err != nil { // some need an order that a busy machine may not offer at once
					return
				}
			}
			t.Errorf("not noticed by %s", m.tests)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
