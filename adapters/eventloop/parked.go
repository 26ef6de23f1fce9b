package eventloop

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/braidgo/braid/suspend"
)

// ServeParked is like Serve, but a connection has a task, a stack and buffers only while there are bytes of its peer. The
// function serve, which runs as a task of the connection's reactor, is called when the peer has sent bytes, or has closed. It
// reads and answers what there is. If serve returns nil, the connection is parked until there are bytes again; if there are some
// already, serve runs again soon. If serve returns an error, such as the io.EOF of a Read, panics or exits, ServeParked closes
// the connection. What the error was, serve has to report. If serve returns nil without having read, it is called again and
// again.
//
// A parked connection takes about 1 KB. ServeParked closes a connection that is parked for longer than Options.IdleTimeout, and
// then serve begins without a read deadline. Without an IdleTimeout a parked connection obeys the read deadline that serve has set:
// when the deadline passes, serve is called, and its Read fails. For net/http, see package httppark.
//
// When ServeParked stops accepting, because ctx is done, the Listener or the Loop is closed, or an accept has failed, it closes
// the parked connections at once, and those that would be parked. It waits for the calls of serve under way. In all else, such
// as its result, it is like Serve. On systems without epoll a parked connection keeps its task.
func (ln *Listener) ServeParked(ctx context.Context, serve func(ctx context.Context, c net.Conn) error) error {
	if serve == nil {
		panic("eventloop: nil handler")
	}
	s := &parking{serving{ln: ln, ctx: ctx}, serve}
	s.begin = func(c *Conn) error {
		s.park(c)
		return nil
	}
	return s.acceptAndWait()
}

// A parking is the state of one call of ServeParked.
type parking struct {
	serving
	handler func(context.Context, net.Conn) error
}

// park makes run serve c, as a task, once there are bytes. The wait ends with the accepts.
func (s *parking) park(c *Conn) {
	idle := s.ln.loop.opts.IdleTimeout
	if idle > 0 {
		_ = c.SetReadDeadline(time.Now().Add(idle))
	}
	suspend.Then(s.accepting, c.fd.readableOp(), tasks{c.fd.r}, func(v verdict, err error) {
		// A Loop that closes closes its connections, and refuses the task: then Then calls this function on another goroutine.
		if err != nil && !errors.Is(err, errors.ErrUnsupported) || !suspend.Within(s.ln.loop) {
			s.end(c)
			return
		}
		if v.expired() && idle > 0 && !c.fd.hasInput() { // bytes that came in time are served, even by a machine that was stopped
			s.end(c)
			return
		}
		if idle > 0 {
			_ = c.SetReadDeadline(time.Time{})
		}
		s.run(c)
	})
}

// run serves c once, and parks or closes it.
func (s *parking) run(c *Conn) {
	var parks bool
	defer func() {
		if parks {
			s.park(c)
		} else {
			s.end(c)
		}
	}()
	parks = s.handler(s.ctx, WithContext(s.ctx, c)) == nil
}

func (s *parking) end(c *Conn) {
	defer s.running.done()
	_ = c.Close()
}

// tasks is an Executor that runs continuations as tasks of a reactor.
type tasks struct{ *reactor }

func (t tasks) Execute(f func()) error { return t.Go(f) }
