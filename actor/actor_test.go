package actor_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

// A panic that no function recovers ends the actor. Its watchers are notified, and the panic continues into the scheduler.
func TestPanicGoesOn(t *testing.T) {
	var value any
	var stack []byte
	s := fifo.New(fifo.Options{OnPanic: func(v any, st []byte) { value, stack = v, st }})
	var dead []int
	require.NoError(t, s.Run(bg, func(context.Context) error {
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, once(func(int) error { panicking(); return nil })), actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
		_ = ref.Send(1)
		_ = ref.Send(2)
		var p *suspend.PanicError
		require.ErrorAs(t, ref.Wait(bg), &p)
		require.Equal(t, "oops", p.Value)
		return nil
	}))
	require.Equal(t, "oops", value)
	require.Contains(t, string(stack), "panicking")
	require.Equal(t, []int{2}, dead) // the other message counts as received
}

func panicking() { panic("oops") }

// After 64 messages, an actor lets other tasks run.
func TestFairness(t *testing.T) {
	for name, body := range map[string]func(_ context.Context, self *actor.Self[int], n *int) error{
		"react": func(_ context.Context, self *actor.Self[int], n *int) error {
			return actor.Loop(func() error { return self.React(func(int) error { *n++; return nil }) })
		},
		"receive": func(_ context.Context, self *actor.Self[int], n *int) error {
			for {
				if _, err := self.Receive(bg); err != nil {
					return err
				}
				*n++
			}
		},
		"loop": func(_ context.Context, self *actor.Self[int], n *int) error {
			return actor.Loop(func() error {
				if *n++; *n == 1000 {
					return actor.ErrStopped
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				n := 0
				ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error { return body(ctx, self, &n) }, actor.Options[int]{})
				for range 1000 {
					_ = ref.Send(1)
				}
				suspend.Yield()
				require.InDelta(t, 64, n, 2)
				ref.Stop()
				require.NoError(t, ref.Wait(bg))
				require.Equal(t, 1000, n)
			})
		})
	}
}

// Actors that watch each other end at the same time. Each is notified of the other's end, or has ended before. The actors share no
// data without a lock.
func TestWatchEachOther(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	p := workstealing.New(workstealing.Options{Workers: 2})
	defer p.Close()
	for range 300 {
		refs := make([]actor.Ref[any], 4)
		var ready promise.Promise[int]
		for i := range refs {
			refs[i] = actor.Spawn(bg, p, func(ctx context.Context, self *actor.Self[any]) error {
				_, _ = ready.Await(ctx)
				for k, other := range refs {
					if k != i {
						self.Watch(other, func(err error) any { return err })
						self.Link(other)
					}
				}
				if i == 0 {
					return errOops
				}
				return self.React(func(any) error { return nil })
			}, actor.Options[any]{})
		}
		_ = ready.Fill(1)
		for _, r := range refs {
			_ = r.Wait(bg)
		}
	}
}

// An adapted Ref accepts another type of message. Its requests still belong to the actor behind it.
func TestAdapt(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var all table
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(i int) error { all[i].Reply(7); return self.React(func(int) error { return nil }) })
		}, actor.Options[int]{})
		index := func(m any) int { return all.add(m.(*get)) }
		part := actor.Adapt(ref, index)
		require.Equal(t, 7, ok(actor.Ask(bg, part, &get{})))
		lost := actor.AskLater(part, &get{})
		require.NoError(t, part.Wait(bg))
		_, err := lost.Await(bg)
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorIs(t, part.Send(&get{}), actor.ErrEnded)
		_, err = suspend.Do(bg, part.SendOp(&get{}))
		require.ErrorIs(t, err, actor.ErrEnded)
		require.Equal(t, actor.Ref[any]{}, actor.Adapt(actor.Ref[int]{}, index))
	})
}

// The zero Ref behaves like the Ref of an actor that has ended.
func TestZeroRef(t *testing.T) {
	var r actor.Ref[any]
	require.ErrorIs(t, r.Send(1), actor.ErrEnded)
	require.ErrorIs(t, r.SendWait(bg, 1), actor.ErrEnded)
	_, err := actor.Ask(bg, r, &get{})
	require.ErrorIs(t, err, actor.ErrNoReply)
	r.Stop()
	r.Kill(nil)
	require.NoError(t, r.Wait(bg))
	<-r.Done()
	require.Equal(t, actor.Ref[any]{}, r)
}

// OrElse and On combine partial functions.
func TestOrElse(t *testing.T) {
	in := actor.Open[any](bg, actor.Options[any]{})
	var got []any
	f := actor.OrElse(actor.Only[int, any](func(m int) error { got = append(got, m); return nil }),
		actor.Only[string, any](func(m string) error { got = append(got, m); return errOops }))
	for _, m := range []any{1.5, "x", 2} {
		_ = in.Ref().Send(m)
	}
	require.Equal(t, errOops, in.Handle(bg, f))
	require.NoError(t, in.Handle(bg, f))
	require.Equal(t, []any{"x", 2}, got)
	in.Close()
	in.Close()
	_, err := in.Receive(bg)
	require.ErrorIs(t, err, actor.ErrEnded)
	require.NoError(t, in.Ref().Wait(bg))
}

// A nil Spawner means plain goroutines, also for the steps of an actor after a wait without a task.
func TestSpawnOnANilSpawner(t *testing.T) {
	schedtest.OnFIFO(t, func(*fifo.Scheduler) { // in a scheduler, so that a task would not be a plain goroutine
		ref := actor.Spawn(bg, nil, func(_ context.Context, self *actor.Self[int]) error {
			require.Nil(t, suspend.Current())
			return self.ReactWithin(time.Hour, func(int) error { require.Nil(t, suspend.Current()); return nil }, func() error { return nil })
		}, actor.Options[int]{})
		require.NoError(t, ref.Send(1))
		require.NoError(t, ref.Wait(bg))
	})
}

// Misuse panics, and leaves the mailbox intact.
func TestMisuse(t *testing.T) {
	schedtest.Panics(t, "actor: Spawn with a nil body", func() { actor.Spawn(bg, suspend.Goroutines, nil, actor.Options[int]{}) })
	in := actor.Open[string](bg, actor.Options[string]{})
	schedtest.Panics(t, "actor: Ask with a *actor_test.get, which is not a message type of actor.Ref[string]", func() { _, _ = actor.Ask(bg, in.Ref(), &get{}) })
	asked := actor.Open[*get](bg, actor.Options[*get]{})
	g := &get{}
	require.False(t, g.Reply(1)) // g was not asked
	actor.AskLater(asked.Ref(), g)
	schedtest.Panics(t, "actor: Ask with a request that was already used", func() { actor.AskLater(asked.Ref(), g) })
	schedtest.Panics(t, "actor: Refuse with a nil error", func() { g.Refuse(nil) })
	_ = in.Ref().Send("m")
	schedtest.Panics(t, "oops", func() { _, _ = suspend.Do(bg, in.RecvOp(func(string) bool { panicking(); return true })) })
	require.Equal(t, "m", ok(in.Receive(bg)))

	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	require.NoError(t, s.Run(bg, func(context.Context) error {
		for want, body := range map[string]func(self *actor.Self[int]) error{
			"actor: Skip returned by a function that is not called with a message": func(*actor.Self[int]) error { return actor.Skip },
			"actor: the function returned the Next of an actor with another message type": func(*actor.Self[int]) error {
				return new(actor.Self[string]).React(func(string) error { return nil })
			},
		} {
			var p *suspend.PanicError
			require.ErrorAs(t, actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error { return body(self) }, actor.Options[int]{}).Wait(bg), &p)
			require.Equal(t, want, p.Value)
		}
		return nil
	}))
}

type holding struct {
	suspend.Spawner
	held   atomic.Int32
	refuse bool
}

func (h *holding) Hold() (release func(), err error) {
	if h.refuse {
		return nil, errOops
	}
	h.held.Add(1)
	return func() { h.held.Add(-1) }, nil
}

// The mailbox behaves like a slice: random receives, in any order, nested or not, return the same messages.
func TestMailboxIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := actor.Open[int](bg, actor.Options[int]{})
		defer in.Close()
		var model []int
		next := 0
		var step func(depth int)
		handle := func(depth, r int) {
			i, taken := 0, -1
			err := in.HandleWithin(bg, 0, func(m int) error {
				require.Equal(t, model[i], m)
				if m%3 == r {
					i++
					return actor.Skip
				}
				model = slices.Delete(slices.Clone(model), i, i+1) // a nested receive does not see the message
				taken = m
				if depth > 0 {
					step(depth - 1)
				}
				return nil
			})
			if taken < 0 {
				require.ErrorIs(t, err, actor.ErrTimeout)
			} else {
				require.NoError(t, err)
			}
		}
		step = func(depth int) {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				for range rapid.IntRange(1, 150).Draw(t, "sends") {
					require.NoError(t, in.Ref().Send(next))
					model = append(model, next)
					next++
				}
			case 2:
				for range rapid.IntRange(1, 100).Draw(t, "receives") {
					m, err := pending(in)
					if len(model) == 0 {
						require.ErrorIs(t, err, actor.ErrTimeout)
						break
					}
					require.NoError(t, err)
					require.Equal(t, model[0], m)
					model = model[1:]
				}
			case 3:
				for range rapid.IntRange(1, 100).Draw(t, "handles") {
					handle(0, 0)
				}
			case 4:
				handle(depth, 1)
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			step(2)
			require.Equal(t, len(model), in.Len())
		}
	})
}

// A message is freed once it is handled. An actor that has ended keeps no messages, even if the program keeps its Ref.
func TestNothingIsKept(t *testing.T) {
	var o schedtest.Objects
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[*schedtest.Object]) error {
			_, err := self.Receive(bg)
			_ = self.Handle(bg, func(*schedtest.Object) error { return nil })
			return actor.AndThen(err, func() error {
				return actor.Loop(func() error {
					return self.React(func(m *schedtest.Object) error { return nil })
				})
			})
		}, actor.Options[*schedtest.Object]{})
		for range 200 {
			_ = ref.Send(o.New())
		}
		schedtest.Settle()
		o.Collected(t, 0)
		for range 100 {
			_ = ref.Send(o.New())
		}
		ref.Kill(nil)
		_ = ref.Wait(bg)
		o.Collected(t, 0)
		runtime.KeepAlive(ref)
	})
}

func receiving(ctx context.Context, self *actor.Self[int], f func(int) error) error {
	for {
		m, err := self.Receive(ctx)
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
}

// In the steady state, sending and handling allocate nothing.
func TestAllocs(t *testing.T) {
	if schedtest.Race {
		return
	}
	for _, c := range []struct {
		name string
		most float64
		body func(self *actor.Self[any]) error
		one  func(ref actor.Ref[any])
	}{
		{"React, in a loop", 0, func(self *actor.Self[any]) error {
			next := self.React(func(m any) error { return nil })
			return actor.Loop(func() error { return next })
		}, func(ref actor.Ref[any]) { _ = ref.Send(1); suspend.Yield() }},
		{"React, made anew", 0, func(self *actor.Self[any]) error {
			f := func(m any) error { return nil }
			return actor.Loop(func() error { return self.React(f) })
		}, func(ref actor.Ref[any]) { _ = ref.Send(1); suspend.Yield() }},
		{"Receive", 0, func(self *actor.Self[any]) error {
			for {
				if _, err := self.Receive(bg); err != nil {
					return err
				}
			}
		}, func(ref actor.Ref[any]) { _ = ref.Send(1); suspend.Yield() }},
		{"Handle", 0, func(self *actor.Self[any]) error {
			f := func(m any) error { return nil }
			for {
				if err := self.Handle(bg, f); err != nil {
					return err
				}
			}
		}, func(ref actor.Ref[any]) { _ = ref.Send(1); suspend.Yield() }},
		{"Ask, with its message", 1, func(self *actor.Self[any]) error {
			next := self.React(func(m any) error { m.(*get).Reply(1); return nil })
			return actor.Loop(func() error { return next })
		}, func(ref actor.Ref[any]) { _, _ = actor.Ask(bg, ref, &get{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[any]) error { return c.body(self) }, actor.Options[any]{})
				for range 10 {
					c.one(ref)
				}
				if got := testing.AllocsPerRun(200, func() { c.one(ref) }); got > c.most {
					t.Errorf("%v allocations, at most %v expected", got, c.most)
				}
				ref.Stop()
			})
		})
	}
}
