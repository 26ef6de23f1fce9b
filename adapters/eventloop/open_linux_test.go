//go:build !braid_portable

package eventloop_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
)

// A FIFO without a writer holds up nobody. It is no file for a ring.
func TestOpenDoesNotWait(t *testing.T) {
	eachFile(t, eventloop.Options{}, func(t *testing.T, l *eventloop.Loop) {
		name := filepath.Join(t.TempDir(), "fifo")
		require.NoError(t, syscall.Mkfifo(name, 0o600))
		within(t, func() {
			for _, flag := range []int{os.O_RDONLY, os.O_RDONLY | syscall.O_NONBLOCK, os.O_RDWR} {
				f, err := l.OpenFile(name, flag, 0)
				require.NoError(t, err)
				_, err = f.ReadAt(make([]byte, 1), 0)
				require.ErrorIs(t, err, syscall.ESPIPE)
				require.NoError(t, f.Close())
			}
			_, err := l.OpenFile(name, os.O_WRONLY, 0)
			require.ErrorIs(t, err, syscall.ENXIO)
		})
	})
}
