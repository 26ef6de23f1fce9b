package integration_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// An executor runs functions on the goroutine that receives from it.
type executor chan func()

func (x executor) Execute(f func()) error { x <- f; return nil }

// Twenty tasks block natively for 5 ms each, again and again. No step is long, but a new task waits for twice the limit, which is
// reported. If the tasks compute instead, there is no stall.
func TestARowOfNativeWaitsIsReported(t *testing.T) {
	const limit, each, tasks = 50 * time.Millisecond, 5 * time.Millisecond, 20
	for name, open := range map[string]func(onStall func([]byte)) (suspend.Spawner, func()){
		"fifo": func(onStall func([]byte)) (suspend.Spawner, func()) {
			s := fifo.New(fifo.Options{StallAfter: limit, OnStall: onStall})
			return s, suspendtest.Drive(s.Run)
		},
		"eventloop": func(onStall func([]byte)) (suspend.Spawner, func()) {
			s, err := eventloop.New(eventloop.Options{StallAfter: limit, OnStall: onStall, HandOver: -1})
			if err != nil {
				t.Fatal(err)
			}
			return s, func() { _ = s.Close() }
		},
		"callback": func(onStall func([]byte)) (suspend.Spawner, func()) {
			x := make(executor, 1)
			go func() {
				for f := range x {
					f()
				}
			}()
			s := callback.New(x, callback.Options{StallAfter: limit, OnStall: onStall})
			return s, func() { _ = s.Close(); close(x) }
		},
		"workstealing": func(onStall func([]byte)) (suspend.Spawner, func()) {
			s := workstealing.New(workstealing.Options{Workers: 1, StallAfter: limit, OnStall: onStall})
			return s, func() { _ = s.Close() }
		},
	} {
		for _, native := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/native", false: "/computing"}[native], func(t *testing.T) {
				defer schedtest.Within(t, schedtest.Deadline)()
				var reported atomic.Bool
				s, closeAll := open(func(report []byte) {
					if strings.Contains(string(report), "one after another") {
						if reported.Store(true); !strings.Contains(string(report), "a native wait in a task (sleep): see suspend.Blocking and adapters/eventloop/README.md") {
							t.Errorf("%s", report)
						}
					}
				})
				var computed atomic.Int32
				for range tasks {
					_ = s.Go(func() {
						for !reported.Load() && computed.Load() < 3*tasks {
							if native {
								time.Sleep(each)
							} else {
								for begun := time.Now(); time.Since(begun) < each; {
								}
								computed.Add(1)
							}
							suspend.Yield()
						}
					})
				}
				closeAll()
				if reported.Load() != native {
					t.Errorf("reported: %v", reported.Load())
				}
			})
		}
	}
}
