package eventloop

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// A Conn is a net.Conn of a Loop. Its methods may be called concurrently, from tasks of any scheduler and from plain
// goroutines. A call that has to wait suspends its caller. Reads are served in the order in which they were called, and
// so are Writes. Concurrent Writes are not interleaved. Deadlines and Close take effect immediately on operations that
// wait.
//
// A task whose operations never have to wait yields after 64 operations, so that other tasks can run. On the reactor of
// the Conn, such a task also yields when an operation begins after the task has run for a millisecond.
type Conn struct {
	fd            *fd
	network       string
	local, remote net.Addr
}

var errClosed = net.ErrClosed

// yieldEvery is the number of operations in one direction without a wait after which an operation yields. On the
// reactor, the type share limits operations instead.
const yieldEvery uint8 = 64

// Read reads the available bytes into p. Read suspends the caller while no bytes are available.
func (c *Conn) Read(p []byte) (int, error) { return c.hasRead(c.fd.read(nil, p)) }

// Write writes all of p. Write suspends the caller while the send buffer is full. If Write fails, n bytes have been
// written.
func (c *Conn) Write(p []byte) (n int, err error) { return c.write(nil, p) }

// Close closes c. Operations under way and later operations fail with net.ErrClosed.
func (c *Conn) Close() error { return c.fail("close", c.fd.close()) }

// CloseRead shuts down the reading side of a socket.
func (c *Conn) CloseRead() error { return c.fail("close", c.fd.closeRead()) }

// CloseWrite shuts down the writing side of a socket, so that the peer's Reads end with io.EOF.
func (c *Conn) CloseWrite() error { return c.fail("close", c.fd.closeWrite()) }

// LocalAddr returns the local address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline calls SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the time after which Reads, including those under way, fail with os.ErrDeadlineExceeded. The
// zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.fail("set", c.fd.setReadDeadline(t)) }

// SetWriteDeadline sets the time after which Writes, including those under way, fail with os.ErrDeadlineExceeded. The
// zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.fail("set", c.fd.setWriteDeadline(t)) }

// hasRead returns the results of a Read. It must not be inlined, because its values would enlarge the frame in which a task waits.
//
//go:noinline
func (c *Conn) hasRead(n int, err error) (int, error) {
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

// Dial connects to address on the given network, as net.Dial does. The network must be tcp, tcp4, tcp6, unix, udp, udp4
// or udp6. Dial suspends the caller. Package net resolves names, in a call of suspend.Blocking. If a name has several
// addresses, Dial tries them in order. If ctx is done before the connection is established, Dial fails with the
// cancellation error. An established connection does not depend on ctx.
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

// failed adds the operation and the address to err, unless err is already an *net.OpError.
func failed(op, network, address string, err error) error {
	if e := (*net.OpError)(nil); errors.As(err, &e) {
		return err
	}
	if e := net.UnknownNetworkError(""); errors.As(err, &e) {
		return &net.OpError{Op: op, Net: network, Err: err}
	}
	return &net.OpError{Op: op, Net: network, Addr: namedAddr{network, address}, Err: err}
}

// A namedAddr is an address as the caller specified it.
type namedAddr struct{ network, address string }

func (a namedAddr) Network() string { return a.network }
func (a namedAddr) String() string  { return a.address }

// Pipe returns the two ends of a pipe of the operating system. Bytes written to w are read from r.
func (l *Loop) Pipe() (r, w *Conn, err error) { return pipe(l) }

// A pipeAddr is the address of each end of a Pipe.
type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
