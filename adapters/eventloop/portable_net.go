//go:build !linux || braid_portable

package eventloop

import (
	"context"
	"net"
	"os"

	"github.com/braidgo/braid/suspend"
)

func listen(l *Loop, network, address string) (*Listener, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
	default:
		return nil, net.UnknownNetworkError(network)
	}
	var stock net.Listener
	var err error
	if e := suspend.Blocking(context.Background(), func() { stock, err = net.Listen(network, address) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	ln := &Listener{loop: l, network: network, addr: stock.Addr()}
	d, err := newFD(l.reactors[0], stock, ln.fdClosed)
	if err != nil {
		return nil, err
	}
	ln.fds = append(ln.fds, d)
	return ln, nil
}

func accept(ln *Listener, cs contexts, ds []*fd, r *reactor) (*Conn, error) {
	var c net.Conn
	d := ds[0]
	if _, err := d.rd.do(d, cs, func() (_ int, err error) {
		c, err = d.stock.(net.Listener).Accept()
		return 0, err
	}); err != nil {
		return nil, err
	}
	return newConn(r, c, ln.network)
}

func newConn(r *reactor, c net.Conn, network string) (*Conn, error) {
	d, err := newFD(r, c, nil)
	if err != nil {
		return nil, err
	}
	return &Conn{fd: d, network: network, local: c.LocalAddr(), remote: c.RemoteAddr()}, nil
}

func dial(l *Loop, cs contexts, network, address string) (*Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
	case "udp", "udp4", "udp6":
		return dialUDP(l, cs, network, address)
	default:
		return nil, net.UnknownNetworkError(network)
	}
	var c net.Conn
	h := &helper{f: func() (_ int, err error) {
		c, err = new(net.Dialer).DialContext(cs[0], network, address)
		return 0, err
	}}
	err := h.wait(cs[0])
	if err != nil && h.started {
		_ = h.wait(context.Background()) // the dialer uses the same context, so it ends soon
	}
	h.ended.Rethrow()
	if h.over && h.err == nil {
		return newConn(l.pick(), c, network)
	}
	if cause := cs.err(); cause != nil {
		return nil, cause
	}
	if err == nil {
		err = h.err
	}
	return nil, err
}

func pipe(l *Loop) (r, w *Conn, err error) {
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	on := l.pick()
	end := func(f *os.File) (*Conn, error) {
		d, err := newFD(on, f, nil)
		if err != nil {
			return nil, err
		}
		return &Conn{fd: d, network: "pipe", local: pipeAddr{}, remote: pipeAddr{}}, nil
	}
	if r, err = end(pr); err != nil {
		_ = pw.Close()
		return nil, nil, err
	}
	if w, err = end(pw); err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	return r, w, nil
}
