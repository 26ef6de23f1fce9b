package executors_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/bytedance/gopkg/util/gopool"
	"github.com/dop251/goja_nodejs/eventloop"
	"github.com/panjf2000/ants/v2"
	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/examples/libraries/executors"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

var bg = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// An executor makes an executor of one of the packages, and a function that ends it.
type executor func(t testing.TB) (x suspend.Executor, end func())

func antsPool(testing.TB) (suspend.Executor, func()) {
	p := must(ants.NewPool(4))
	return executors.Ants{Pool: p}, p.Release
}

func gopoolPool(testing.TB) (suspend.Executor, func()) {
	return executors.Gopool{Pool: gopool.NewPool("executors", 4, gopool.NewConfig())}, func() {}
}

func gojaLoop(testing.TB) (suspend.Executor, func()) {
	js := eventloop.NewEventLoop()
	js.Start()
	return executors.Goja{EventLoop: js}, js.Terminate
}

// TestConformance runs the kit, also with an executor that ends first, if it can end.
func TestConformance(t *testing.T) {
	for name, test := range map[string]struct {
		open executor
		ends bool
	}{"ants": {antsPool, true}, "gopool": {gopoolPool, false}, "goja": {gojaLoop, true}, "gnet": {gnetLoop, true}} {
		t.Run(name, func(t *testing.T) {
			x, end := test.open(t)
			defer end()
			suspendtest.Scheduler(t, func(t testing.TB) (suspend.Spawner, func()) {
				l := callback.New(x, callback.Options{})
				return l, func() {
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}
			}, suspendtest.Options{FIFO: true})
			if test.ends {
				suspendtest.Ending(t, func(t testing.TB) (suspend.Spawner, func(), func()) {
					x, end := test.open(t)
					l := callback.New(x, callback.Options{})
					return l, end, func() {
						if err := l.Close(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		})
	}
}

// lines is a server of gnet. A task answers each line, and waits for a lock and for a pool meanwhile.
type lines struct {
	gnet.BuiltinEventEngine
	engine  chan gnet.Engine
	loops   chan gnet.EventLoop
	tasks   *callback.Loop // on the only event loop
	ctx     context.Context
	pool    *workstealing.Pool
	counter mutex.Mutex
	served  int
}

func (s *lines) OnBoot(e gnet.Engine) gnet.Action { s.engine <- e; return gnet.None }

func (s *lines) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	if s.tasks == nil {
		s.tasks = callback.New(executors.Gnet{EventLoop: c.EventLoop()}, callback.Options{})
	}
	s.loops <- c.EventLoop()
	return nil, gnet.None
}

func (s *lines) OnTraffic(c gnet.Conn) gnet.Action {
	line := string(must(c.Next(-1)))
	if s.pool == nil {
		return gnet.None
	}
	_ = s.tasks.Go(func() {
		length := promise.Go(s.ctx, s.pool, func(context.Context) (int, error) { return len(line), nil })
		if s.counter.LockContext(s.ctx) != nil { // suspends the task
			return
		}
		s.served++
		n := s.served
		s.counter.Unlock()
		v, err := length.Await(s.ctx) // suspends the task
		if err == nil {
			_, _ = fmt.Fprintf(c, "%d: %d\n", n, v) // on the event loop
		}
	})
	return gnet.None
}

// startLines returns a server that has accepted one connection, and a function that stops it.
func startLines(s *lines) (c net.Conn, stop func()) {
	s.engine, s.loops = make(chan gnet.Engine, 1), make(chan gnet.EventLoop, 16)
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	addr := free.Addr().String()
	_ = free.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- gnet.Run(s, "tcp://"+addr, gnet.WithNumEventLoop(1), gnet.WithLogLevel(logging.ErrorLevel))
	}()
	e := <-s.engine
	c, err := net.Dial("tcp", addr)
	for err != nil {
		c, err = net.Dial("tcp", addr)
	}
	return c, func() {
		if err := errors.Join(e.Stop(bg), <-ended); err != nil {
			panic(err)
		}
		_ = c.Close()
	}
}

func gnetLoop(testing.TB) (suspend.Executor, func()) {
	s := new(lines)
	_, stop := startLines(s)
	return executors.Gnet{EventLoop: <-s.loops}, stop
}

// While a plain goroutine holds the lock, the event loop serves others. If the engine stops while a task waits, Close returns.
func TestGnetServer(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	pool := workstealing.New(workstealing.Options{Workers: 2})
	s := &lines{ctx: ctx, pool: pool}
	c, stop := startLines(s)
	in := bufio.NewReader(c)
	loop := <-s.loops
	ask := func(line string) { must(c.Write([]byte(line))) }
	expect := func(want string) {
		t.Helper()
		if got := must(in.ReadString('\n')); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	ask("hello")
	expect("1: 5\n")
	s.counter.Lock()
	ask("held up")
	alive := make(chan struct{})
	_ = executors.Gnet{EventLoop: loop}.Execute(func() { close(alive) })
	<-alive
	s.counter.Unlock()
	expect("2: 7\n")
	s.counter.Lock()
	ask("never")
	for s.tasks.Stats().Suspended == 0 {
		time.Sleep(time.Millisecond) // until the task waits
	}
	stop() // ends the engine before the tasks
	cancel()
	if err := errors.Join(s.tasks.Close(), pool.Close()); err != nil {
		t.Error(err)
	}
}
