package eventloop_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// random returns n bytes, the same at each call.
func random(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	return p
}

// sparse returns an open file of n zeros.
func sparse(t testing.TB, n int64) *os.File {
	f := file(t, nil)
	require.NoError(t, os.Truncate(f.Name(), n))
	return f
}

// file returns an open file with the given content.
func file(t testing.TB, content []byte) *os.File {
	f := must(os.Open(written(t, string(content))))
	t.Cleanup(func() { f.Close() })
	return f
}

// A whole file, a part of it, a part of the rest, and a reader that is not a file arrive completely. The offset of the file is
// then just after the part that was sent.
func TestReadFrom(t *testing.T) {
	l := open(t, eventloop.Options{})
	content := random(5 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, bind := range map[string]func(c net.Conn) net.Conn{
		"bare":  func(c net.Conn) net.Conn { return c },
		"bound": func(c net.Conn) net.Conn { return eventloop.WithContext(ctx, c) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, l)
			defer b.Close()
			f := file(t, content)
			got := make(chan []byte, 1)
			require.NoError(t, l.Go(func() { got <- must(io.ReadAll(b)) }))
			task(t, l, func() {
				defer a.Close()
				c := bind(a)
				limited := &io.LimitedReader{R: f, N: 100}
				for _, part := range []struct {
					r io.Reader
					n int64
				}{{limited, 100}, {io.LimitReader(f, 3<<20), 3 << 20}, {f, 2<<20 - 100}, {f, 0}, {bytes.NewBufferString("end"), 3}} {
					n, err := io.Copy(c, part.r)
					require.NoError(t, err)
					require.Equal(t, part.n, n)
				}
				require.Zero(t, limited.N)
			})
			within(t, func() { require.True(t, bytes.Equal(append(content[:len(content):len(content)], "end"...), <-got)) })
		})
	}
}

// The context of a bound connection, a deadline and a Close end a ReadFrom that waits for room. The file's offset has advanced by
// the number of bytes that ReadFrom returns.
func TestReadFromEnds(t *testing.T) {
	l := open(t, eventloop.Options{})
	f := sparse(t, 64<<20)
	for name, end := range map[string]struct {
		by  func(c net.Conn, cancel func())
		err error
	}{
		"context":  {func(_ net.Conn, cancel func()) { cancel() }, context.Canceled},
		"deadline": {func(c net.Conn, _ func()) { _ = c.SetWriteDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"Close":    {func(c net.Conn, _ func()) { _ = c.Close() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, l)
			defer a.Close()
			defer b.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			must(f.Seek(0, io.SeekStart))
			type result struct {
				n   int64
				err error
			}
			got := make(chan result, 1)
			c := eventloop.WithContext(ctx, a)
			require.NoError(t, l.Go(func() { n, err := io.Copy(c, f); got <- result{n, err} }))
			schedtest.Eventually(t, "some is sent", func() bool { return must(f.Seek(0, io.SeekCurrent)) > 0 })
			suspended(t, l, 1)
			end.by(c, cancel)
			within(t, func() {
				r := <-got
				require.ErrorIs(t, r.err, end.err)
				require.Positive(t, r.n)
				require.Equal(t, r.n, must(f.Seek(0, io.SeekCurrent)))
			})
		})
	}
}

// Two tasks send files at the same time, and each file arrives in one piece. Pipes have no sendfile, but their ReadFrom takes a
// file, too.
func TestReadFromIsOneWrite(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer b.Close()
	zeros, ones := make([]byte, 4<<20), bytes.Repeat([]byte{1}, 4<<20)
	sent := make(chan error, 2)
	for _, content := range [][]byte{zeros, ones} {
		f := file(t, content)
		require.NoError(t, l.Go(func() { _, err := io.Copy(a, f); sent <- err }))
	}
	task(t, l, func() {
		all := make([]byte, 8<<20)
		must(io.ReadFull(b, all))
		changes := 0
		for i := range all[1:] {
			if all[i] != all[i+1] {
				changes++
			}
		}
		require.Equal(t, 1, changes)
	})
	require.NoError(t, errors.Join(<-sent, <-sent))
	_ = a.Close()

	r, w, err := l.Pipe()
	require.NoError(t, err)
	defer r.Close()
	f := file(t, ones)
	require.NoError(t, l.Go(func() { _, err := io.Copy(w, f); _ = w.Close(); sent <- err }))
	task(t, l, func() { require.Len(t, must(io.ReadAll(r)), len(ones)) })
	require.NoError(t, <-sent)
}

func TestWriteBuffers(t *testing.T) {
	l := open(t, eventloop.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, bind := range map[string]func(c net.Conn) net.Conn{
		"bare":  func(c net.Conn) net.Conn { return c },
		"bound": func(c net.Conn) net.Conn { return eventloop.WithContext(ctx, c) },
		"foreign": func(c net.Conn) net.Conn {
			return eventloop.WithContext(ctx, struct{ net.Conn }{c})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, l)
			defer a.Close()
			content := random(6 << 20)
			var v net.Buffers
			for rest := content; ; {
				n := min(len(rest), rand.IntN(8000))
				v = append(v, rest[:n], nil)
				if rest = rest[n:]; len(rest) == 0 {
					break
				}
			}
			got := make(chan []byte, 1)
			require.NoError(t, l.Go(func() { all := make([]byte, len(content)); must(io.ReadFull(b, all)); got <- all }))
			task(t, l, func() {
				n, err := bind(a).(interface {
					WriteBuffers(*net.Buffers) (int64, error)
				}).WriteBuffers(&v)
				require.NoError(t, err)
				require.EqualValues(t, len(content), n)
				require.Empty(t, v)
			})
			require.True(t, bytes.Equal(content, <-got))

			v = net.Buffers{content, []byte("last")}
			_ = b.Close()
			task(t, l, func() {
				n, err := a.WriteBuffers(&v)
				require.Error(t, err) // a connection reset
				left := 0
				for _, p := range v {
					left += len(p)
				}
				require.EqualValues(t, len(content)+4, n+int64(left), "the written bytes and the rest are all bytes")
			})
		})
	}
}
