//go:build !linux || braid_portable

package eventloop

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// In builds without a poller of this package, package net owns the descriptors. Each operation calls package net on a
// helper goroutine while the caller is suspended. The helper waits in the runtime's poller. The contracts are the same
// as on Linux.

var errNotSupported = errors.ErrUnsupported

// An fd is a connection, a listener or a file of the standard library.
type fd struct {
	r      *reactor
	stock  io.Closer
	over   func() // called by the first close; may be nil
	closed atomicx.Bool
	rd, wr side
}

func newFD(r *reactor, stock io.Closer, over func()) (*fd, error) {
	d := &fd{r: r, stock: stock, over: over}
	if s, ok := stock.(interface{ SetReadDeadline(time.Time) error }); ok {
		d.rd.deadlineOf = s.SetReadDeadline
	} else if s, ok := stock.(interface{ SetDeadline(time.Time) error }); ok { // a listener
		d.rd.deadlineOf = s.SetDeadline
	}
	if s, ok := stock.(interface{ SetWriteDeadline(time.Time) error }); ok {
		d.wr.deadlineOf = s.SetWriteDeadline
	}
	if err := r.poller.add(d); err != nil {
		_ = stock.Close()
		return nil, err
	}
	return d, nil
}

func (d *fd) close() error {
	if !d.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	d.r.poller.remove(d)
	if d.over != nil {
		d.over()
	}
	return bare(d.stock.Close())
}

func (d *fd) read(cs contexts, p []byte) (int, error) {
	if len(p) == 0 {
		return d.rd.do(d, cs, func() (int, error) { return 0, nil })
	}
	return d.rd.do(d, cs, func() (int, error) { return d.stock.(io.Reader).Read(p) })
}

func (d *fd) write(cs contexts, p []byte) (int, error) {
	return d.wr.do(d, cs, func() (int, error) { return d.stock.(io.Writer).Write(p) })
}

func (d *fd) closeRead() error {
	if s, ok := d.stock.(interface{ CloseRead() error }); ok {
		return bare(s.CloseRead())
	}
	return errNotSupported
}

func (d *fd) closeWrite() error {
	if s, ok := d.stock.(interface{ CloseWrite() error }); ok {
		return bare(s.CloseWrite())
	}
	return errNotSupported
}

func (d *fd) setReadDeadline(t time.Time) error  { return d.rd.setDeadline(d, t) }
func (d *fd) setWriteDeadline(t time.Time) error { return d.wr.setDeadline(d, t) }

// A side is one direction of an fd, with its turn and its deadline. When a context ends during an operation, the
// deadline is set to a time in the past until the helper goroutine has returned.
type side struct {
	turn
	deadlineOf func(time.Time) error
	ops        uint8 // operations since the last yield; used only by the holder of the turn

	mu          atomicx.Mutex
	deadline    time.Time // the user's deadline
	interrupted bool      // the effective deadline is a time in the past, because a context has ended
}

// do runs f on a helper goroutine while the caller is suspended. If a context ends before f returns, do interrupts the
// helper. If f succeeds nevertheless, do returns the result of f.
func (s *side) do(d *fd, cs contexts, f func() (int, error)) (int, error) {
	if err := cs.err(); err != nil {
		return 0, err
	}
	s.guard.Lock()
	free := !s.held
	s.held = true
	s.guard.Unlock()
	if !free {
		if err := s.takeSlow(cs); err != nil {
			return 0, err
		}
	}
	defer s.give()
	if s.ops++; s.ops > yieldEvery {
		s.ops = 0
		suspend.Yield()
	}
	if d.closed.Load() {
		return 0, errClosed
	}
	s.mu.Lock()
	late := !s.deadline.IsZero() && !s.deadline.After(time.Now())
	s.mu.Unlock()
	if late {
		return 0, os.ErrDeadlineExceeded
	}
	h := &helper{f: f}
	ctx, stop := cs.join()
	err := h.wait(ctx)
	if stop != nil {
		stop()
	}
	if err != nil && h.started {
		s.interrupt(true)
		_ = h.wait(context.Background())
		s.interrupt(false)
	}
	h.ended.Rethrow() // f may run user code, which may panic
	n, failure := h.n, bare(h.err)
	if err != nil && (!h.started || errors.Is(failure, os.ErrDeadlineExceeded)) {
		return n, cs.explain(err)
	}
	return n, failure
}

func (s *side) interrupt(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = on
	if s.deadlineOf == nil {
		return
	}
	if on {
		_ = s.deadlineOf(time.Unix(1, 0))
	} else {
		_ = s.deadlineOf(s.deadline)
	}
}

func (s *side) setDeadline(d *fd, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.closed.Load() {
		return errClosed
	}
	s.deadline = t
	if s.interrupted {
		return nil
	}
	if s.deadlineOf == nil {
		return errNotSupported
	}
	return bare(s.deadlineOf(t))
}

// A helper is one call of a function on a separate goroutine.
type helper struct {
	f       func() (int, error)
	started bool // used only by the caller

	n      int
	err    error
	mu     atomicx.Mutex
	over   bool
	ended  outcome.Outcome
	waiter suspend.Resumer[struct{}]
}

func (h *helper) run() {
	outcome.Of(func() { h.n, h.err = h.f() }, func(o outcome.Outcome) {
		h.mu.Lock()
		h.ended, h.over = o, true
		waiter := h.waiter
		h.mu.Unlock()
		waiter.Resume(struct{}{}, nil) // Resume returns false if the caller has just been cancelled; the caller then reads h.over
	})
}

func (h *helper) wait(ctx context.Context) error {
	_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.over {
			return struct{}{}, true
		}
		h.waiter = r
		if !h.started {
			h.started = true
			go h.run()
		}
		return struct{}{}, false
	})
	return err
}

// bare removes the standard library's wrapping from an error.
func bare(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, os.ErrClosed) {
		return errClosed
	}
	return err
}
