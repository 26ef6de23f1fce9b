package main

import (
	"context"
	"errors"

	"github.com/dop251/goja"
	"github.com/dop251/goja_nodejs/eventloop"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// jsLoop is the event loop of goja_nodejs as an executor.
type jsLoop struct{ *eventloop.EventLoop }

func (l jsLoop) Execute(f func()) error {
	if !l.RunOnLoop(func(*goja.Runtime) { f() }) {
		return suspend.ErrClosed
	}
	return nil
}

// A bridge joins JavaScript and Go. Its tasks run on JavaScript's thread.
type bridge struct {
	ctx   context.Context
	vm    *goja.Runtime
	tasks *callback.Loop
}

// async makes an async function of f. Each call is a task, so f may wait and may use the vm.
func async[A, T any](b *bridge, f func(ctx context.Context, arg A) (T, error)) func(arg A) goja.Value {
	return func(arg A) goja.Value {
		js, resolve, reject := b.vm.NewPromise()
		err := b.tasks.Go(func() {
			if v, err := f(b.ctx, arg); err != nil {
				_ = reject(b.vm.NewGoError(err)) // an exception in the script
			} else {
				_ = resolve(v)
			}
		})
		if err != nil { // the loop of tasks is closed
			_ = reject(b.vm.NewGoError(err))
		}
		return b.vm.ToValue(js)
	}
}

// await suspends the calling task until js, a promise of JavaScript, is settled. Any other value is returned as it is.
func (b *bridge) await(ctx context.Context, js goja.Value) (goja.Value, error) {
	if _, ok := js.Export().(*goja.Promise); !ok {
		return js, nil
	}
	settled := promise.New[goja.Value]()
	fill := func(v goja.Value) { settled.Fill(v) }
	fail := func(v goja.Value) { settled.Fail(reason(v)) }
	then, _ := goja.AssertFunction(js.(*goja.Object).Get("then"))
	if _, err := then(js, b.vm.ToValue(fill), b.vm.ToValue(fail)); err != nil {
		return nil, err
	}
	return settled.Await(ctx)
}

// reason returns the error of a rejection. An error of Go comes back as itself, otherwise the error has the text of v.
func reason(v goja.Value) error {
	if o, ok := v.(*goja.Object); ok {
		if value := o.Get("value"); value != nil {
			if err, ok := value.Export().(error); ok {
				return err
			}
		}
	}
	return errors.New(v.String())
}
