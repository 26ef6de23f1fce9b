package eventloop

import (
	"context"
	"net"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// WithContext returns c with its I/O bound to ctx: once ctx is done, Reads and Writes through it, those under way
// included, fail with the error of the cancellation. c itself is not closed and not changed, unless it is a foreign
// net.Conn: its deadlines are used, and once ctx has ended during an operation the deadline of that
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
	var over atomicx.Bool // a callback from now on is too late
	var callbacks countdown
	var stops []func() bool
	defer func() {
		over.Store(true)
		running := false
		for _, stop := range stops {
			if stop() {
				callbacks.done()
			} else {
				running = true
			}
		}
		if running {
			callbacks.wait()
		}
	}()
	for _, c := range b.cs {
		if c.Done() != nil {
			callbacks.add(1)
			stops = append(stops, context.AfterFunc(c, func() {
				defer callbacks.done()
				if !over.Load() {
					_ = deadline(time.Unix(1, 0))
				}
			}))
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

// CloseRead calls CloseRead of the net.Conn, and fails if there is none.
func (b *boundConn) CloseRead() error {
	if c, ok := b.Conn.(interface{ CloseRead() error }); ok {
		return c.CloseRead()
	}
	return errNotSupported
}

// CloseWrite calls CloseWrite of the net.Conn, and fails if there is none.
func (b *boundConn) CloseWrite() error {
	if c, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errNotSupported
}

// contexts end an operation with their errors, the newest context first. Nil means no context.
type contexts []context.Context

// err is the error of the first context that is done.
func (cs contexts) err() error {
	for _, c := range cs {
		if err := suspend.Err(c); err != nil {
			return err
		}
	}
	return nil
}

// join returns one context to wait with. Later contexts end it only until stop, so that a wait leaves nothing behind.
func (cs contexts) join() (ctx context.Context, stop func()) {
	switch len(cs) {
	case 0:
		return context.Background(), nil
	case 1:
		return cs[0], nil
	}
	ctx, cancel := context.WithCancel(cs[0])
	var stops []func() bool
	for _, c := range cs[1:] {
		if done := c.Done(); done != nil && done != cs[0].Done() {
			stops = append(stops, context.AfterFunc(c, cancel))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// explain returns the error of the context that ended a wait with err.
func (cs contexts) explain(err error) error {
	if len(cs) > 1 {
		if cause := cs.err(); cause != nil {
			return cause
		}
	}
	return err
}
