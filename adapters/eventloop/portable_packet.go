//go:build !linux || braid_portable

package eventloop

import (
	"io"
	"net"

	"github.com/braidgo/braid/suspend"
)

type stockSocket = io.Closer

// adopt returns an fd for stock, registered with r.
func adopt(r *reactor, stock io.Closer) (*fd, error) { return newFD(r, stock, nil) }

func (d *fd) readPacket(p []byte) (n int, from net.Addr, err error) {
	n, err = d.rd.do(d, nil, func() (n int, err error) {
		n, from, err = d.stock.(net.PacketConn).ReadFrom(p)
		return n, err
	})
	return n, from, err
}

func (d *fd) writePacket(p []byte, to *net.UDPAddr) (int, error) {
	return d.wr.do(d, nil, func() (int, error) { return d.stock.(net.PacketConn).WriteTo(p, to) })
}

// A verdict is the outcome of a wait for a side.
type verdict struct{}

func (verdict) expired() bool { return false }

func (d *fd) hasInput() bool { return false }

func (d *fd) readableOp() suspend.Op[verdict] { return suspend.OpOf[verdict](&unsupported{}) }

// An unsupported is the suspend.Source of an operation that fails immediately.
type unsupported struct{ guard suspend.Guard }

func (u *unsupported) Guard() *suspend.Guard            { return &u.guard }
func (u *unsupported) Enqueue(suspend.Resumer[verdict]) {}
func (u *unsupported) Remove(suspend.Resumer[verdict])  {}
func (u *unsupported) Try() (v verdict, ok bool, err error) {
	return v, true, errNotSupported
}
