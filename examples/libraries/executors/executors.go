// Package executors turns executors of other projects into schedulers, and tests that tasks run on them, even if the
// executor ends first. Each adapter is meant to be copied.
//
//	cd examples/libraries/executors && go test .
package executors

import (
	"context"
	"errors"

	"github.com/bytedance/gopkg/util/gopool"
	"github.com/dop251/goja"
	"github.com/dop251/goja_nodejs/eventloop"
	"github.com/panjf2000/ants/v2"
	"github.com/panjf2000/gnet/v2"
	gneterrors "github.com/panjf2000/gnet/v2/pkg/errors"

	"github.com/braidgo/braid/suspend"
)

// Ants is a pool of github.com/panjf2000/ants. A callback.Loop on it runs no two tasks in parallel.
type Ants struct{ *ants.Pool }

// Execute implements suspend.Executor. If the pool is never released before its Loop is closed, Execute need only return
// p.Submit(f).
func (p Ants) Execute(f func()) error {
	if err := p.Submit(f); !errors.Is(err, ants.ErrPoolClosed) {
		return err
	}
	return suspend.ErrClosed
}

// Gopool is a pool of github.com/bytedance/gopkg, which netpoll and hertz use.
type Gopool struct{ gopool.Pool }

// Execute implements suspend.Executor.
func (p Gopool) Execute(f func()) error { p.Go(f); return nil }

// Gnet is an event loop of github.com/panjf2000/gnet, as returned by a connection's method EventLoop.
type Gnet struct{ gnet.EventLoop }

// Execute implements suspend.Executor.
func (l Gnet) Execute(f func()) error {
	err := l.EventLoop.Execute(context.Background(), gnet.RunnableFunc(func(context.Context) error { f(); return nil }))
	if errors.Is(err, gneterrors.ErrEngineInShutdown) {
		return suspend.ErrClosed
	}
	return err
}

// Goja is the event loop of github.com/dop251/goja_nodejs. Package javascript beside this one has promises for it.
type Goja struct{ *eventloop.EventLoop }

// Execute implements suspend.Executor.
func (l Goja) Execute(f func()) error {
	if !l.RunOnLoop(func(*goja.Runtime) { f() }) {
		return suspend.ErrClosed
	}
	return nil
}
