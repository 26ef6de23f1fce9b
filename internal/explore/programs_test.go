//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/explore"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A program is one of a primitive: tasks, operations each, and what must hold.
type program struct {
	name    string
	size    string // tasks × operations
	program func(w *explore.World)
}

var programs = []program{
	{"promise", "3 × 1", func(w *explore.World) {
		p := promise.New[int]()
		for _, name := range []string{"await", "await2"} {
			w.Go(name, func(ctx context.Context) {
				if v, err := p.Await(ctx); err == nil && v != 1 {
					panic(v)
				}
			})
		}
		w.Go("fill", func(context.Context) { _ = p.Fill(1) })
		w.OnIdle(lost)
	}},
	{"mvar", "3 × 1", mvarProgram(func() place { return mvar.New[int]() })},
	{"mvar, 2 operations", "2 × 2", func(w *explore.World) {
		m := mvar.New[int]()
		put, taken := 0, 0
		w.Go("put", func(ctx context.Context) {
			for i := range 2 {
				if m.Put(ctx, i+1) == nil {
					put += i + 1
				}
			}
		})
		w.Go("take", func(ctx context.Context) {
			for range 2 {
				if v, err := m.Take(ctx); err == nil {
					taken += v
				}
			}
		})
		w.Check(func() error {
			v, _ := m.TryTake()
			return same(put, taken+v)
		})
	}},
	{"mutex", "2 × 2", mutexProgram(2, 2)},
	{"mutex, 3 tasks", "3 × 1", mutexProgram(3, 1)},
	{"rwmutex", "3 × 1", func(w *explore.World) {
		var m mutex.RWMutex
		readers, writers := 0, 0
		for _, name := range []string{"read", "read2"} {
			w.Go(name, func(ctx context.Context) {
				if m.RLock(ctx) == nil {
					readers++
					exclusive(func() bool { return writers == 0 })
					readers--
					m.RUnlock()
				}
			})
		}
		w.Go("write", func(ctx context.Context) {
			if m.Lock(ctx) == nil {
				writers++
				exclusive(func() bool { return readers == 0 && writers == 1 })
				writers--
				m.Unlock()
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}},
	{"semaphore", "3 × 1", semaphoreProgram(func() counter { return semaphore.New(2) })},
	{"semaphore, gated", "3 × 1", gatedProgram(func() counter { return semaphore.New(2) })},
	{"chanx, rendezvous", "3 × 1", chanProgram(0)},
	{"chanx, buffered", "3 × 1", chanProgram(1)},
	{"chanx, close", "3 × 1", func(w *explore.World) {
		c := chanx.New[int](0)
		sent, received := 0, 0
		w.Go("send", func(ctx context.Context) {
			if c.Send(ctx, 1) == nil {
				sent++
			}
		})
		w.Go("recv", func(ctx context.Context) {
			if _, err := c.Recv(ctx); err == nil {
				received++
			}
		})
		w.Go("close", func(context.Context) { _ = c.Close() })
		w.OnIdle(lost)
		w.Check(func() error { return same(sent, received) })
	}},
	{"select, two parties", "2 × 1", selectProgram},
	{"cond", "3 × 1", condProgram(func(m *mutex.Mutex) waiter { return cond.New(m.Locker()) })},
	{"latch", "3 × 1", func(w *explore.World) {
		l := latch.New(2)
		for _, name := range []string{"down", "down2"} {
			w.Go(name, func(context.Context) { l.CountDown() })
		}
		w.Go("wait", func(ctx context.Context) {
			if l.Wait(ctx) == nil && !l.TryWait() {
				panic("not open")
			}
		})
		w.OnIdle(lost)
	}},
	{"barrier", "2 × 1", func(w *explore.World) {
		b := latch.NewBarrier(2)
		passed, failed := 0, 0
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(ctx context.Context) {
				if _, err := b.Wait(ctx); err == nil {
					passed++
				} else {
					failed++
				}
			})
		}
		w.Check(func() error {
			if passed == 1 {
				return errors.New("one has passed alone")
			}
			return nil
		})
	}},
	{"lazy", "2 × 1", func(w *explore.World) {
		ran := 0
		l := lazy.New(func(context.Context) (int, error) { ran++; return 1, nil }, lazy.Restart)
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(ctx context.Context) { _, _ = l.Force(ctx) })
		}
		w.OnIdle(lost)
		w.Check(func() error {
			if ran > 1 {
				return errors.New("run twice")
			}
			return nil
		})
	}},
	{"Suspend", "3 × 1", func(w *explore.World) {
		var rs [2]suspend.Resumer[int]
		var published mvar.MVar[struct{}]
		delivered, returned := 0, 0
		w.Go("wait", func(ctx context.Context) {
			for i := range 2 { // the second must not see what is late for the first
				v, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
					rs[i] = r
					if i == 0 {
						_ = published.TryPut(struct{}{})
						return 0, false
					}
					if !r.Resume(7, nil) {
						return 7, true // cancelled
					}
					return 0, false
				})
				switch {
				case err == nil && i == 0:
					returned = v
				case err == nil && v != 7:
					panic(v)
				}
			}
			_ = published.TryPut(struct{}{}) // should nothing have been
		})
		for i, name := range []string{"resume", "resume2"} {
			w.Go(name, func(context.Context) {
				if _, err := published.Read(bg); err == nil && rs[0].Resume(i+1, nil) {
					delivered += i + 1
				}
			})
		}
		w.Check(func() error { return same(delivered, returned) })
	}},
	{"inbox", "3 × 1", inboxProgram(func() inbox { return new(coro.Inbox) })},
}

var errLost = errors.New("a wake-up is lost")

// lost is for programs in which nobody waits for ever.
func lost([]string) error { return errLost }

func same(x, y int) error {
	if x != y {
		return fmt.Errorf("%d and %d", x, y)
	}
	return nil
}

func free(ok bool) error {
	if !ok {
		return errors.New("it is not free at the end")
	}
	return nil
}

// exclusive sees to it that something holds for a while.
func exclusive(ok func() bool) {
	if !ok() {
		panic("not exclusive")
	}
	suspend.Yield()
	if !ok() {
		panic("not exclusive")
	}
}

type place interface {
	Put(ctx context.Context, v int) error
	Take(ctx context.Context) (int, error)
	TryTake() (int, bool)
}

func mvarProgram(open func() place) func(w *explore.World) {
	return func(w *explore.World) {
		m := open()
		put, taken := 0, 0
		w.Go("take", func(ctx context.Context) {
			if v, err := m.Take(ctx); err == nil {
				taken += v
			}
		})
		for i, name := range []string{"put", "put2"} {
			w.Go(name, func(ctx context.Context) {
				if m.Put(ctx, i+1) == nil {
					put += i + 1
				}
			})
		}
		w.OnIdle(func(waiting []string) error {
			if taken > 0 || len(waiting) > 1 || waiting[0] == "take" { // there is room for one value
				return errLost
			}
			return nil
		})
		w.Check(func() error {
			v, _ := m.TryTake()
			return same(put, taken+v)
		})
	}
}

type lock interface {
	Lock(ctx context.Context) error
	TryLock() bool
	Unlock()
}

func mutexProgram(tasks, ops int) func(w *explore.World) {
	return lockProgram(tasks, ops, func() lock { return new(mutex.Mutex) })
}

func lockProgram(tasks, ops int, open func() lock) func(w *explore.World) {
	return func(w *explore.World) {
		m := open()
		holders := 0
		for i := range tasks {
			w.Go(fmt.Sprint("lock", i), func(ctx context.Context) {
				for range ops {
					if m.Lock(ctx) == nil {
						if holders++; holders != 1 {
							panic("not exclusive")
						}
						suspend.Yield()
						holders--
						m.Unlock()
					}
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}
}

type counter interface {
	Acquire(ctx context.Context, n int64) error
	TryAcquire(n int64) bool
	Release(n int64)
}

func semaphoreProgram(open func() counter) func(w *explore.World) {
	return func(w *explore.World) {
		s := open()
		held := int64(0)
		for i, n := range []int64{1, 2, 1} {
			w.Go(fmt.Sprint("acquire", i), func(ctx context.Context) {
				if s.Acquire(ctx, n) == nil {
					if held += n; held > 2 {
						panic("too many")
					}
					suspend.Yield()
					held -= n
					s.Release(n)
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return free(s.TryAcquire(2)) })
	}
}

// One that is cancelled lets those behind it have what there is.
func gatedProgram(open func() counter) func(w *explore.World) {
	return func(w *explore.World) {
		s := open()
		var both promise.Promise[int]
		w.Go("first", func(context.Context) {
			_ = s.Acquire(bg, 1)
			_, _ = both.Await(bg)
			s.Release(1)
		})
		w.Go("gate", func(ctx context.Context) {
			if s.Acquire(ctx, 2) == nil {
				s.Release(2)
			}
		})
		w.Go("second", func(context.Context) {
			_ = s.Acquire(bg, 1)
			_ = both.Fill(1)
			s.Release(1)
		})
		w.Check(func() error { return free(s.TryAcquire(2)) })
	}
}

func chanProgram(capacity int) func(w *explore.World) {
	return func(w *explore.World) {
		c := chanx.New[int](capacity)
		sent, received := 0, 0
		for i, name := range []string{"send", "send2"} {
			w.Go(name, func(ctx context.Context) {
				if c.Send(ctx, i+1) == nil {
					sent += i + 1
				}
			})
		}
		w.Go("recv", func(ctx context.Context) {
			if v, err := c.Recv(ctx); err == nil {
				received += v
			}
		})
		w.Check(func() error {
			v, _, _ := c.TryRecv()
			return same(sent, received+v)
		})
	}
}

// Each would send on one of two channels or receive on the other.
func selectProgram(w *explore.World) {
	x, y := chanx.New[int](0), chanx.New[int](0)
	sent, received := 0, 0
	party := func(out, in *chanx.Chan[int]) func(context.Context) {
		return func(ctx context.Context) {
			send, recv := suspend.On(out.SendOp(1)), suspend.On(in.RecvOp())
			switch won, _ := suspend.SelectOrdered(ctx, send, recv); won {
			case send:
				sent++
			case recv:
				received++
			}
		}
	}
	w.Go("x", party(x, y))
	w.Go("y", party(y, x))
	w.OnIdle(func(waiting []string) error {
		if len(waiting) > 1 {
			return errLost
		}
		return nil
	})
	w.Check(func() error { return same(sent, received) })
}

type waiter interface {
	Wait(ctx context.Context) error
	Signal()
}

func condProgram(open func(*mutex.Mutex) waiter) func(w *explore.World) {
	return func(w *explore.World) {
		var m mutex.Mutex
		c := open(&m)
		tokens, taken := 0, 0
		for _, name := range []string{"wait", "wait2"} {
			w.Go(name, func(ctx context.Context) {
				_ = m.Lock(bg)
				defer m.Unlock()
				for tokens == 0 {
					if c.Wait(ctx) != nil {
						return
					}
				}
				tokens--
				taken++
			})
		}
		w.Go("signal", func(context.Context) {
			_ = m.Lock(bg)
			tokens++
			m.Unlock()
			c.Signal()
		})
		w.OnIdle(func([]string) error {
			if tokens > 0 {
				return errLost
			}
			return nil
		})
		w.Check(func() error { return same(1, tokens+taken) })
	}
}

type inbox interface {
	Push(it *coro.Item) bool
	Take() *coro.Item
	Sleep() bool
}

func inboxProgram(open func() inbox) func(w *explore.World) {
	return func(w *explore.World) {
		in := open()
		var wake mvar.MVar[struct{}]
		var items [2]coro.Item
		for i, name := range []string{"push", "push2"} {
			w.Go(name, func(context.Context) {
				if in.Push(&items[i]) {
					_ = wake.TryPut(struct{}{})
				}
			})
		}
		w.Go("sleep", func(context.Context) {
			for in.Take() == nil {
				if in.Sleep() {
					_, _ = wake.Take(bg)
				}
			}
		})
	}
}

// TestPrimitives prints what it has explored.
func TestPrimitives(t *testing.T) {
	t.Logf("%-20s %-6s %-11s %10s  %s", "primitive", "size", "preemptions", "runs", "")
	runs := 125_000 // enough for one preemption everywhere
	if testing.Short() {
		runs = 10_000
	}
	for _, p := range programs {
		for bound := range 4 {
			c := fine(bound)
			c.Cancellations, c.Executions = 1, runs
			start := time.Now()
			r := explore.Run(c, p.program)
			if r.Failure != nil {
				t.Errorf("%s, %d preemptions, run %d: %v", p.name, bound, r.Executions, r.Failure)
				break
			}
			end := "all"
			if !r.Exhausted {
				end = "and there are more"
			}
			t.Logf("%-20s %-6s %-11d %10d  %s %v", p.name, p.size, bound, r.Executions, end, time.Since(start).Round(time.Millisecond))
			if !r.Exhausted {
				break
			}
		}
	}
}
