//go:build !braid_portable

package eventloop_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/adapters/eventloop"
)

// The Open of a FIFO without a writer does not block its reactor. A FIFO does not use a ring.
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

// An open waits until the holder of a lease of the file gives it back. An open for the path alone needs no right to read.
func TestOpenWaitsForALease(t *testing.T) {
	eachFile(t, eventloop.Options{}, func(t *testing.T, l *eventloop.Loop) {
		name := written(t, "0123456789")
		p := must(l.OpenFile(name, unix.O_PATH, 0))
		require.NoError(t, p.Close())
		holder := must(os.OpenFile(name, os.O_RDWR, 0))
		defer holder.Close()
		if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
			t.Skip("this file system has no leases: ", err)
		}
		opened := make(chan error)
		go func() {
			f, err := l.Open(name)
			if err == nil {
				err = f.Close()
			}
			opened <- err
		}()
		select {
		case err := <-opened:
			t.Error("it did not wait: ", err)
			return
		case <-time.After(50 * time.Millisecond):
		}
		_ = must(unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_UNLCK))
		within(t, func() { require.NoError(t, <-opened) })
	})
}
