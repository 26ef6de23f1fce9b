package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const here = "../../.."

// The modules of the repository can be released as the version of CHANGELOG.md.
func TestModules(t *testing.T) {
	tags, err := prepare(here, "")
	require.NoError(t, err)
	require.Len(t, tags, len(published)+1)
	for _, tag := range tags {
		require.True(t, strings.HasSuffix(tag, tags[0]), tag)
	}
}

// clone copies CHANGELOG.md and the go.mod files of the repository to a new folder.
func clone(t *testing.T) (dir string) {
	dir = t.TempDir()
	modules, err := modulesOf(here)
	require.NoError(t, err)
	files := []string{"CHANGELOG.md"}
	for _, m := range modules {
		files = append(files, m.folder+"/go.mod")
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(here, file))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	return dir
}

func edit(t *testing.T, file, old, changed string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, changed, 1)), 0o600))
}

// Check reports each mistake in a go.mod.
func TestCheck(t *testing.T) {
	now, err := latest(here)
	require.NoError(t, err)
	right, err := modulesOf(here)
	require.NoError(t, err)
	at := func(folder string) int {
		return slices.IndexFunc(right, func(m module) bool { return m.folder == folder })
	}
	for _, c := range []struct{ name, file, old, changed, want string }{
		{"v0.0.0", "stage/prom/go.mod", root + " " + now, root + " v0.0.0", "stage/prom/go.mod: requires " + root + " v0.0.0"},
		{"v0.0.0 in an example", "examples/libraries/go.mod", "jetstream " + now, "jetstream v0.0.0", "requires " + root + "/stage/jetstream v0.0.0"},
		{"an older version", "stage/otel/go.mod", root + " " + now, root + " v0.0.9", "requires " + root + " v0.0.9"},
		{"no replacement", "actor/natsactor/go.mod", "replace " + root + " => ../..", "", "does not replace " + root + " by ../.."},
		{"another folder", "actor/natsactor/go.mod", "=> ../..", "=> ../../..", "does not replace " + root + " by ../.."},
		{"a replacement that users do not get", "stage/jetstream/go.mod", "=> ../..", "=> ../..\n\nreplace github.com/nats-io/nats.go => ../../nats", "replaces github.com/nats-io/nats.go"},
		{"a wrong name", "stage/prom/go.mod", "module " + root + "/stage/prom", "module " + root + "/stage/prometheus", "the module is called"},
		{"a private requirement", "stage/prom/go.mod", "require (", "require " + root + "/bench " + now + "\n\nrequire (", "which is not published"},
		{"a root with an adapter", "go.mod", "require (", "require " + root + "/stage/prom " + now + "\n\nrequire (", "the root requires"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(here, c.file))
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "go.mod")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			edit(t, file, c.old, c.changed)
			m, err := read(file, path.Dir(c.file))
			require.NoError(t, err)
			modules := slices.Clone(right)
			modules[at(m.folder)] = m
			require.ErrorContains(t, check(modules, now), c.want)
		})
	}
	added := append(slices.Clone(right), module{folder: "stage/statsd"})
	require.ErrorContains(t, check(added, now), "stage/statsd/go.mod: neither a published nor a private module")
	i := at("stage/prom")
	require.ErrorContains(t, check(slices.Delete(slices.Clone(right), i, i+1), now), "stage/prom: a published module is missing")
	require.ErrorContains(t, check(right, "v99.0.0"), "the release is v99.0.0")
}

// Without a version in CHANGELOG.md there is no next release.
func TestNoVersion(t *testing.T) {
	dir := clone(t)
	edit(t, filepath.Join(dir, "CHANGELOG.md"), "\n## ", "\n## Unreleased\n\n## ")
	_, err := prepare(dir, "")
	require.ErrorContains(t, err, "is not a version")
}

// The next release needs one heading in CHANGELOG.md and one command.
func TestNextVersion(t *testing.T) {
	dir := clone(t)
	_, err := prepare(dir, "v0.77.0")
	require.ErrorContains(t, err, "not with v0.77.0")
	edit(t, filepath.Join(dir, "CHANGELOG.md"), "\n## ", "\n## v0.77.0\n\n## ")
	tags, err := prepare(dir, "v0.77.0")
	require.NoError(t, err)
	require.Contains(t, tags, "stage/prom/v0.77.0")
}
