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

// jsLoop adapts the event loop of goja_nodejs to suspend.Executor.
type jsLoop struct{ *eventloop.EventLoop }

func (l jsLoop) Execute(f func()) error {
	if !l.RunOnLoop(func(*goja.Runtime) { f() }) {
		return suspend.ErrClosed
	}
	return nil
}

// A bridge connects JavaScript and Go. Its tasks run on the JavaScript thread.
type bridge struct {
	ctx   context.Context
	vm    *goja.Runtime
	tasks *callback.Loop
}

// async wraps f as an async JavaScript function. Each call runs f in a task on the JavaScript thread, so f may suspend and may use the VM.
func async[A, T any](b *bridge, f func(ctx context.Context, arg A) (T, error)) func(arg A) goja.Value {
	return func(arg A) goja.Value {
		js, resolve, reject := b.vm.NewPromise()
		err := b.tasks.Go(func() {
			if v, err := f(b.ctx, arg); err != nil {
				_ = reject(b.vm.NewGoError(err)) // throws an exception in the script
			} else {
				_ = resolve(v)
			}
		})
		if err != nil { // b.tasks is closed
			_ = reject(b.vm.NewGoError(err))
		}
		return b.vm.ToValue(js)
	}
}

// await suspends the calling task until the JavaScript promise js is settled, and returns its value. If js is not a promise, await returns
// js.
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

// reason converts the value of a rejected promise to an error. It unwraps a Go error; any other value becomes a new error with the text of
// v.
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
