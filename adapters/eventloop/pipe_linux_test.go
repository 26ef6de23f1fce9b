//go:build !braid_portable

package eventloop_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// pipe2 returns the ends of a new pipe as files.
func pipe2(t *testing.T, flags int) (r, w *os.File) {
	var p [2]int
	require.NoError(t, unix.Pipe2(p[:], unix.O_CLOEXEC|flags))
	return os.NewFile(uintptr(p[0]), "r"), os.NewFile(uintptr(p[1]), "w")
}

// A read of a pipe in packet mode returns one packet, although there may be more. It waits only if there is none.
func TestAPipeOfPackets(t *testing.T) {
	l := open(t, eventloop.Options{})
	r, w := pipe2(t, unix.O_DIRECT)
	defer w.Close()
	c := must(l.Adopt(r))
	defer c.Close()
	must(w.WriteString("one"))
	must(w.WriteString("two"))
	within(t, func() {
		task(t, l, func() {
			p := make([]byte, 100)
			for _, want := range []string{"one", "two"} {
				require.Equal(t, want, string(p[:must(c.Read(p))]))
			}
		})
	})
}

// A pipe with room for one page carries a megabyte. After a partial write the task waits without another system call, so it must
// be woken by the room that already exists.
func TestASmallPipe(t *testing.T) {
	l := open(t, eventloop.Options{})
	data := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	small := func() (r, w *os.File) {
		r, w = pipe2(t, 0)
		must(unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096))
		return r, w
	}
	t.Run("to a goroutine", func(t *testing.T) {
		r, w := small()
		c := must(l.Adopt(w))
		require.NoError(t, l.Go(func() { defer c.Close(); must(c.Write(data)) }))
		within(t, func() { require.True(t, bytes.Equal(data, must(io.ReadAll(r)))) })
		require.NoError(t, r.Close())
	})
	t.Run("from a goroutine", func(t *testing.T) {
		r, w := small()
		c := must(l.Adopt(r))
		defer c.Close()
		go func() { defer w.Close(); must(w.Write(data)) }()
		within(t, func() { task(t, l, func() { require.True(t, bytes.Equal(data, must(io.ReadAll(c)))) }) })
	})
	between := func(t *testing.T, r, w *os.File) {
		from, to := must(l.Adopt(r)), must(l.Adopt(w))
		defer from.Close()
		require.NoError(t, l.Go(func() { defer to.Close(); must(to.Write(data)) }))
		within(t, func() { task(t, l, func() { require.True(t, bytes.Equal(data, must(io.ReadAll(from)))) }) })
	}
	t.Run("between tasks", func(t *testing.T) {
		r, w := small()
		between(t, r, w)
	})
	t.Run("a FIFO, which does not support RWF_NOWAIT", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "fifo")
		require.NoError(t, unix.Mkfifo(name, 0o600))
		r := must(os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0))
		w := must(os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK, 0))
		must(unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096))
		between(t, r, w)
	})
}

// The end of a pipe comes with the last data, before the read, or after it.
func TestTheEndOfAPipe(t *testing.T) {
	l := open(t, eventloop.Options{})
	for name, closes := range map[string]int{"before the read": 0, "after it": 1, "later": 2} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe2(t, 0)
			c := must(l.Adopt(r))
			defer c.Close()
			must(w.WriteString("hello"))
			end := func(at int) {
				if closes == at {
					w.Close()
				}
			}
			end(0)
			ended := make(chan error, 1)
			require.NoError(t, l.Go(func() {
				p := make([]byte, 100)
				require.Equal(t, 5, must(c.Read(p)))
				end(1)
				_, err := c.Read(p)
				ended <- err
			}))
			if closes == 2 {
				suspended(t, l, 1)
				end(2)
			}
			within(t, func() { require.Equal(t, io.EOF, <-ended) })
		})
	}
}

// A pipe that another process has made blocking does not block its reactor. Programs often share the descriptor with their
// parent.
func TestAPipeThatBlocks(t *testing.T) {
	l := open(t, eventloop.Options{HandOver: -1})
	r, w := pipe2(t, 0)
	shared := [2]int{must(unix.Dup(int(r.Fd()))), must(unix.Dup(int(w.Fd())))}
	from, to := must(l.Adopt(r)), must(l.Adopt(w))
	defer from.Close()
	defer to.Close()
	for _, fd := range shared {
		defer unix.Close(fd)
		require.NoError(t, unix.SetNonblock(fd, false))
	}
	data := make([]byte, 1<<20)
	within(t, func() {
		task(t, l, func() {
			require.NoError(t, suspend.Here().Go(func() { must(to.Write(data)) })) // more than the pipe has room for
			got := make([]byte, len(data))
			for rest := got; len(rest) > 0; { // reads in the same task: if the reactor blocked in the write, this would never run
				rest = rest[must(from.Read(rest[:min(len(rest), 32<<10)])):]
			}
			require.Equal(t, data, got)
		})
	})
}

// A write synchronizes before the read that gets its bytes, also for the race detector, with a pipe between a goroutine and a
// task.
func TestAPipeSynchronizes(t *testing.T) {
	l := open(t, eventloop.Options{})
	r, w := pipe2(t, 0)
	c := must(l.Adopt(r))
	defer c.Close()
	var x int
	go func() { x = 1; must(w.Write([]byte("a"))) }()
	within(t, func() {
		task(t, l, func() {
			p := make([]byte, 1)
			must(c.Read(p))
			if x != 1 {
				t.Error(x)
			}
		})
	})
	w.Close()
}
