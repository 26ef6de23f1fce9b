// Overlay prints the path of a file for the go command's -overlay flag. With this flag, the go command builds a runtime that makes
// simulations more deterministic.
//
//	go test -overlay="$(go run github.com/braidgo/braid/adapters/simulation/overlay)" ./...
//
// Overlay copies files of package runtime from the GOROOT that the go command uses in the current directory, and edits the copies. GOROOT
// itself does not change. Overlay fails if a line that it edits does not occur exactly once, for example because a newer release of Go has
// changed the line. Overlay also fails for a release that the go command has downloaded (GOTOOLCHAIN).
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
	// Draw from chacha8, which the runtime does not use for its own decisions.
	{"select.go", "j := cheaprandn(uint32(norder + 1))", "j := randn(uint32(norder + 1))"},
	{"time.go", "t.rand = cheaprand()", "t.rand = uint32(rand())"},
	// Let a bubble's clock advance while goroutines of the bubble wait for a mutex. The mutex's holder must be in the same bubble.
	{"runtime2.go", "	waitReasonSynctestSelect:        true,\n", `	waitReasonSynctestSelect:        true,
	waitReasonSyncMutexLock:         true,
	waitReasonSyncRWMutexRLock:      true,
	waitReasonSyncRWMutexLock:       true,
`},
	// Preempt a goroutine of a bubble after 5 s instead of 10 ms.
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

// overlay writes the edited files, and a list of these files, into a folder that is named after a hash of the contents. It returns the path
// of the list.
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

// write writes text to the file with the given name. It does not replace a file that already has this text, because a concurrent build may
// be reading the file.
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
