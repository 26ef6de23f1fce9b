package eventloop

import "github.com/braidgo/braid/suspend"

// ReadableOp is the wait until a Read would not wait: there are bytes, the peer has closed, a deadline has passed, or c
// is closed. It reads nothing, and its error is nil in all these cases, since the Read says what it is. So a
// connection, a message and a timeout can be the cases of one Select. Another reader may be quicker, and then the Read
// still waits. Any number of tasks may wait for it. On systems without epoll it fails with errors.ErrUnsupported.
func (c *Conn) ReadableOp() suspend.Op[struct{}] { return c.fd.readable() }

// ReadableOp is the wait until a ReadFrom would not wait, see [Conn.ReadableOp].
func (c *PacketConn) ReadableOp() suspend.Op[struct{}] { return c.fd.readable() }

func (d *fd) readable() suspend.Op[struct{}] {
	return suspend.Map(d.readableOp(), func(_ verdict, err error) (struct{}, error) { return struct{}{}, err })
}
