package eventloop_test

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// An exiting task ends its goroutine when it yields, like a task that is killed.
type exiting struct{ suspend.Task }

func (exiting) Yield() { runtime.Goexit() }

// If a task ends while an operation yields, the operation must leave its turn to the next one, which would wait for ever
// otherwise.
func TestATaskEndsAsItYields(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer b.Close()
	defer a.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		suspend.Bind(exiting{sched.NewThread()}, func() {
			for range 1000 {
				must(a.Write(nil))
			}
			t.Error("uncovered: it has not yielded")
		})
	}()
	<-ended
	within(t, func() { must(a.Write(nil)) })
}

// A panic of the raw function reaches the caller, and an exit ends the caller's task. If the function ran on another goroutine, a
// panic would end the process, and an exit would leave the caller waiting.
func TestARawFunctionPanics(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer b.Close()
	defer a.Close()
	raw := must(a.SyscallConn())
	task(t, l, func() {
		schedtest.Panics(t, "oops", func() { _ = raw.Read(func(uintptr) bool { panic("oops") }) })
	})
	task(t, l, func() { _ = raw.Write(func(uintptr) bool { runtime.Goexit(); return true }) })
	task(t, l, func() { must(0, raw.Write(func(uintptr) bool { return true })) })
}

func TestServeWithoutAHandler(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	schedtest.Panics(t, "eventloop: nil handler", func() { _ = ln.Serve(context.Background(), nil) })
	accepted := make(chan error, 1)
	go func() { _, err := ln.Accept(); accepted <- err }()
	c := must(net.Dial("tcp", ln.Addr().String()))
	defer c.Close()
	within(t, func() { must(0, <-accepted) })
}
