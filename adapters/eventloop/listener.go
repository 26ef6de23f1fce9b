package eventloop

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Listener is a net.Listener of a Loop. Serve distributes connections among the reactors. Accept is for code that
// expects a net.Listener. The methods may be called from tasks of any scheduler and from plain goroutines.
type Listener struct {
	loop    *Loop
	network string
	addr    net.Addr
	fds     []*fd // a descriptor per reactor, in order, or a single descriptor for all reactors
	turns   atomicx.Uint32
	serving atomicx.Int32 // number of Serves under way
	serves  countdown     // the same number; Shutdown waits until it is zero

	guard  suspend.Guard
	closed bool
	unlink string                            // the file of a unix socket, empty after its removal
	pauses suspend.Queue[struct{}, struct{}] // Accepts that wait before their next try
}

// Listen listens on address, as net.Listen does. The network must be tcp, tcp4, tcp6 or unix. If the Loop has several
// reactors, each has its own tcp socket for the same port, and the system distributes the connections.
func (l *Loop) Listen(network, address string) (*Listener, error) {
	ln, err := listen(l, network, address)
	if err != nil {
		return nil, failed("listen", network, address, err)
	}
	return ln, nil
}

// Serve accepts connections and runs handler for each, as a task of the connection's reactor. The connection is bound
// to ctx; see [WithContext]. Serve closes the connection when handler returns, panics or exits.
//
// Serve returns when it has stopped accepting and every handler has ended. Serve always returns an error: the
// cancellation error if ctx is done by then, net.ErrClosed if the Listener or the Loop was closed, and otherwise the
// error of the failed accept. Serve cancels the handlers only if ctx is done. Serve does not close the Listener.
//
// If descriptors or memory run out, Serve calls Options.OnAcceptError, and tries again after a delay.
//
// To shut down gracefully, pass Serve its own context, call Shutdown with a time limit, and then cancel that context.
func (ln *Listener) Serve(ctx context.Context, handler func(ctx context.Context, c net.Conn)) error {
	if handler == nil {
		panic("eventloop: nil handler")
	}
	s := &serving{ln: ln, ctx: ctx}
	s.begin = func(c *Conn) error {
		return c.fd.r.Go(func() {
			defer s.close(c)
			handler(s.ctx, WithContext(s.ctx, c))
		})
	}
	return s.acceptAndWait()
}

// acceptAndWait accepts connections until an accept fails, and waits until every connection has ended.
func (s *serving) acceptAndWait() error {
	ln, ctx := s.ln, s.ctx
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	ln.serving.Add(1)
	ln.serves.add(1)
	defer ln.serves.done()
	defer ln.serving.Add(-1)
	s.accepting, s.stop = cancel.New(ctx)
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

// A serving is the state of one call of Serve or ServeParked.
type serving struct {
	ln        *Listener
	ctx       context.Context // passed to the handlers
	accepting context.Context // the context of the accepts; ends when ctx is done, or when the function stop is called
	stop      func(cause error)
	begin     func(c *Conn) error // begins to handle a connection, and calls running.done after its end, unless begin fails
	running   countdown           // counts accepting tasks and connections
}

// close is called when the handler of c has ended.
func (s *serving) close(c *Conn) {
	defer s.running.done()
	_ = c.Close()
}

// fail stops all accepts. Only the first error is kept.
func (s *serving) fail(err error) { s.stop(err) }

// accept is the body of a task of reactor i, which accepts connections from the descriptors ds.
func (s *serving) accept(i int, ds []*fd) {
	defer s.running.done()
	defer s.fail(errAcceptor) // OnAcceptError might panic or exit
	pick := func() *reactor { return s.ln.loop.reactors[i] }
	if len(s.ln.fds) == 1 {
		pick = s.ln.loop.nextReactor
	}
	for {
		c, err := s.ln.acceptFrom(contexts{s.accepting}, ds, pick)
		if err != nil {
			s.fail(err)
			return
		}
		s.running.add(1)
		if s.begin(c) != nil {
			s.running.done()
			_ = c.Close()
			s.fail(errClosed)
			return
		}
	}
}

// Accept accepts the next connection. Accept suspends the caller until a connection arrives. If a task of the Loop
// calls Accept, the connection belongs to the task's reactor. If descriptors or memory run out, Accept tries again
// after a delay. While a Serve is under way, Accept fails, because Serve takes all connections.
func (ln *Listener) Accept() (net.Conn, error) {
	if ln.serving.Load() > 0 {
		return nil, ln.fail(errServing)
	}
	c, err := ln.acceptFrom(nil, ln.fds, ln.loop.pick)
	if err != nil {
		return nil, ln.fail(err)
	}
	return c, nil
}

// acceptFrom accepts a connection. If descriptors or memory have run out, it tries again after a delay. After such an
// error the connection stays queued, but no further event reports it, so acceptFrom must try again.
func (ln *Listener) acceptFrom(cs contexts, ds []*fd, pick func() *reactor) (*Conn, error) {
	const first, last = 5 * time.Millisecond, time.Second
	for delay := first; ; delay = min(2*delay, last) {
		c, err := accept(ln, cs, ds, pick())
		if err == nil || !isShortage(err) {
			return c, err
		}
		ln.loop.shortage(ln.fail(err), delay)
		if err := ln.pause(cs, delay); err != nil {
			return nil, err
		}
	}
}

// shortage reports an accept that has failed and will be tried again.
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
	errServing  = errors.New("Accept called during Serve")
	errAcceptor = errors.New("the task that calls Accept has panicked or exited")
)

func isShortage(err error) bool {
	for _, e := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close stops listening. Calls of Accept and Serve, including those under way, fail with net.ErrClosed. Close does not
// affect accepted connections and their handlers. A second Close returns net.ErrClosed.
func (ln *Listener) Close() error {
	var err error
	for _, d := range ln.fds {
		if e := d.close(); e != nil {
			err = e
		}
	}
	ln.fdClosed() // ln has no fds if the function listen has failed early
	return ln.fail(err)
}

// Shutdown closes the Listener and waits until every Serve under way, and thus every handler, has returned. If ctx is
// done before that, Shutdown returns the cancellation error. The remaining handlers continue until they return or the
// context of their Serve cancels them. A handler of an idle connection that the client keeps open is waited for, too. A second
// Shutdown waits in the same way, and then returns net.ErrClosed, as a second Close does. A handler must not call Shutdown,
// because Shutdown would wait for the handler.
func (ln *Listener) Shutdown(ctx context.Context) error {
	err := ln.Close()
	if e := ln.serves.waitFor(ctx); e != nil && !ln.serves.isZero() {
		return e
	}
	return err
}

// fdClosed is called when an fd of the Listener is closed, by Close or by the Loop.
func (ln *Listener) fdClosed() {
	ln.guard.Lock()
	file := ln.unlink
	ln.closed, ln.unlink = true, ""
	ln.pauses.ResumeAll(struct{}{}, nil)
	ln.guard.Unlock()
	if file != "" {
		_ = os.Remove(file)
	}
}

// Addr returns the address on which the Listener listens.
func (ln *Listener) Addr() net.Addr { return ln.addr }

// SetDeadline sets the time after which Accepts, including those under way, fail with os.ErrDeadlineExceeded. The zero
// time means never.
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
