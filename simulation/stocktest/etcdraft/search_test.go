package etcdraft

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braidgo/braid/simulation"
)

// In the unchanged library no seed fails, and every tenth seed runs twice with the same trace.
func TestEtcdRaft(t *testing.T) {
	simulation.Test(t, scenario(t), simulation.TestOptions{Seeds: 40, Guided: os.Getenv("BRAID_GUIDED") != ""})
}

// In a copy of the library without one condition, a leader commits entries of older terms by counting: figure 8 of the Raft
// paper. The search finds this within 2,000 runs.
func TestOlderTerms(t *testing.T) {
	dir := t.TempDir()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "go.etcd.io/raft/v3")
	from, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "raft")
	if err := os.CopyFS(library, os.DirFS(strings.TrimSpace(string(from)))); err != nil {
		t.Fatal(err)
	}
	const condition = " && l.matchTerm(at) {\n"
	log := filepath.Join(library, "log.go")
	text, err := os.ReadFile(log)
	if err != nil || strings.Count(string(text), condition) != 1 {
		t.Fatalf("the condition was not found: %v", err)
	}
	write(t, log, strings.Replace(string(text), condition, " {\n", 1))
	for _, name := range []string{"go.mod", "go.sum"} { // the files of simulation/stocktest, in which the copy replaces the library
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "go.mod" {
			text = append(text, "\nreplace go.etcd.io/raft/v3 => "+library+"\n"...)
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	test := exec.Command("go", "test", "-vet=off", "-modfile", filepath.Join(dir, "go.mod"), "-run", "^TestEtcdRaft$", ".")
	test.Env = append(os.Environ(), "BRAID_GUIDED=1", "BRAID_SEEDS=2000")
	out, _ := test.CombinedOutput()
	found := regexp.MustCompile(`seed \S+: .*(without entry \d+, which was committed|where .* was committed|is out of range).*`).FindString(string(out))
	if found == "" {
		t.Fatalf("%s", out)
	}
	t.Log(found)
}

func write(t *testing.T, name, text string) {
	_ = os.Chmod(name, 0o600)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
