//go:build !linux || braid_portable

package eventloop

import (
	"io"
	"net"
)

func (d *fd) sendFile(cs contexts, f openFile, most int64) (n int64, err error) {
	stock, ok := d.stock.(io.ReaderFrom)
	if _, isConn := d.stock.(net.Conn); !ok || !isConn {
		return 0, errNotSupported
	}
	_, err = d.wr.do(d, cs, func() (int, error) {
		n, err = stock.ReadFrom(io.LimitReader(f, most))
		return 0, err
	})
	return n, err
}

func (d *fd) writeBuffers(cs contexts, b *net.Buffers) (n int64, err error) {
	_, err = d.wr.do(d, cs, func() (int, error) {
		n, err = b.WriteTo(d.stock.(io.Writer))
		return 0, err
	})
	return n, err
}
