package eventloop

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// A Conn is a net.Conn of a Loop. Its methods may be called concurrently, from tasks of any scheduler and from plain
// goroutines; a caller that has to wait suspends. Reads are served in the order in which they were called, and so are
// Writes, whole. Deadlines and Close act at once on operations that wait.
//
// A task whose operations never have to wait lets others run after 64 of them. On the reactor of the Conn it does so as
// soon as an operation finds that others have waited for a millisecond.
type Conn struct {
	fd            *fd
	network       string
	local, remote net.Addr
}

var errClosed = net.ErrClosed

// yieldEvery is how many operations of one direction may succeed without a wait before one yields, elsewhere than on the
// reactor.
const yieldEvery uint8 = 64

// Read reads the available bytes into p, and suspends the caller while there are none.
func (c *Conn) Read(p []byte) (int, error) { return c.read(nil, p) }

// Write writes all of p, and suspends the caller while there is no room. If it fails, n bytes have been written.
func (c *Conn) Write(p []byte) (n int, err error) { return c.write(nil, p) }

// Close closes c. Operations under way and later operations fail with net.ErrClosed.
func (c *Conn) Close() error { return c.fail("close", c.fd.close()) }

// CloseRead shuts the reading side of a socket down.
func (c *Conn) CloseRead() error { return c.fail("close", c.fd.closeRead()) }

// CloseWrite shuts the writing side of a socket down: the peer reads io.EOF.
func (c *Conn) CloseWrite() error { return c.fail("close", c.fd.closeWrite()) }

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when Reads, also those under way, fail with os.ErrDeadlineExceeded; zero: never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.fail("set", c.fd.setReadDeadline(t)) }

// SetWriteDeadline sets when Writes, also those under way, fail with os.ErrDeadlineExceeded; zero: never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.fail("set", c.fd.setWriteDeadline(t)) }

func (c *Conn) read(cs contexts, p []byte) (int, error) {
	n, err := c.fd.read(cs, p)
	if err != nil && err != io.EOF {
		err = c.fail("read", err)
	}
	return n, err
}

func (c *Conn) write(cs contexts, p []byte) (int, error) {
	n, err := c.fd.write(cs, p)
	return n, c.fail("write", err)
}

func (c *Conn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: c.remote, Err: err}
}

// Dial connects to address on network, which is tcp, tcp4, tcp6, unix, udp, udp4 or udp6, as net.Dial does. It suspends
// the caller. Names are resolved by the net package, through suspend.Blocking; several addresses are tried in order. If
// ctx is done first, or already, Dial fails with the error of the cancellation; a connection that is established stays
// so.
func (l *Loop) Dial(ctx context.Context, network, address string) (*Conn, error) {
	cs := contexts{ctx}
	err := cs.err()
	if err == nil {
		var c *Conn
		if c, err = dial(l, cs, network, address); err == nil {
			return c, nil
		}
	}
	return nil, failed("dial", network, address, err)
}

// failed is the error of an operation on an address; the error may say it already.
func failed(op, network, address string, err error) error {
	if e := (*net.OpError)(nil); errors.As(err, &e) {
		return err
	}
	if e := net.UnknownNetworkError(""); errors.As(err, &e) {
		return &net.OpError{Op: op, Net: network, Err: err}
	}
	return &net.OpError{Op: op, Net: network, Addr: namedAddr{network, address}, Err: err}
}

// A namedAddr is an address as the user has given it.
type namedAddr struct{ network, address string }

func (a namedAddr) Network() string { return a.network }
func (a namedAddr) String() string  { return a.address }

// Pipe returns the ends of a pipe of the operating system: bytes written to w are read from r.
func (l *Loop) Pipe() (r, w *Conn, err error) { return pipe(l) }

// pipeAddr is the address of the ends of a Pipe.
type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
