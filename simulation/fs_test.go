package simulation_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// boot crashes n and restarts it with main, and waits until main has ended.
func boot(n *simulation.Node, main func(disk disk.FS)) {
	ended := false
	n.Restart(func(context.Context) { main(n.FS()); ended = true })
	for !ended {
		suspend.Yield()
	}
}

func content(t *testing.T, disk disk.FS, name string) []byte {
	f, err := disk.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(t, err)
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func write(f disk.File, off int64, text string) { must(f.WriteAt([]byte(text), off)) }

func TestFilesAreFiles(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		disk := w.Node("n").FS()
		_, err := disk.Open("a")
		require.ErrorIs(t, err, fs.ErrNotExist)
		f := must(disk.Create("a"))
		write(f, 3, "def")
		write(f, 0, "abc")
		require.Equal(t, "abcdef", string(content(t, disk, "a")))
		require.NoError(t, f.Truncate(2))
		require.NoError(t, f.Truncate(4))
		require.Equal(t, "ab\x00\x00", string(content(t, disk, "a")))
		must(disk.Create("c"))
		require.NoError(t, disk.Rename("a", "b"))
		require.Equal(t, []string{"b", "c"}, must(disk.Names()))
		_, err = disk.Open("a")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Equal(t, "ab\x00\x00", string(content(t, disk, "b")))
		require.NoError(t, disk.Remove("b"))
		require.ErrorIs(t, disk.Remove("b"), fs.ErrNotExist)
		require.ErrorIs(t, disk.Rename("b", "c"), fs.ErrNotExist)
		require.Equal(t, "ab", string(must(io.ReadAll(io.NewSectionReader(f, 0, 2)))), "an open file stays")
		_, err = f.ReadAt(make([]byte, 1), 100)
		require.Equal(t, io.EOF, err)
		return nil
	})
}

// Synced bytes exist after a crash. Others exist completely, partly or not at all, and all three cases occur.
func TestTheDiskAfterACrash(t *testing.T) {
	const sectors = 4
	seen := map[string]int{}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		boot(n, func(disk disk.FS) {
			f := must(disk.Create("log"))
			write(f, 0, "synced")
			require.NoError(t, f.Sync())
			require.NoError(t, disk.Sync())
			must(f.WriteAt(bytes.Repeat([]byte{'x'}, sectors*512), 512))
		})
		boot(n, func(disk disk.FS) {
			got := content(t, disk, "log")
			require.Equal(t, "synced", string(got[:6]))
			kept := 0
			for s := range sectors {
				part := got[min(len(got), 512*(s+1)):min(len(got), 512*(s+2))]
				switch n := bytes.Count(part, []byte{'x'}); n {
				case 512:
					kept++
				case 0:
				default:
					t.Errorf("a sector is torn: %d bytes", n)
				}
			}
			switch kept {
			case 0:
				seen["not there"]++
			case sectors:
				seen["there"]++
			default:
				seen["torn"]++
			}
		})
		return nil
	}, simulation.TestOptions{Seeds: 200})
	require.Len(t, seen, 3, "%v", seen)
	for what, n := range seen {
		require.Greater(t, n, 20, what)
	}
}

// A Sync of the disk makes names durable. Of the changes after it, the first few survive a crash.
func TestNamesAfterACrash(t *testing.T) {
	seen := map[int]int{}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		boot(n, func(disk disk.FS) {
			f := must(disk.Create("0"))
			write(f, 0, "hello")
			require.NoError(t, f.Sync())
			require.NoError(t, disk.Sync())
			for i := range 5 {
				require.NoError(t, disk.Rename(fmt.Sprint(i), fmt.Sprint(i+1)))
			}
		})
		boot(n, func(disk disk.FS) {
			found := 0
			for i := range 6 {
				if _, err := disk.Open(fmt.Sprint(i)); err == nil {
					found++
					seen[i]++
					require.Equal(t, "hello", string(content(t, disk, fmt.Sprint(i))))
				}
			}
			require.Equal(t, 1, found)
		})
		return nil
	}, simulation.TestOptions{Seeds: 100})
	require.Len(t, seen, 6, "%v", seen)
}

func TestAFileIsDeadAfterACrash(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		var old disk.File
		boot(n, func(disk disk.FS) { old = must(disk.Create("a")) })
		n.Crash()
		_, err := n.FS().Open("a")
		require.ErrorIs(t, err, os.ErrClosed)
		n.Restart(func(context.Context) {})
		_, err = old.WriteAt([]byte("x"), 0)
		require.ErrorIs(t, err, os.ErrClosed)
		require.ErrorIs(t, old.Sync(), os.ErrClosed)
		return nil
	})
}

// A crash may come during a Sync.
func TestACrashDuringASync(t *testing.T) {
	lost, kept := 0, 0
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		n, synced := w.Node("n"), false
		boot(n, func(disk disk.FS) { must(disk.Create("a")); require.NoError(t, disk.Sync()) })
		_ = n.Go(func() {
			f := must(n.FS().Open("a"))
			write(f, 0, "x")
			require.NoError(t, f.Sync())
			synced = true
		})
		for range w.Rand().IntN(6) {
			suspend.Yield()
		}
		boot(n, func(disk disk.FS) {
			there := len(content(t, disk, "a")) > 0
			require.True(t, there || !synced, "synced bytes are lost")
			if there {
				kept++
			} else {
				lost++
			}
		})
		return nil
	}, simulation.TestOptions{Seeds: 100})
	require.Greater(t, lost, 5)
	require.Greater(t, kept, 5)
}

// If a Sync fails, the bytes are not durable, and a later successful Sync does not make them durable.
func TestASyncThatFails(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		boot(n, func(disk disk.FS) {
			f := must(disk.Create("a"))
			require.NoError(t, disk.Sync())
			w.SetFaults(simulation.Faults{Sync: 1})
			write(f, 0, "lost")
			require.ErrorIs(t, f.Sync(), syscall.EIO)
			w.SetFaults(simulation.Faults{Write: 1})
			_, err := f.WriteAt([]byte("not written"), 0)
			require.ErrorIs(t, err, syscall.EIO)
			w.SetFaults(simulation.Faults{})
			require.NoError(t, f.Sync())
			require.Equal(t, "lost", string(content(t, disk, "a")))
		})
		boot(n, func(disk disk.FS) { require.Empty(t, content(t, disk, "a")) })
		return nil
	})
}
