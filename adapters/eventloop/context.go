package eventloop

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/braidgo/braid/suspend"
)

// WithContext returns c with its I/O bound to ctx: once ctx is done, Reads and Writes through it, those under way
// included, fail with the error of the cancellation. c itself is not closed and not changed, unless it is a foreign
// net.Conn: of that the deadlines are used, and once ctx has ended an operation the deadline of its
// direction is in the past.
//
// It layers: with several contexts, the first that is done ends the I/O. A wait leaves nothing behind with any of
// them, so a connection that is kept may be given one context after another.
func WithContext(ctx context.Context, c net.Conn) net.Conn {
	if ctx.Done() == nil {
		return c
	}
	switch c := c.(type) {
	case *Conn:
		return &boundConn{Conn: c, own: c, cs: contexts{ctx}}
	case *boundConn:
		return &boundConn{Conn: c.Conn, own: c.own, cs: append(contexts{ctx}, c.cs...)}
	}
	return &boundConn{Conn: c, cs: contexts{ctx}}
}

// A boundConn is a net.Conn and the contexts that its I/O fails with.
type boundConn struct {
	net.Conn
	own *Conn // the same, nil if it is foreign
	cs  contexts
}

// NetConn returns the net.Conn that was given to WithContext.
func (b *boundConn) NetConn() net.Conn { return b.Conn }

func (b *boundConn) Read(p []byte) (int, error) {
	if b.own != nil {
		return b.own.read(b.cs, p)
	}
	return b.foreign(p, b.Conn.Read, b.Conn.SetReadDeadline)
}

func (b *boundConn) Write(p []byte) (int, error) {
	if b.own != nil {
		return b.own.write(b.cs, p)
	}
	return b.foreign(p, b.Conn.Write, b.Conn.SetWriteDeadline)
}

// foreign does I/O that only a deadline can end.
func (b *boundConn) foreign(p []byte, do func([]byte) (int, error), deadline func(time.Time) error) (int, error) {
	if err := b.cs.err(); err != nil {
		return 0, err
	}
	for _, c := range b.cs {
		if c.Done() != nil {
			defer context.AfterFunc(c, func() { _ = deadline(time.Unix(1, 0)) })()
		}
	}
	n, err := do(p)
	if err != nil {
		if cause := b.cs.err(); cause != nil {
			err = cause
		}
	}
	return n, err
}

// CloseRead is that of the net.Conn, if it has one.
func (b *boundConn) CloseRead() error {
	if c, ok := b.Conn.(interface{ CloseRead() error }); ok {
		return c.CloseRead()
	}
	return errNotSupported
}

// CloseWrite is that of the net.Conn, if it has one.
func (b *boundConn) CloseWrite() error {
	if c, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errNotSupported
}

// blocking runs f, which may block, for whoever calls.
func blocking(ctx context.Context, f func()) error { return suspend.Blocking(ctx, f) }

var _ io.ReadWriteCloser = (*boundConn)(nil)
