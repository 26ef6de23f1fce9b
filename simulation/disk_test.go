package simulation_test

import (
	"context"
	"io/fs"
	"math"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
	"github.com/stretchr/testify/require"
)

func TestTheDiskRefusesMisuse(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		disk := w.Node("n").FS()
		f := must(disk.Create("f"))
		n, err := f.WriteAt(nil, 1000)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = f.WriteAt([]byte("x"), math.MaxInt64)
		require.ErrorIs(t, err, syscall.EFBIG)
		_, err = f.WriteAt([]byte("x"), 1<<30)
		require.ErrorIs(t, err, syscall.EFBIG)
		require.ErrorIs(t, f.Truncate(1<<30+1), syscall.EFBIG)
		require.Zero(t, must(f.Size()), "none of these has changed the file")
		_, err = disk.Create("")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, disk.Rename("f", ""), fs.ErrNotExist)
		require.Empty(t, content(t, disk, "f"))
		return nil
	})
}

// heap returns the number of live bytes, and of all bytes that were ever allocated.
func heap() (live, ever uint64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.TotalAlloc
}

// A program rotates a log. The memory of removed files is freed, and so is that of files that a crash removes.
func TestRemovedFilesAreGivenBack(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		n := w.Node("n")
		before, _ := heap()
		for i := range 64 {
			d := n.FS()
			f := must(d.Create("log" + strconv.Itoa(i)))
			write(f, 0, string(make([]byte, 1<<20)))
			require.NoError(t, f.Sync())
			switch i % 3 {
			case 0:
				require.NoError(t, d.Remove(f.Name()))
				require.NoError(t, d.Sync())
			case 1:
				_ = must(d.Create(f.Name()))
				require.NoError(t, d.Sync())
			case 2:
				require.NoError(t, d.Sync())
				require.NoError(t, d.Remove(f.Name()))
				require.NoError(t, d.Sync())
				boot(n, func(disk.FS) {})
			}
		}
		after, _ := heap()
		require.Less(t, int64(after)-int64(before), int64(16<<20), "of 128 MB that were written")
		require.Empty(t, content(t, n.FS(), "log1"))
		return nil
	})
}

// The cost of a Sync depends on the bytes that were written since the last one, not on the size of the file.
func TestSyncDoesNotCopyTheFile(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		f := must(w.Node("n").FS().Create("log"))
		_, before := heap()
		for i := range 2000 {
			write(f, int64(i)*200, string(make([]byte, 200)))
			require.NoError(t, f.Sync())
		}
		_, after := heap()
		require.Less(t, after-before, uint64(64<<20), "of 400 MB for 2000 copies")
		return nil
	})
}

// A file whose name was removed can be used by tasks that have opened it, until a crash.
func TestAnOpenFileWithoutAName(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		n := w.Node("n")
		f := must(n.FS().Create("f"))
		require.NoError(t, n.FS().Remove("f"))
		require.NoError(t, n.FS().Sync())
		write(f, 0, "abc")
		require.NoError(t, f.Sync())
		got := make([]byte, 3)
		must(f.ReadAt(got, 0))
		require.Equal(t, "abc", string(got))
		n.Crash()
		_, err := f.ReadAt(got, 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		return nil
	})
}
