// Release checks that all modules of the repository have the same version.
//
//	go run ./internal/testrig/release            checks the modules, and prints the tags of their version
//	go run ./internal/testrig/release v0.2.0     first writes the version into every go.mod; CHANGELOG.md must begin with it
//
// A module that requires another module of the repository must require the version of the release, and must replace that module by its
// folder. The replacement is for work in a clone. The go command ignores the replacements of a required module.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const root = "github.com/braidgo/braid"

// published lists the folders of the modules that users can require, except the root. Each release has a tag for each of these modules.
var published = []string{"actor/natsactor", "adapters/netstack", "braidvet", "stage/jetstream", "stage/otel", "stage/prom"}

// private lists the folders of modules that users do not require, which are programs and tests with further dependencies. A folder
// includes the folders below it.
var private = []string{"bench", "examples", "simulation/services", "simulation/stocktest", "adapters/eventloop/stocktest"}

func main() {
	version := ""
	if len(os.Args) > 1 {
		version = os.Args[1]
	}
	tags, err := prepare(".", version)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Println("on the commit of the release:")
	for _, tag := range tags {
		fmt.Println("git tag", tag)
	}
	fmt.Println("git push origin", strings.Join(tags, " "))
}

// prepare checks the modules below dir, and returns the tags of the release. If version is not empty, prepare first writes version into
// the modules.
func prepare(dir, version string) (tags []string, err error) {
	latest, err := latest(dir)
	if err != nil {
		return nil, err
	}
	if version != "" && version != latest {
		return nil, fmt.Errorf("CHANGELOG.md begins with %s, not with %s", latest, version)
	}
	modules, err := modulesOf(dir)
	if err != nil {
		return nil, err
	}
	if version != "" {
		for _, m := range modules {
			if err := m.set(dir, version); err != nil {
				return nil, err
			}
		}
		if modules, err = modulesOf(dir); err != nil {
			return nil, err
		}
	}
	if err := check(modules, latest); err != nil {
		return nil, err
	}
	tags = []string{latest}
	for _, folder := range published {
		tags = append(tags, folder+"/"+latest)
	}
	return tags, nil
}

var heading = regexp.MustCompile(`(?m)^## (\S+)`)

// latest returns the first version in CHANGELOG.md. Between two releases, this is the version of the next release.
func latest(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	m := heading.FindSubmatch(text)
	if m == nil || !regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`).Match(m[1]) || string(m[1]) == "v0.0.0" {
		return "", errors.New("the first heading of CHANGELOG.md is not a version")
	}
	return string(m[1]), nil
}

// A module holds the parts of a go.mod file that matter for a release. Its exported fields are named as in the output of go mod edit
// -json.
type module struct {
	folder  string // "." is the root
	Module  struct{ Path string }
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func modulesOf(dir string) (modules []module, err error) {
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != dir && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		folder, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		m, err := read(file, filepath.ToSlash(folder))
		modules = append(modules, m)
		return err
	})
	return modules, err
}

// read returns the module in folder, from its file.
func read(file, folder string) (module, error) {
	m := module{folder: folder}
	out, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return m, err
}

// folderOf returns the folder of a module, and reports whether the module is in the repository.
func folderOf(modulePath string) (folder string, ours bool) {
	if modulePath == root {
		return ".", true
	}
	return strings.CutPrefix(modulePath, root+"/")
}

// set makes m require the given version of the repository's other modules, and adds a replacement for each of these modules.
func (m module) set(dir, version string) error {
	args := []string{"mod", "edit"}
	for _, r := range m.Require {
		if folder, ours := folderOf(r.Path); ours {
			args = append(args, "-require="+r.Path+"@"+version, "-replace="+r.Path+"="+m.relative(folder))
		}
	}
	if len(args) == 2 {
		return nil
	}
	if out, err := exec.Command("go", append(args, filepath.Join(dir, m.folder, "go.mod"))...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", m.folder, err, out)
	}
	return nil
}

// relative returns the path from m to folder, as it is written in a replace directive.
func (m module) relative(folder string) string {
	return path.Join(strings.Repeat("../", strings.Count(m.folder, "/")+1), folder)
}

// check returns an error that lists everything that prevents a release of the modules with the given version.
func check(modules []module, version string) error {
	var wrong []error
	complain := func(m module, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s/go.mod: %s", m.folder, fmt.Sprintf(format, args...)))
	}
	left := slices.Clone(published)
	for _, m := range modules {
		if folder, ours := folderOf(m.Module.Path); !ours || folder != m.folder {
			complain(m, "the module is called %s", m.Module.Path)
		}
		i := slices.Index(left, m.folder)
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case m.folder != "." && !slices.ContainsFunc(private, func(f string) bool { return m.folder == f || strings.HasPrefix(m.folder, f+"/") }):
			complain(m, "neither a published nor a private module: internal/testrig/release has the list")
		}
		for _, r := range m.Require {
			folder, ours := folderOf(r.Path)
			if !ours {
				continue
			}
			if m.folder == "." {
				complain(m, "the root requires %s", r.Path)
				continue
			}
			if r.Version != version {
				complain(m, "requires %s %s, but the release is %s", r.Path, r.Version, version)
			}
			if i >= 0 && folder != "." && !slices.Contains(published, folder) {
				complain(m, "requires %s, which is not published", r.Path)
			}
			replaced := false
			for _, other := range m.Replace {
				replaced = replaced || other.Old.Path == r.Path && other.Old.Version == "" && other.New.Path == m.relative(folder)
			}
			if !replaced {
				complain(m, "does not replace %s by %s", r.Path, m.relative(folder))
			}
		}
		for _, r := range m.Replace { // the go command ignores replacements when a user requires the module
			if _, ours := folderOf(r.Old.Path); (i >= 0 || m.folder == ".") && !ours {
				complain(m, "replaces %s", r.Old.Path)
			}
		}
	}
	for _, folder := range left {
		wrong = append(wrong, fmt.Errorf("%s: a published module is missing", folder))
	}
	return errors.Join(wrong...)
}
