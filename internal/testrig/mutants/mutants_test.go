//go:build mutants

// Package mutants_test makes mistakes in the primitives, one at a time, and runs the tests that must notice. The mistakes
// that an interleaving shows are in package explore; these leave something behind, or need a context that panics.
package mutants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant replaces old by changed in file. Wrong stands for the condition that the mutant is on.
type mutant struct {
	name, file   string
	old, changed string
	pkg, tests   string // which notice
}

const (
	integration = "internal/testrig/integration"
	retains     = "TestNoPrimitiveRetainsAValue"
	ties        = "TestNoPrimitiveRetainsATask"
	panics      = "TestAPanickyContext"
)

var mutants = []mutant{
	{"a combination that has ended follows on", "promise/combine.go", "		c.futures[i].unfollow(&c.ties[i])", "		if !Wrong {\n			c.futures[i].unfollow(&c.ties[i])\n		}", "promise", "TestACombinationLeaves"},
	{"a combination that is performed follows on", "promise/combine.go", "		c.Drop()\n		return result", "		if !Wrong {\n			c.Drop()\n		}\n		return result", "promise", "TestACombinationLeaves"},
	{"a future is counted again", "promise/combine.go", "	if c.seen[i] ||", "	if c.seen[i] && !Wrong ||", "promise", "TestACombinationIsLookedAt"},
	{"a combination decides again", "promise/combine.go", " || c.decided {", " || c.decided && !Wrong {", "promise", "TestCombinations"},
	{"a combination keeps the slice of the caller", "promise/combine.go", "		if f != nil {\n", "		if Wrong && f != nil {\n			defer clear(futures)\n		}\n		if f != nil {\n", "promise", "TestCombinationsKeep"},
	{"a received value stays in the buffer", "chanx/chanx.go", "		v, c.ring[c.first] = c.ring[c.first], v", "		if Wrong {\n			v = c.ring[c.first]\n		} else {\n			v, c.ring[c.first] = c.ring[c.first], v\n		}", integration, retains},
	{"a cancelled sender leaves its value", "chanx/chanx.go", "{ s.senders.Remove(r) }", "{\n	if !Wrong {\n		s.senders.Remove(r)\n	}\n}", integration, retains},
	{"Lazily is honoured with a buffer", "chanx/chanx.go", "(*recv[T])(c), !c.buffered)", "(*recv[T])(c), Wrong || !c.buffered)", "chanx", "TestWithABuffer"},
	{"a taken value stays in the MVar", "mvar/mvar.go", "	v = m.value\n	if m.value, ok =", "	v = m.value\n	if Wrong {\n		defer func() { m.value = v }()\n	}\n	if m.value, ok =", integration, retains},
	{"a cancelled case stays with its mutex", "mutex/mutex.go", "{ s.waiters.Remove(r) }", "{\n	if !Wrong {\n		s.waiters.Remove(r)\n	}\n}", integration, ties + "/mutex"},
	{"a cancelled writer stays with its lock", "internal/gate/gate.go", "	r.waiters.Remove(w)\n", "	if !Wrong {\n		r.waiters.Remove(w)\n	}\n", integration, ties + "/rwmutex"},
	{"a cancelled waiter stays with its latch", "latch/latch.go", "{ w.waiters.Remove(r) }", "{\n	if !Wrong {\n		w.waiters.Remove(r)\n	}\n}", integration, ties + "/latch"},
	{"a scope that is unwound does not wait", "scope/scope.go", "		_, _ = s.over.Await(context.Background())\n		ended = true\n", "		if !Wrong || s.ctx.Err() == nil {\n			_, _ = s.over.Await(context.Background())\n		}\n		ended = true\n", integration, panics + "LeavesNoChild"},
	{"a Limit keeps a function that has begun", "scope/limit.go", "		if w.stop != nil {\n", "		if w.stop != nil && !Wrong {\n", "scope", "TestALimitKeeps"},
	{"a Limit keeps the place of a refused Go", "scope/limit.go", "		if !started {\n			l.next()", "		if !started && !Wrong {\n			l.next()", "scope", "TestARefusedGo"},
	{"a context that panics keeps a nudge", "mutex/mutex.go", "		if !locked {", "		if !locked && !(Wrong && recover() != nil) {", integration, panics},
	{"a context that panics is a ghost at the barrier", "latch/barrier.go", "			if b.hasHappened(me) {", "			if Wrong {\n				return\n			}\n			if b.hasHappened(me) {", integration, panics},
	{"a part of a function that has ended is lost", "lazy/forcing.go", "				whole = whole.in[byContext]\n", "				if whole = whole.in[byContext]; Wrong {\n					whole = nil\n				}\n", "lazy", "TestAPartThatOutlives"},
	{"a context that panics keeps the turn", "lazy/lazy.go", "		if !keep {", "		if !keep && !Wrong {", integration, panics},
	{"a context that panics leaves the runner", "lazy/lazy.go", "	defer func() {\n		l.guard.Lock()\n		defer l.guard.Unlock()\n		switch {", "	defer func() {\n		if Wrong && again {\n			return\n		}\n		l.guard.Lock()\n		defer l.guard.Unlock()\n		switch {", integration, panics},
	{"a parent that panics leaves the waits untold", "internal/cancelctx/context.go", "	defer c.notify() // also if a foreign parent panics: the inner context is done before it leaves that\n	in := c.made()\n", "	if !Wrong {\n		defer c.notify()\n	}\n	in := c.made()\n	if Wrong {\n		defer func() {\n			if x := recover(); x != nil {\n				panic(x)\n			}\n			c.notify()\n		}()\n	}\n", integration, "TestAPanickyParent"},
	{"a parent that panics keeps its context going", "internal/cancelctx/context.go", "			defer c.end(cause) // also if a foreign parent panics in stop\n			up.stop()\n", "		if !Wrong {\n			defer c.end(cause)\n		}\n		up.stop()\n		if Wrong {\n			c.end(cause)\n		}\n", integration, "TestAPanickyParent"},
}

const sourceOfIs = `package atomicx

import "os"

var mutant = os.Getenv("BRAID_MUTANT")

func Is(name string) bool { return mutant == name }
`

func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	at := overlay(t, root)
	binaries, right := map[string]string{}, map[string]bool{}
	dir := t.TempDir()
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if binaries[m.pkg] == "" {
				binaries[m.pkg] = filepath.Join(dir, fmt.Sprint(i))
				cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", at, "-o", binaries[m.pkg], "./"+m.pkg)
				cmd.Dir = root
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", m.pkg, err, out)
				}
			}
			if what := m.pkg + m.tests; !right[what] {
				if out, err := run(root, m, binaries[m.pkg], ""); err != nil {
					t.Fatalf("without a mutant: %v\n%s", err, out)
				}
				right[what] = true
			}
			binary := binaries[m.pkg]
			t.Parallel() // many of them hang
			out, err := run(root, m, binary, m.name)
			for range 2 {
				if err == nil { // some need a schedule that a busy machine may not offer
					out, err = run(root, m, binary, m.name)
				}
			}
			if err == nil {
				t.Fatalf("not noticed by %s in %s", m.tests, m.pkg)
			}
			for _, line := range strings.Split(string(out), "\n") {
				if strings.Contains(line, "_test.go") || strings.Contains(line, "no end") || strings.HasPrefix(line, "panic") {
					t.Log(strings.TrimSpace(line))
					break
				}
			}
		})
	}
}

func run(root string, m mutant, binary, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.short", "-test.run", m.tests)
	cmd.Dir = filepath.Join(root, m.pkg)
	if cmd.Env = append(os.Environ(), "BRAID_MUTANT="+name); name != "" {
		cmd.Env = append(cmd.Env, "BRAID_DEADLINE=10s") // or else each that hangs takes a minute
	}
	return cmd.CombinedOutput()
}

// overlay writes the sources with all mutants in them, each to be turned on.
func overlay(t *testing.T, root string) (at string) {
	dir, replace := t.TempDir(), map[string]string{}
	write := func(file, text string) {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = at
	}
	write("internal/atomicx/mutant.go", sourceOfIs)
	texts := map[string]string{}
	for _, m := range mutants {
		text := texts[m.file]
		if text == "" {
			b, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			text = strings.Replace(string(b), "\nimport ", "\nimport mutants \"github.com/braidgo/braid/internal/atomicx\"\nimport ", 1)
		}
		if n := strings.Count(text, m.old); n != 1 {
			t.Fatalf("%s: %s has %d of\n%s", m.name, m.file, n, m.old)
		}
		texts[m.file] = strings.Replace(text, m.old, strings.ReplaceAll(m.changed, "Wrong", fmt.Sprintf("mutants.Is(%q)", m.name)), 1)
	}
	for file, text := range texts {
		write(file, text)
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	at = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}
