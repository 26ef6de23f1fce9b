package migration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/panjf2000/ants/v2"
	"github.com/panjf2000/gnet/v2"
	gneterrors "github.com/panjf2000/gnet/v2/pkg/errors"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// answer is the work of a request.
func answer(line string) string { return fmt.Sprintf("%d\n", len(line)) }

// lines takes the complete lines out of a connection's buffer.
func lines(c gnet.Conn) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			b, _ := c.Peek(-1)
			n := bytes.IndexByte(b, '\n')
			if n < 0 {
				return
			}
			line := string(b[:n])
			_, _ = c.Discard(n + 1)
			if !yield(line) {
				return
			}
		}
	}
}

// serverBefore computes on a pool of ants and answers by callbacks.
type serverBefore struct {
	gnet.BuiltinEventEngine
	pool *ants.Pool
}

func (s *serverBefore) OnTraffic(c gnet.Conn) gnet.Action {
	for line := range lines(c) {
		_ = s.pool.Submit(func() { // blocks the event loop while the pool is full
			_ = c.AsyncWrite([]byte(answer(line)), nil) // a short request overtakes a long one of the same client
		})
	}
	return gnet.None
}

// serverAfter computes on a pool of Braid. Its handlers are tasks of the event loop that the connection belongs to.
type serverAfter struct {
	gnet.BuiltinEventEngine
	ctx   context.Context
	pool  *workstealing.Pool
	loops sync.Map // from a gnet.EventLoop to its *callback.Loop
}

type gnetLoop struct{ gnet.EventLoop }

func (l gnetLoop) Execute(f func()) error {
	err := l.EventLoop.Execute(context.Background(), gnet.RunnableFunc(func(context.Context) error { f(); return nil }))
	if errors.Is(err, gneterrors.ErrEngineInShutdown) {
		return suspend.ErrClosed
	}
	return err
}

type client struct {
	ctx    context.Context // done when the client has hung up
	hangUp context.CancelFunc
	turn   *semaphore.Semaphore // answers go out in the order of their requests
	tasks  *callback.Loop
}

func (s *serverAfter) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	tasks, ok := s.loops.Load(c.EventLoop())
	if !ok {
		tasks = callback.New(gnetLoop{c.EventLoop()}, callback.Options{})
		s.loops.Store(c.EventLoop(), tasks)
	}
	ctx, hangUp := context.WithCancel(s.ctx)
	c.SetContext(&client{ctx, hangUp, semaphore.New(1), tasks.(*callback.Loop)})
	return nil, gnet.None
}

func (s *serverAfter) OnClose(c gnet.Conn, _ error) gnet.Action {
	c.Context().(*client).hangUp()
	return gnet.None
}

func (s *serverAfter) OnTraffic(c gnet.Conn) gnet.Action {
	who := c.Context().(*client)
	for line := range lines(c) {
		_ = who.tasks.Go(func() { _ = s.serve(who, c, line) })
	}
	return gnet.None
}

func (s *serverAfter) serve(who *client, c gnet.Conn, line string) error {
	computed := promise.Go(who.ctx, s.pool, func(context.Context) (string, error) { return answer(line), nil })
	if err := who.turn.Acquire(who.ctx, 1); err != nil { // the task waits, the event loop goes on
		return err
	}
	defer who.turn.Release(1)
	text, err := computed.Await(who.ctx)
	if err == nil {
		err = who.ctx.Err() // gnet would write to a descriptor that may be another client's by now
	}
	if err == nil {
		_, err = c.Write([]byte(text)) // no AsyncWrite: the task runs on the event loop
	}
	return err
}

// close ends the tasks. The caller has cancelled s.ctx; the engine ends afterwards.
func (s *serverAfter) close() (err error) {
	s.loops.Range(func(_, tasks any) bool {
		err = errors.Join(err, tasks.(*callback.Loop).Close())
		return true
	})
	return errors.Join(err, s.pool.Close())
}
