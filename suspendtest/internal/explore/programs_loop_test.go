//go:build explore && linux && !braid_portable

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, loopPrograms...) }

// These programs test a reactor with its sleep, its wake-ups, its Close, its timers and a descriptor; a callback.Loop; and the
// watch for stalls.
var loopPrograms = []program{
	{"reactor, Close", "2 × 1", reactorProgram(nil)},
	{"reactor, Shutdown", "2 × 1", func(w *explore.World) { shutdownProgram(w, 1, false) }},
	{"reactors, Shutdown", "3 × 1", func(w *explore.World) { shutdownProgram(w, 2, false) }},
	{"reactors, a Shutdown that gives up", "3 × 1", func(w *explore.World) { shutdownProgram(w, 2, true) }},
	{"reactor, a callback", "3 × 1", reactorProgram(func(w *explore.World, x *eventloop.Exploring) {
		ran, accepted := 0, 0
		w.Go("submit", func(context.Context) {
			if x.Execute(func() { ran++ }) == nil {
				accepted++
			}
		})
		w.Check(func() error { return same(accepted, ran) })
	})},
	{"reactor, two callbacks", "4 × 1", reactorProgram(func(w *explore.World, x *eventloop.Exploring) {
		ran, accepted := 0, 0
		for _, name := range []string{"submit", "submit2"} {
			w.Go(name, func(context.Context) {
				if x.Execute(func() { ran++ }) == nil {
					accepted++
				}
			})
		}
		w.Check(func() error { return same(accepted, ran) })
	})},
	{"reactor, a timer", "2 × 2", func(w *explore.World) {
		x := eventloop.NewExploring()
		x.InAnHour()
		w.Go("run", func(context.Context) { x.Run() })
		w.Go("sleep", func(ctx context.Context) {
			err := x.Sleep(ctx, 1)
			if err != nil && !errors.Is(err, context.Canceled) {
				panic(err)
			}
			_ = x.Close()
		})
		w.OnIdle(lost)
		w.Check(freed(x))
	}},
	{"reactor, a sleeper", "3 × 1", reactorProgram(func(w *explore.World, x *eventloop.Exploring) {
		w.Go("sleep", func(ctx context.Context) {
			if err := x.Sleep(ctx, 1<<40); !errors.Is(err, suspend.ErrClosed) && !errors.Is(err, context.Canceled) {
				panic(fmt.Sprint("an hour has passed: ", err))
			}
		})
	})},
	{"turn", "3 × 1", func(w *explore.World) {
		s := eventloop.NewExploring().Stream()
		inside, turns, failed := 0, 0, 0
		for i := range 3 {
			w.Go(fmt.Sprint("reader", i), func(ctx context.Context) {
				if s.Turn(ctx, func() {
					if inside++; inside > 1 {
						panic("two have the turn")
					}
					suspend.Yield()
					inside--
					turns++
				}) != nil {
					failed++
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return same(3, turns+failed) })
	}},
	{"readiness", "2 × 2", func(w *explore.World) {
		s := eventloop.NewExploring().Stream()
		read, failed := 0, 0
		w.Go("read", func(ctx context.Context) {
			for range 2 {
				if n, err := s.Read(ctx); err == nil {
					read += n
				} else {
					failed++
				}
			}
		})
		w.Go("peer", func(context.Context) { s.Put(); s.Put() })
		w.OnIdle(lost)
		w.Check(func() error { return same(2, read+failed) })
	}},
	{"readiness, Close", "3 × 1", func(w *explore.World) {
		s := eventloop.NewExploring().Stream()
		w.Go("read", func(ctx context.Context) {
			if _, err := s.Read(ctx); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
				panic(err)
			}
		})
		w.Go("peer", func(context.Context) { s.Put() })
		w.Go("close", func(context.Context) { _ = s.Close() })
		w.OnIdle(lost)
		w.Check(func() error {
			if !s.Closed() {
				return errors.New("the descriptor is left open")
			}
			return nil
		})
	}},
	{"readiness, a Close alone", "2 × 1", func(w *explore.World) {
		s := eventloop.NewExploring().Stream()
		w.Go("read", func(ctx context.Context) {
			if _, err := s.Read(ctx); !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
				panic(err)
			}
		})
		w.Go("close", func(context.Context) { _ = s.Close() })
		w.OnIdle(lost)
	}},
	{"readiness, deadline", "2 × 1", func(w *explore.World) {
		s := eventloop.NewExploring().Stream()
		w.Go("read", func(ctx context.Context) {
			if _, err := s.Read(ctx); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.Canceled) {
				panic(err)
			}
		})
		w.Go("expire", func(context.Context) { _ = s.Expire() })
		w.OnIdle(lost)
	}},
	{"pause", "3 × 1", reactorProgram(func(w *explore.World, x *eventloop.Exploring) {
		ln := x.Listener()
		w.Go("accept", func(ctx context.Context) { _ = x.Pause(ctx, ln, time.Hour) })
		w.Go("closeln", func(context.Context) { _ = ln.Close() })
	})},
	{"pause, timer", "2 × 2", func(w *explore.World) {
		x := eventloop.NewExploring()
		w.Go("run", func(context.Context) { x.Run() })
		w.Go("accept", func(ctx context.Context) {
			_ = x.Pause(ctx, x.Listener(), 1)
			_ = x.Close()
		})
		w.OnIdle(lost)
	}},
	{"callback", "3 × 1", callbackProgram(1)},
	{"callback, two threads", "4 × 1", callbackProgram(2)},
	{"callback, abandoned", "3 × 1", func(w *explore.World) {
		var posted atomicx.Int32
		x := callback.NewExploring(func() { posted.Add(1) })
		stepping, ran, accepted := 0, 0, 0
		w.Go("thread", func(context.Context) { // runs two steps, and ends
			for range 2 {
				if posted.Load() > 0 {
					x.Step()
				}
			}
		})
		w.Go("submit", func(context.Context) {
			if x.Execute(func() {
				if stepping++; stepping > 1 {
					panic("two steps at the same time")
				}
				suspend.Yield()
				stepping--
				ran++
			}) == nil {
				accepted++
			}
		})
		w.Go("close", func(context.Context) {
			x.Abandon()
			_ = x.Close()
		})
		w.OnIdle(lost)
		w.Check(func() error { return same(accepted, ran) })
	}},
	{"stalls", "2 × 2", func(w *explore.World) {
		s := fifo.NewWatch()
		w.Go("worker", func(context.Context) { s.End(); s.Step() })
		w.Go("timer", func(context.Context) { s.Look(); s.Look() })
		w.Check(func() error {
			if !s.Set() {
				return errors.New("a task runs without a look of the watch")
			}
			return nil
		})
	}},
}

// reactorProgram has a reactor, a task that closes it, and others.
func reactorProgram(others func(w *explore.World, x *eventloop.Exploring)) func(w *explore.World) {
	return func(w *explore.World) {
		x := eventloop.NewExploring()
		w.Go("run", func(context.Context) { x.Run() })
		if others != nil {
			others(w, x)
		}
		w.Go("close", func(context.Context) { _ = x.Close() })
		w.OnIdle(lost)
		w.Check(freed(x))
	}
}

// shutdownProgram shuts down a Loop with n reactors, which wait for each other. If the Shutdown may give up, a Close ends the
// Loop.
func shutdownProgram(w *explore.World, n int, givesUp bool) {
	all := eventloop.NewExplorings(n)
	for i, x := range all {
		w.Go(fmt.Sprint("run", i), func(context.Context) { x.Run() })
		w.Check(freed(x))
	}
	w.Go("shutdown", func(ctx context.Context) {
		if !givesUp {
			ctx = context.Background()
		}
		switch err := all[0].Shutdown(ctx); {
		case err == nil:
		case errors.Is(err, context.Canceled) && givesUp:
			_ = all[0].Close()
		default:
			panic(err)
		}
	})
	w.OnIdle(lost)
}

func freed(x *eventloop.Exploring) func() error {
	return func() error {
		if !x.Freed() {
			return errors.New("the poller is left open")
		}
		return nil
	}
}

// callbackProgram has a Loop on an executor with several threads. Each step runs on any of them, one at a time.
func callbackProgram(threads int) func(w *explore.World) {
	return func(w *explore.World) {
		var posted, over atomicx.Int32
		var selves [2]atomicx.Pointer[suspend.Task]
		wake := func() {
			for i := range threads {
				if self := selves[i].Load(); self != nil {
					(*self).Unpark()
				}
			}
		}
		x := callback.NewExploring(func() { posted.Add(1); wake() })
		stepping, ran, accepted := 0, 0, 0
		for i := range threads {
			w.Go(fmt.Sprint("thread", i), func(context.Context) {
				self := suspend.Self()
				selves[i].Store(&self)
				for over.Load() == 0 {
					n := posted.Load()
					if n == 0 {
						self.Park()
						continue
					}
					if !posted.CompareAndSwap(n, n-1) {
						continue
					}
					if stepping++; stepping > 1 {
						panic("two steps at the same time")
					}
					suspend.Yield()
					stepping--
					x.Step()
				}
			})
		}
		w.Go("submit", func(context.Context) {
			if x.Execute(func() { ran++ }) == nil {
				accepted++
			}
		})
		w.Go("close", func(context.Context) {
			_ = x.Close()
			over.Store(1)
			wake()
		})
		w.Check(func() error { return same(accepted, ran) })
	}
}
