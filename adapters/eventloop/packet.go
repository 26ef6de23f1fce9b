package eventloop

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A packetConn is a UDP socket of a Loop.
type packetConn struct {
	fd      *fd
	network string
	local   net.Addr
}

// ListenPacket opens a UDP socket on address, as net.ListenPacket does. The network must be udp, udp4 or udp6. Package
// net resolves names, in a call of suspend.Blocking. For a socket with a single peer, use Dial, which returns a Conn:
// each Write sends a packet, and each Read receives a packet.
//
// The methods of the result may be called concurrently, from tasks of any scheduler and from plain goroutines. A call
// that has to wait suspends its caller. Deadlines and Close take effect immediately on operations that wait. A ReadFrom
// of a packet that is longer than its buffer loses the rest. The result also has the methods SyscallConn and ReadableOp
// of a Conn.
func (l *Loop) ListenPacket(network, address string) (net.PacketConn, error) {
	if !isUDP(network) {
		return nil, failed("listen", network, address, net.UnknownNetworkError(network))
	}
	var stock net.PacketConn
	var err error
	if e := suspend.Blocking(context.Background(), func() { stock, err = net.ListenPacket(network, address) }); e != nil {
		return nil, failed("listen", network, address, e)
	}
	if err != nil {
		return nil, err
	}
	local := stock.LocalAddr()
	d, err := adopt(l.pick(), stock.(stockSocket))
	if err != nil {
		_ = stock.Close()
		return nil, failed("listen", network, address, err)
	}
	return &packetConn{d, network, local}, nil
}

func isUDP(network string) bool { return network == "udp" || network == "udp4" || network == "udp6" }

// dialUDP connects a UDP socket. The connect itself does not wait, but resolving a name may.
func dialUDP(l *Loop, cs contexts, network, address string) (*Conn, error) {
	var stock net.Conn
	var err error
	if e := suspend.Blocking(cs[0], func() { stock, err = new(net.Dialer).DialContext(cs[0], network, address) }); e != nil {
		return nil, e
	}
	if err != nil {
		if cause := cs.err(); cause != nil {
			err = cause
		}
		return nil, err
	}
	c := &Conn{network: network, local: stock.LocalAddr(), remote: stock.RemoteAddr()}
	if c.fd, err = adopt(l.pick(), stock.(stockSocket)); err != nil {
		_ = stock.Close()
		return nil, err
	}
	return c, nil
}

func (c *packetConn) ReadFrom(p []byte) (n int, from net.Addr, err error) {
	n, from, err = c.fd.readPacket(p)
	return n, from, c.fail("read", err)
}

func (c *packetConn) WriteTo(p []byte, to net.Addr) (int, error) {
	addr, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, c.fail("write", syscall.EINVAL)
	}
	n, err := c.fd.writePacket(p, addr)
	return n, c.fail("write", err)
}

func (c *packetConn) Close() error        { return c.fail("close", c.fd.close()) }
func (c *packetConn) LocalAddr() net.Addr { return c.local }

func (c *packetConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *packetConn) SetReadDeadline(t time.Time) error {
	return c.fail("set", c.fd.setReadDeadline(t))
}

func (c *packetConn) SetWriteDeadline(t time.Time) error {
	return c.fail("set", c.fd.setWriteDeadline(t))
}

func (c *packetConn) SyscallConn() (syscall.RawConn, error) {
	return rawConn{&Conn{fd: c.fd, network: c.network, local: c.local}, nil}, nil
}

func (c *packetConn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Err: err}
}
