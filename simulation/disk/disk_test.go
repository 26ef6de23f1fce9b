package disk_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
)

func dir(t *testing.T) disk.FS {
	d, err := disk.Dir(t.TempDir())
	require.NoError(t, err)
	return d
}

// both runs f on a directory, and on a simulated node.
func both(t *testing.T, f func(t *testing.T, d disk.FS)) {
	t.Run("a directory", func(t *testing.T) { f(t, dir(t)) })
	t.Run("a node", func(t *testing.T) {
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			f(t, w.Node("n").FS())
			return nil
		}, simulation.Options{Seed: 1})
		require.NoError(t, r.Err)
	})
}

func create(t *testing.T, d disk.FS, name, text string) disk.File {
	f, err := d.Create(name)
	require.NoError(t, err)
	n, err := f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	return f
}

func text(t *testing.T, f disk.File) string {
	size, err := f.Size()
	require.NoError(t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(t, err)
	return string(b)
}

func TestFiles(t *testing.T) {
	both(t, func(t *testing.T, d disk.FS) {
		f := create(t, d, "a", "hello")
		require.Equal(t, "a", f.Name())
		_, err := f.WriteAt([]byte("y, world"), 4)
		require.NoError(t, err)
		require.Equal(t, "helly, world", text(t, f))
		require.NoError(t, f.Truncate(5))
		require.NoError(t, f.Truncate(6))
		require.Equal(t, "helly\x00", text(t, f))
		_, err = f.ReadAt(make([]byte, 1), 6)
		require.Equal(t, io.EOF, err)
		require.NoError(t, f.Sync())
		require.NoError(t, d.Sync())

		same, err := d.Open("a")
		require.NoError(t, err)
		require.Equal(t, "helly\x00", text(t, same))
		require.NoError(t, same.Close())
		require.ErrorIs(t, same.Close(), os.ErrClosed)
		_, err = same.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, os.ErrClosed)
		require.Equal(t, "helly\x00", text(t, f), "closed twice or once, the other is open")
		require.NoError(t, f.Close())
	})
}

func TestNames(t *testing.T) {
	both(t, func(t *testing.T, d disk.FS) {
		old := create(t, d, "b", "old")
		defer old.Close()
		fresh := create(t, d, "b", "fresh")
		require.Equal(t, "old", text(t, old), "a file that replaces another one leaves its contents alone")
		require.NoError(t, fresh.Close())
		require.NoError(t, create(t, d, "c", "c").Close())
		require.NoError(t, d.Rename("c", "a"))
		names, err := d.Names()
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, names)
		require.NoError(t, d.Rename("b", "a"))
		f, err := d.Open("a")
		require.NoError(t, err)
		require.Equal(t, "fresh", text(t, f))
		require.NoError(t, d.Remove("a"))
		require.Equal(t, "fresh", text(t, f), "a file that is open stays")
		require.NoError(t, f.Close())
		_, err = d.Open("a")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, d.Remove("a"), fs.ErrNotExist)
		require.ErrorIs(t, d.Rename("a", "b"), fs.ErrNotExist)
		_, err = d.Create("")
		require.Error(t, err)
		names, err = d.Names()
		require.NoError(t, err)
		require.Empty(t, names)
	})
}

// The FS of a directory has only the files of this directory.
func TestDir(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, ".new-1"), []byte("left by a crash"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(path, "sub"), 0o700))
	d, err := disk.Dir(path)
	require.NoError(t, err)
	f := create(t, d, "a", "")
	require.NoError(t, f.Close())
	names, err := d.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, entries, 2, "a and sub")
	for _, name := range []string{"", ".", "..", "../a", "sub/a", "/a", ".new-2"} {
		_, err := d.Create(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = d.Open(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		require.ErrorIs(t, d.Remove(name), fs.ErrInvalid, name)
		require.ErrorIs(t, d.Rename("a", name), fs.ErrInvalid, name)
		require.ErrorIs(t, d.Rename(name, "a"), fs.ErrInvalid, name)
	}
	_, err = disk.Dir(filepath.Join(path, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// This counter survives crashes. In a test, it gets node.FS() of a simulated node instead of the directory.
func Example() {
	path, _ := os.MkdirTemp("", "counter")
	defer os.RemoveAll(path)
	d, err := disk.Dir(path)
	if err != nil {
		return
	}
	f, err := d.Create("n")
	if err != nil {
		return
	}
	_, _ = f.WriteAt([]byte{1}, 0)
	_ = f.Sync() // makes the bytes durable
	_ = d.Sync() // makes the name durable
	_ = f.Close()
	// Output:
}
