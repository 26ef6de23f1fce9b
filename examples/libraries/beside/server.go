package beside

import (
	"context"
	"errors"
	"sync"

	"github.com/panjf2000/gnet/v2"
	gneterrors "github.com/panjf2000/gnet/v2/pkg/errors"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// server is a gnet server that computes its answers on a Braid pool. A task on the connection's event loop handles each request.
type server struct {
	gnet.BuiltinEventEngine
	ctx   context.Context
	pool  *workstealing.Pool
	loops sync.Map // maps a gnet.EventLoop to its *callback.Loop
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
	ctx    context.Context // cancelled when the client disconnects
	hangUp context.CancelFunc
	turn   *semaphore.Semaphore // keeps the answers in the order of the requests
	tasks  *callback.Loop
}

func (s *server) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	tasks, ok := s.loops.Load(c.EventLoop())
	if !ok {
		tasks = callback.New(gnetLoop{c.EventLoop()}, callback.Options{})
		s.loops.Store(c.EventLoop(), tasks)
	}
	ctx, hangUp := context.WithCancel(s.ctx)
	c.SetContext(&client{ctx, hangUp, semaphore.New(1), tasks.(*callback.Loop)})
	return nil, gnet.None
}

func (s *server) OnClose(c gnet.Conn, _ error) gnet.Action {
	c.Context().(*client).hangUp()
	return gnet.None
}

func (s *server) OnTraffic(c gnet.Conn) gnet.Action {
	who := c.Context().(*client)
	for line := range lines(c) {
		_ = who.tasks.Go(func() { _ = s.serve(who, c, line) })
	}
	return gnet.None
}

func (s *server) serve(who *client, c gnet.Conn, line string) error {
	computed := promise.Go(who.ctx, s.pool, func(context.Context) (string, error) { return answer(line), nil })
	if err := who.turn.Acquire(who.ctx, 1); err != nil { // suspends the task, not the event loop
		return err
	}
	defer who.turn.Release(1)
	text, err := computed.Await(who.ctx)
	if err == nil {
		err = who.ctx.Err() // after a disconnect, the descriptor may belong to another client
	}
	if err == nil {
		_, err = c.Write([]byte(text)) // Write is safe here, because the task runs on the event loop
	}
	return err
}

// close waits for the tasks and closes the pool. The caller must cancel s.ctx before the call and stop the engine after it.
func (s *server) close() (err error) {
	s.loops.Range(func(_, tasks any) bool {
		err = errors.Join(err, tasks.(*callback.Loop).Close())
		return true
	})
	return errors.Join(err, s.pool.Close())
}
