//go:build release

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A user's program requires one published module, and nothing else of the repository, from a module proxy. The program builds.
func TestAlone(t *testing.T) {
	version, err := latest(here)
	require.NoError(t, err)
	proxy := t.TempDir()
	for _, folder := range append([]string{"."}, published...) {
		serve(t, proxy, folder, version, version)
	}
	environment := environment(t, proxy)
	for _, folder := range published {
		t.Run(folder, func(t *testing.T) {
			out, err := build(t, environment, folder, version)
			require.NoError(t, err, out)
		})
	}
}

// With a version that does not exist, the program does not build.
func TestNotAlone(t *testing.T) {
	version, err := latest(here)
	require.NoError(t, err)
	proxy := t.TempDir()
	serve(t, proxy, ".", version, version)
	serve(t, proxy, "stage/prom", version, "v0.0.0")
	out, err := build(t, environment(t, proxy), "stage/prom", version)
	require.Error(t, err)
	require.Contains(t, out, root+"@v0.0.0")
}

// environment returns the environment for a go command that gets the modules of the repository from a proxy of files, and all
// other modules as usual.
func environment(t *testing.T, proxy string) []string {
	env := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	kept := "file://" + filepath.ToSlash(env("GOMODCACHE")) + "/cache/download"
	return append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(proxy)+","+kept+","+env("GOPROXY"), "GOWORK=off", "GOSUMDB=off",
		"GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir()) // not the user's cache, which would keep this version
}

// build builds a new module that imports the package in a folder.
func build(t *testing.T, environment []string, folder, version string) (string, error) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), fmt.Appendf(nil, "package main\n\nimport _ %q\n\nfunc main() {}\n", root+"/"+folder), 0o600))
	for _, args := range [][]string{{"mod", "init", "example.com/user"}, {"get", root + "/" + folder + "@" + version}, {"build", "-o", os.DevNull, "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, environment
		if out, err := cmd.CombinedOutput(); err != nil {
			return string(out), fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(text), root+"/"+folder+" "+version)
	if folder != "braidvet" { // a linter does not import the root: it reads programs that do
		require.Contains(t, string(text), root+" "+version)
	}
	return "", nil
}

// serve puts the module in a folder into a proxy of files, with the files that the go command would take from a repository: those
// below the folder, without other modules below it, and the licence of the root. The module requires the given version of the
// root.
func serve(t *testing.T, proxy, folder, version, required string) {
	modulePath := strings.TrimSuffix(root+"/"+folder, "/.")
	at := filepath.Join(proxy, filepath.FromSlash(modulePath), "@v")
	require.NoError(t, os.MkdirAll(at, 0o700))
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), text, 0o600))
	}
	mod, err := os.ReadFile(filepath.Join(here, folder, "go.mod"))
	require.NoError(t, err)
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	require.NoError(t, err)
	write("list", []byte(version+"\n"))
	write(version+".info", info)
	now := []byte(root + " " + version)
	mod = bytes.Replace(mod, now, []byte(root+" "+required), 1)
	write(version+".mod", mod)

	out, err := os.Create(filepath.Join(at, version+".zip"))
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	z := zip.NewWriter(out)
	defer func() { require.NoError(t, z.Close()) }()
	add := func(file, name string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if name == "go.mod" {
			text = mod
		}
		w, err := z.Create(modulePath + "@" + version + "/" + name)
		require.NoError(t, err)
		_, err = w.Write(text)
		require.NoError(t, err)
	}
	dir := filepath.Join(here, folder)
	require.NoError(t, filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(file, "go.mod")); file != dir && (err == nil || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if name, err := filepath.Rel(dir, file); err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") {
			add(file, filepath.ToSlash(name))
		}
		return nil
	}))
	if folder != "." {
		add(filepath.Join(here, "LICENSE"), "LICENSE")
	}
}
