package eventloop

import (
	"context"
	"net"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// WithContext returns a net.Conn that performs I/O on c and is bound to ctx. Once ctx is done, Reads and Writes of the
// result fail with the cancellation error, including those under way. The end of ctx does not close c, and does not
// change a Conn of a Loop. For any other net.Conn, the result uses deadlines: if ctx ends during an operation, the
// deadline of that direction is set to a time in the past, and is not restored.
//
// The result may be passed to WithContext again. If it is bound to several contexts, the first that is done ends the
// I/O. When an operation returns, nothing remains registered with a context, so a connection may be bound to one
// context after another.
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

// A boundConn is a net.Conn whose I/O fails when any of several contexts is done.
type boundConn struct {
	net.Conn
	own *Conn // the Conn of a Loop, or nil if the net.Conn is foreign, which means of another type
	cs  contexts
}

// NetConn returns the underlying net.Conn.
func (b *boundConn) NetConn() net.Conn { return b.Conn }

func (b *boundConn) Read(p []byte) (int, error) {
	if b.own == nil {
		return b.readForeign(p)
	}
	return b.own.hasRead(b.own.fd.read(b.cs, p))
}

func (b *boundConn) Write(p []byte) (int, error) {
	if b.own != nil {
		return b.own.write(b.cs, p)
	}
	return b.foreign(p, b.Conn.Write, b.Conn.SetWriteDeadline)
}

// readForeign is a function of its own, because its values would enlarge the frame of Read, in which a task waits.
//
//go:noinline
func (b *boundConn) readForeign(p []byte) (int, error) {
	return b.foreign(p, b.Conn.Read, b.Conn.SetReadDeadline)
}

// foreign performs an operation of a foreign net.Conn. If a context ends, foreign sets a deadline in the past, which is
// the only way to end the operation.
func (b *boundConn) foreign(p []byte, do func([]byte) (int, error), deadline func(time.Time) error) (int, error) {
	if err := b.cs.err(); err != nil {
		return 0, err
	}
	var over atomicx.Bool // once over is true, callbacks do nothing
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

// CloseRead calls the net.Conn's CloseRead, and fails if there is none.
func (b *boundConn) CloseRead() error {
	if c, ok := b.Conn.(interface{ CloseRead() error }); ok {
		return c.CloseRead()
	}
	return errNotSupported
}

// CloseWrite calls the net.Conn's CloseWrite, and fails if there is none.
func (b *boundConn) CloseWrite() error {
	if c, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errNotSupported
}

// contexts is a list of contexts, newest first. An operation ends when any of them is done. A nil list means no
// context.
type contexts []context.Context

// err returns the error of the first context in the list that is done, or nil.
func (cs contexts) err() error {
	for _, c := range cs {
		if err := suspend.Err(c); err != nil {
			return err
		}
	}
	return nil
}

// join returns a context that ends when any of cs ends. The caller must call the function stop after its wait, unless
// stop is nil, so that no registration with a context remains.
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

// explain returns the cancellation error of whichever context ended the wait that has failed with err.
func (cs contexts) explain(err error) error {
	if len(cs) > 1 {
		if cause := cs.err(); cause != nil {
			return cause
		}
	}
	return err
}
