package simulation_test

import (
	"bytes"
	"context"
	"math/bits"
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
	"github.com/stretchr/testify/require"
)

// differ returns the number of different bits of each sector.
func differ(a, b []byte) (sectors []int) {
	for at := 0; at < len(a); at += 512 {
		n := 0
		for i := at; i < min(at+512, len(a)); i++ {
			n += bits.OnesCount8(a[i] ^ b[i])
		}
		sectors = append(sectors, n)
	}
	return sectors
}

// In a sector that is read from the disk, one bit changes permanently. Other sectors do not change, nor does a file in memory.
func TestRot(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		n, data, p := w.Node("a"), bytes.Repeat([]byte("x"), 2000), make([]byte, 2000)
		f, err := n.FS().Create("f")
		require.NoError(t, err)
		_, err = f.WriteAt(data, 0)
		require.NoError(t, err)
		n.RotDisk(1)
		read := func(f disk.File, off, size int) []int {
			_, err := f.ReadAt(p[off:off+size], int64(off))
			require.NoError(t, err)
			return differ(data, p)
		}
		require.Equal(t, []int{0, 0, 0, 0}, read(f, 0, 2000), "in memory")
		require.NoError(t, f.Sync())
		require.NoError(t, n.FS().Sync())
		require.Equal(t, []int{0, 1, 0, 0}, read(f, 512, 512))
		n.RotDisk(0)
		after := read(f, 0, 2000)
		require.Equal(t, []int{0, 1, 0, 0}, after, "for good")
		n.Crash()
		n.Restart(func(context.Context) {})
		f, err = n.FS().Open("f")
		require.NoError(t, err)
		require.Equal(t, after, read(f, 0, 2000), "on the disk")
		n.RotDisk(1)
		require.Equal(t, []int{1, 1}, []int{read(f, 0, 2000)[0], differ(data, p)[3]}, "the last one is short")
		return nil
	})
	rotted := 0
	for seed := range uint64(100) {
		simulation.Run(func(_ context.Context, w *simulation.World) error {
			f, _ := w.Node("a").FS().Create("f")
			_, _ = f.WriteAt(make([]byte, 5120), 0)
			_ = f.Sync()
			w.Node("a").RotDisk(0.1)
			p := make([]byte, 5120)
			_, _ = f.ReadAt(p, 0)
			for _, n := range differ(p, make([]byte, 5120)) {
				rotted += n
			}
			return nil
		}, simulation.Options{Seed: seed + 1})
	}
	require.InDelta(t, 100, rotted, 40)
}
