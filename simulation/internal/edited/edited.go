// Package edited makes overlays for the go command, with edited copies of files of GOROOT. With an overlay, the go command builds a runtime
// whose choices a test can control: those in a bubble of testing/synctest, and the order of goroutines.
package edited

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Go is a go command and an overlay for it.
type Go struct {
	Command string   // the path of the go command
	Env     []string // variables that the go command needs
	List    string   // the argument of -overlay
	Root    string   // the GOROOT whose files are replaced
	Version string
	Copied  bool // Command belongs to a copy of a release that the go command had downloaded
}

// Overlay makes an overlay for the go command that is used in the folder dir. It writes into the user's cache, into a folder that is named
// after a hash of the contents.
//
// The go command replaces no files of a release that it has downloaded (GOTOOLCHAIN). Overlay then makes a copy of the release.
//
// Overlay fails if a text that it edits does not occur, because a newer release of Go has changed it.
func Overlay(dir string) (*Go, error) { return overlay(dir, edits) }

func overlay(dir string, edits []edit) (*Go, error) {
	env := exec.Command("go", "env", "GOROOT", "GOMODCACHE", "GOVERSION")
	env.Dir = dir
	out, err := env.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("go env: %w: %s", err, exit.Stderr)
		}
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 3 {
		return nil, fmt.Errorf("unexpected output of go env: %q", out)
	}
	root, modules, version := lines[0], lines[1], strings.TrimSpace(lines[2])
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache = filepath.Join(cache, "braid")
	g := &Go{Command: "go", Version: version}
	if folderHas(modules, root) {
		to := filepath.Join(cache, "go", filepath.Base(root))
		if err := copyTree(to, root); err != nil {
			return nil, err
		}
		root = to
		g.Command, g.Copied = filepath.Join(root, "bin", "go"), true
		g.Env = []string{"GOROOT=" + root, "GOTOOLCHAIN=local", "PATH=" + filepath.Join(root, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")}
	}
	g.Root = root
	source := filepath.Join(root, "src")
	texts, err := apply(source, version, edits)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(sum, "%s\n%s\n%s\n", source, file, texts[file])
	}
	to := filepath.Join(cache, "overlay", fmt.Sprintf("%x", sum.Sum(nil)))
	if err := os.MkdirAll(to, 0o777); err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for file, text := range texts {
		name := filepath.Join(to, strings.ReplaceAll(file, "/", "_"))
		replace[filepath.Join(source, filepath.FromSlash(file))] = name
		if err := write(name, []byte(text)); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	g.List = filepath.Join(to, "overlay.json")
	return g, errors.Join(err, write(g.List, b))
}

// apply returns the edited and the added files by their names below source.
func apply(source, version string, edits []edit) (map[string]string, error) {
	texts := map[string]string{}
	added, err := fs.Glob(files, "_*/*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range added {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		folder, file := path.Split(name[1:])
		texts[strings.ReplaceAll(folder, "_", "/")+"braid_"+file] = string(b)
	}
	for _, e := range edits {
		if _, ok := texts[e.file]; !ok {
			b, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(e.file)))
			if err != nil {
				return nil, err
			}
			texts[e.file] = string(b)
		}
		text, old := texts[e.file], regexp.QuoteMeta(e.old)
		if e.pattern {
			old = e.old
		}
		re := regexp.MustCompile(old)
		if n, want := len(re.FindAllStringIndex(text, -1)), max(cmp.Or(e.times, 1), 1); n < want || n > want && e.times != several {
			return nil, fmt.Errorf("%s is not a release of Go whose runtime this version of Braid can edit (%s). %s has %d times, not %d: %s",
				version, known, filepath.Join(source, e.file), n, want, strings.TrimSpace(e.old))
		}
		if e.pattern {
			texts[e.file] = re.ReplaceAllString(text, e.changed)
		} else {
			texts[e.file] = strings.ReplaceAll(text, e.old, e.changed)
		}
	}
	return texts, nil
}

// known names the releases that are tested.
const known = "it knows Go 1.26 and 1.27"

// files holds the files that the overlay adds to packages. Those of the folder _a_b belong to package a/b.
//
//go:embed _*/*.go
var files embed.FS

// folderHas reports whether the folder dir is in the folder of.
func folderHas(of, dir string) bool {
	rel, err := filepath.Rel(of, dir)
	return err == nil && filepath.IsLocal(rel)
}

// copyTree makes the folder to a copy of the folder from. The copy has hard links where the file system allows that. An interrupted copy leaves
// no folder with this name.
func copyTree(to, from string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(to), "part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(part, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		if os.Link(name, target) == nil {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, info.Mode().Perm()|0o200)
	})
	if err != nil {
		return fmt.Errorf("a copy of %s: %w", from, err)
	}
	if err := os.Rename(part, to); err != nil {
		if _, there := os.Stat(to); there != nil { // another process has made the copy
			return err
		}
	}
	return nil
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
