// Overlay prints the path of a file for -overlay: with it the go command builds a runtime that leaves a simulation less to chance.
//
//	go test -overlay="$(go run github.com/braidgo/braid/adapters/simulation/overlay)" ./...
//
// The files are copies, with the edits below, of files in the GOROOT of the go command in the current directory, but GOROOT itself is not
// touched. Overlay fails if a line that it edits is not there exactly once, as in a release of Go that has changed it, and with a release
// that the go command itself has downloaded (GOTOOLCHAIN).
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var edits = []struct{ file, old, changed string }{
	// From chacha8, the runtime itself draws nothing.
	{"select.go", "j := cheaprandn(uint32(norder + 1))", "j := randn(uint32(norder + 1))"},
	{"time.go", "t.rand = cheaprand()", "t.rand = uint32(rand())"},
	// The clock of a bubble goes on while goroutines wait for a mutex. Its holder must be in the bubble.
	{"runtime2.go", "	waitReasonSynctestSelect:        true,\n", `	waitReasonSynctestSelect:        true,
	waitReasonSyncMutexLock:         true,
	waitReasonSyncRWMutexRLock:      true,
	waitReasonSyncRWMutexLock:       true,
`},
	// A goroutine of a bubble keeps the processor for 5 s in place of 10 ms.
	{"proc.go", "pd.schedwhen+forcePreemptNS <= now {\n			preemptone(pp)\n", `pd.schedwhen+forcePreemptNS <= now {
			if mp := pp.m.ptr(); mp == nil || mp.curg == nil || mp.curg.bubble == nil || pd.schedwhen+500*forcePreemptNS <= now {
				preemptone(pp)
			}
`},
}

var errDownloaded = errors.New("the go command has downloaded this release of Go into its module cache, where it replaces no file: install the release, or set GOROOT to a copy")

func main() {
	to, err := overlay()
	if err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
	fmt.Println(to)
}

// overlay writes the edited files and their list into a folder that is named by their content, and returns the path of the list.
func overlay() (list string, err error) {
	env, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return "", err
	}
	root, modules, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	source := filepath.Join(strings.TrimSpace(root), "src", "runtime")
	texts, sum := make([]string, len(edits)), sha256.New()
	for i, e := range edits {
		b, err := os.ReadFile(filepath.Join(source, e.file))
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(b), e.old); n != 1 {
			return "", fmt.Errorf("%s has %d times, not once: %s", filepath.Join(source, e.file), n, e.old)
		}
		texts[i] = strings.Replace(string(b), e.old, e.changed, 1)
		fmt.Fprint(sum, source, texts[i])
	}
	if strings.HasPrefix(root, strings.TrimSpace(modules)) {
		return "", errDownloaded
	}
	to := filepath.Join(cache, "braid", "overlay", fmt.Sprintf("%x", sum.Sum(nil)))
	if err := os.MkdirAll(to, 0o777); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i, e := range edits {
		replace[filepath.Join(source, e.file)] = filepath.Join(to, e.file)
		if err := write(filepath.Join(to, e.file), []byte(texts[i])); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	list = filepath.Join(to, "overlay.json")
	return list, errors.Join(err, write(list, b))
}

// write must not replace the same file of another run, since a build may read it.
func write(name string, text []byte) error {
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, text) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), "")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close(), os.Rename(f.Name(), name))
}
