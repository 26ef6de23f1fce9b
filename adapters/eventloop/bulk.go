package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ReadFrom reads r to its end, and writes all bytes to c. ReadFrom suspends the caller while the send buffer is full.
// ReadFrom implements io.ReaderFrom, so io.Copy calls it. If the system supports it, ReadFrom sends a regular file
// without copying its bytes through the program, even if r is an io.LimitedReader for the file. Other Writes are not
// interleaved with such a transfer. If a page of the file is not in memory, the reactor stalls until the page has been
// read from the disk.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return c.readFrom(nil, r) }

func (c *Conn) readFrom(cs contexts, r io.Reader) (n int64, err error) {
	limited, _ := r.(*io.LimitedReader)
	from, most := r, int64(1)<<62
	if limited != nil {
		from, most = limited.R, limited.N
	}
	if f, ok := from.(openFile); ok && most > 0 {
		n, err = c.fd.sendFile(cs, f, most)
		if limited != nil {
			limited.N -= n
		}
		if !errors.Is(err, errNotSupported) {
			return n, c.fail("sendfile", err)
		}
	}
	m, err := io.Copy(plainWriter{c, cs}, r)
	return n + m, err
}

// An openFile is an *os.File, or the wrapper that os.File's method WriteTo passes to io.Copy.
type openFile interface {
	io.Reader
	Stat() (os.FileInfo, error)
	SyscallConn() (syscall.RawConn, error)
}

// A plainWriter writes to a Conn, and hides the Conn's method ReadFrom, because io.Copy would call that method again.
type plainWriter struct {
	c  *Conn
	cs contexts
}

func (w plainWriter) Write(p []byte) (int, error) { return w.c.write(w.cs, p) }

// WriteBuffers writes all of b as a single Write, so that other Writes are not interleaved with it. Like
// [net.Buffers.WriteTo], WriteBuffers removes the written bytes from b. If WriteBuffers fails, n bytes have been
// written, and b holds the rest.
func (c *Conn) WriteBuffers(b *net.Buffers) (n int64, err error) {
	n, err = c.fd.writeBuffers(nil, b)
	return n, c.fail("writev", err)
}

// ReadFrom calls the Conn's ReadFrom with the contexts of b. For a foreign net.Conn, ReadFrom copies the bytes through
// Write.
func (b *boundConn) ReadFrom(r io.Reader) (int64, error) {
	if b.own != nil {
		return b.own.readFrom(b.cs, r)
	}
	return io.Copy(struct{ io.Writer }{b}, r)
}

// WriteBuffers calls the Conn's WriteBuffers with the contexts of b. For a foreign net.Conn, WriteBuffers writes one
// buffer after another.
func (b *boundConn) WriteBuffers(v *net.Buffers) (n int64, err error) {
	if b.own == nil {
		return v.WriteTo(struct{ io.Writer }{b})
	}
	n, err = b.own.fd.writeBuffers(b.cs, v)
	return n, b.own.fail("writev", err)
}
