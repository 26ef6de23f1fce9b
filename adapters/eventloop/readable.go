package eventloop

import "github.com/braidgo/braid/suspend"

// ReadableOp returns an operation that waits until a Read would return without waiting. That happens when bytes are
// available, the peer has closed, a deadline has passed, or c is closed. The operation reads nothing. In all these
// cases its error is nil, because the Read that follows returns the reason. With the operation, one Select can wait
// for a connection, a message and a timeout. If another reader takes the bytes first, the Read still waits. Any number
// of tasks may wait for the same connection. On systems without epoll, the operation fails with errors.ErrUnsupported.
func (c *Conn) ReadableOp() suspend.Op[struct{}] { return c.fd.readable() }

func (c *packetConn) ReadableOp() suspend.Op[struct{}] { return c.fd.readable() }

func (d *fd) readable() suspend.Op[struct{}] {
	return suspend.Map(d.readableOp(), func(_ verdict, err error) (struct{}, error) { return struct{}{}, err })
}
