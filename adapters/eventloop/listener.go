package eventloop

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Listener is a net.Listener of a Loop: Serve is how connections get to the reactors, Accept is for stock code.
// Its methods may be called from tasks of any scheduler and from plain goroutines.
type Listener struct {
	loop    *Loop
	network string
	addr    net.Addr
	fds     []*fd // there is one for each reactor, in order, or one for all
	turns   atomicx.Uint32
	serving atomicx.Int32 // Serves under way
	serves  countdown     // the same, to be waited for

	guard  suspend.Guard
	closed bool
	unlink string                            // the file of a unix socket, until it is removed
	pauses suspend.Queue[struct{}, struct{}] // ends at the next try
}

// Listen listens on address, network being tcp, tcp4, tcp6 or unix, as net.Listen does. With several reactors there is
// one tcp socket for each, all with the same port, and the system distributes the connections.
func (l *Loop) Listen(network, address string) (*Listener, error) {
	ln, err := listen(l, network, address)
	if err != nil {
		return nil, failed("listen", network, address, err)
	}
	return ln, nil
}

// Serve accepts connections and runs handler for each, as a task of the reactor that the connection belongs to. The connection is bound
// to ctx as by WithContext, and is closed when handler ends, however it ends.
//
// Serve returns when it no longer accepts and every handler has ended, and always with an error. It is the cancellation error if ctx is
// done by then, net.ErrClosed if the Listener or the Loop was closed, and otherwise the error of the failed accept. Only the end of ctx
// reaches the handlers. The Listener stays open unless it was closed.
//
// A shortage of descriptors or memory is no failure: Serve tries again after a while, and calls Options.OnAcceptError.
//
// To stop gently, give Serve a separate context, call Shutdown with a time limit, and cancel that context afterwards.
func (ln *Listener) Serve(ctx context.Context, handler func(ctx context.Context, c net.Conn)) error {
	if handler == nil {
		panic("eventloop: nil handler")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	ln.serving.Add(1)
	ln.serves.add(1)
	defer ln.serves.done()
	defer ln.serving.Add(-1)
	s := &serving{ln: ln, ctx: ctx, handler: handler}
	s.accepting, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	s.running.add(1)
	for i, d := range ln.fds {
		s.running.add(1)
		if err := ln.loop.reactors[i].Go(func() { s.accept(i, []*fd{d}) }); err != nil {
			s.fail(errClosed)
			s.running.done()
			break
		}
	}
	s.running.done()
	s.running.wait()
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	return ln.fail(context.Cause(s.accepting))
}

// A serving is one Serve.
type serving struct {
	ln        *Listener
	ctx       context.Context // handlers get it
	accepting context.Context // accepts use it; it ends with ctx, and by stop
	stop      context.CancelCauseFunc
	handler   func(context.Context, net.Conn)
	running   countdown // accepts and handlers
}

// fail stops all accepts; the first cause stays.
func (s *serving) fail(err error) { s.stop(err) }

// accept is the task that accepts from ds, the i'th of the Listener.
func (s *serving) accept(i int, ds []*fd) {
	defer s.running.done()
	defer s.fail(errAcceptor) // OnAcceptError is foreign
	pick := func() *reactor { return s.ln.loop.reactors[i] }
	if len(s.ln.fds) == 1 {
		pick = s.ln.loop.nextReactor
	}
	for {
		c, r, err := s.ln.acceptFrom(contexts{s.accepting}, ds, pick)
		if err != nil {
			s.fail(err)
			return
		}
		s.running.add(1)
		if r.Go(func() { s.handle(c) }) != nil {
			s.running.done()
			_ = c.Close()
			s.fail(errClosed)
			return
		}
	}
}

func (s *serving) handle(c *Conn) {
	defer s.running.done()
	defer c.Close()
	s.handler(s.ctx, WithContext(s.ctx, c))
}

// Accept suspends the caller until there is a connection. A connection that a task of the loop accepts belongs to the
// reactor of the task. Running out of descriptors or memory is waited out. While a Serve is under way all connections
// are its own, and Accept fails.
func (ln *Listener) Accept() (net.Conn, error) {
	if ln.serving.Load() > 0 {
		return nil, ln.fail(errServing)
	}
	c, _, err := ln.acceptFrom(nil, ln.fds, ln.loop.pick)
	if err != nil {
		return nil, ln.fail(err)
	}
	return c, nil
}

// acceptFrom waits out a shortage. Such an error leaves the connection where it is, but there will be no event for it,
// so the accept must be tried again.
func (ln *Listener) acceptFrom(cs contexts, ds []*fd, pick func() *reactor) (*Conn, *reactor, error) {
	const first, last = 5 * time.Millisecond, time.Second
	for delay := first; ; delay = min(2*delay, last) {
		r := pick()
		c, err := accept(ln, cs, ds, r)
		if err == nil || !isShortage(err) {
			return c, r, err
		}
		ln.loop.shortage(ln.fail(err), delay)
		if err := ln.pause(cs, delay); err != nil {
			return nil, nil, err
		}
	}
}

// shortage reports an accept that will be tried again.
func (l *Loop) shortage(err error, retry time.Duration) {
	if f := l.opts.OnAcceptError; f != nil {
		f(err, retry)
	} else {
		noConnection(err, retry)
	}
}

func noConnection(err error, retry time.Duration) {
	slog.Warn("eventloop: no connection can be accepted", "err", err, "retry", retry)
}

var (
	errServing  = errors.New("Accept during Serve")
	errAcceptor = errors.New("the task that accepts has panicked or exited")
)

func isShortage(err error) bool {
	for _, e := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close stops listening: Accepts and Serves, under way and to come, fail with net.ErrClosed. Connections and handlers
// are left alone.
func (ln *Listener) Close() error {
	var err error
	for _, d := range ln.fds {
		if e := d.close(); e != nil {
			err = e
		}
	}
	ln.over() // a half-made listener may have no fds
	return ln.fail(err)
}

// Shutdown is Close, and waits until every Serve under way has returned, and so every handler. If ctx is done first, or
// already, it returns the cancellation error; the handlers go on, and the context that Serve was given ends them. A
// handler must not call Shutdown: it would wait for itself.
func (ln *Listener) Shutdown(ctx context.Context) error {
	err := ln.Close()
	if e := ln.serves.waitFor(ctx); e != nil {
		return e
	}
	return err
}

// over is called when an fd is closed, by Close or by the Loop.
func (ln *Listener) over() {
	ln.guard.Lock()
	file := ln.unlink
	ln.closed, ln.unlink = true, ""
	ln.pauses.ResumeAll(struct{}{}, nil)
	ln.guard.Unlock()
	if file != "" {
		_ = os.Remove(file)
	}
}

// Addr returns the address that the Listener listens on.
func (ln *Listener) Addr() net.Addr { return ln.addr }

// SetDeadline sets when Accepts, including Accepts under way, fail with os.ErrDeadlineExceeded; zero: never.
func (ln *Listener) SetDeadline(t time.Time) error {
	for _, d := range ln.fds {
		if err := d.setReadDeadline(t); err != nil {
			return ln.fail(err)
		}
	}
	return nil
}

func (ln *Listener) fail(err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: "accept", Net: ln.network, Addr: ln.addr, Err: err}
}
