package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ReadFrom writes all that it reads from r to c, and suspends the caller while there is no room. It implements
// io.ReaderFrom, so io.Copy calls it. The bytes of a regular file go from the file to the socket within the system,
// also through an io.LimitedReader, where the system can do that. Other callers see them as a single Write. A page of
// the file that is not in memory holds the reactor until the disk has read it.
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

// An openFile is an *os.File, or what its method WriteTo gives to io.Copy.
type openFile interface {
	io.Reader
	Stat() (os.FileInfo, error)
	SyscallConn() (syscall.RawConn, error)
}

// A plainWriter has no method ReadFrom, so that io.Copy does not call it again.
type plainWriter struct {
	c  *Conn
	cs contexts
}

func (w plainWriter) Write(p []byte) (int, error) { return w.c.write(w.cs, p) }

// WriteBuffers writes all of b, as one Write: no other Write comes between. It is what net.Buffers does with a connection of package
// net. As there, it consumes b. If it fails, b has what is left, and n bytes have been written.
func (c *Conn) WriteBuffers(b *net.Buffers) (n int64, err error) {
	n, err = c.fd.writeBuffers(nil, b)
	return n, c.fail("writev", err)
}

// ReadFrom calls ReadFrom of the net.Conn, with the contexts.
func (b *boundConn) ReadFrom(r io.Reader) (int64, error) {
	if b.own != nil {
		return b.own.readFrom(b.cs, r)
	}
	return io.Copy(struct{ io.Writer }{b}, r)
}

// WriteBuffers calls WriteBuffers of the net.Conn, with the contexts. A foreign net.Conn writes the buffers one after
// another.
func (b *boundConn) WriteBuffers(v *net.Buffers) (n int64, err error) {
	if b.own == nil {
		return v.WriteTo(struct{ io.Writer }{b})
	}
	n, err = b.own.fd.writeBuffers(b.cs, v)
	return n, b.own.fail("writev", err)
}
