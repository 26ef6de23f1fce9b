package braidvet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// After the change that sequentialGets suggests, the program of fetch/README.md needs one round instead of two. The program
// counts its rounds.
func TestTheChangeMakesOneRound(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	vet := filepath.Join(dir, "braidvet")
	if out, err := exec.Command("go", "build", "-o", vet, "./cmd/braidvet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run("go", "mod", "edit", "-replace", "github.com/braidgo/braid="+root)
	if out := run("go", "run", "./blog"); out != "user 12 reads post 7: 2 rounds\n" {
		t.Fatal(out)
	}
	run(vet, "-fix", "./blog")
	if out := run("go", "run", "./blog"); out != "user 12 reads post 7: 1 rounds\n" {
		changed, _ := os.ReadFile(filepath.Join(dir, "blog", "main.go"))
		t.Fatalf("%s%s", out, changed)
	}
	run(vet, "./blog") // braidvet finds nothing more
}

// The project's own programs and examples have no findings. Its other tests make the mistakes on purpose.
func TestTheProject(t *testing.T) {
	vet := filepath.Join(t.TempDir(), "braidvet")
	if out, err := exec.Command("go", "build", "-o", vet, "./cmd/braidvet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, module := range []string{"..", "../examples/libraries"} {
		cmd := exec.Command("go", "vet", "-vettool="+vet, "./...")
		cmd.Dir = module
		out, err := cmd.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			ofTest := strings.Contains(line, "_test.go:") && !strings.Contains(line, "example")
			if !ofTest && !strings.HasPrefix(line, "#") {
				t.Errorf("%s: %s", module, line)
			}
		}
	}
}
