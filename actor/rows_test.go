package actor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

type get struct{ actor.Request[int] }

// ok returns v, and panics if err is not nil.
func ok[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// once returns the body of an actor that reacts with f and ends. loop returns the body of an actor that reacts with f again and
// again.
func once[M any](f func(M) error) func(context.Context, *actor.Self[M]) error {
	return func(_ context.Context, self *actor.Self[M]) error { return self.React(f) }
}

func loop[M any](f func(M) error) func(context.Context, *actor.Self[M]) error {
	return func(_ context.Context, self *actor.Self[M]) error {
		return actor.Loop(func() error { return self.React(f) })
	}
}

// rows is the table of the actors' semantics. Each row runs on every scheduler of schedtest, and main is a task of the scheduler.
var rows = []struct {
	name string
	main func(t *testing.T, s suspend.Spawner)
}{
	{"order: of one sender", func(t *testing.T, s suspend.Spawner) {
		const n = 500
		var got []int
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error {
				return self.React(func(m int) error {
					got = append(got, m)
					if m%3 == 0 {
						m, err := self.Receive(bg)
						got = append(got, m)
						return err
					}
					return nil
				})
			})
		}, actor.Options[int]{})
		for i := range n {
			require.NoError(t, ref.Send(i))
		}
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.Len(t, got, n)
		require.True(t, slices.IsSorted(got))
	}},
	{"order: a message never comes before its cause", func(t *testing.T, s suspend.Spawner) {
		in := actor.Open[string](bg, actor.Options[string]{})
		defer in.Close()
		to := in.Ref()
		second := actor.Spawn(bg, s, once(func(int) error { return to.Send("effect") }), actor.Options[int]{})
		actor.Spawn(bg, s, func(context.Context, *actor.Self[int]) error {
			_ = to.Send("cause")
			return second.Send(1)
		}, actor.Options[int]{})
		for _, want := range []string{"cause", "effect"} {
			m := ok(in.Receive(bg))
			require.Equal(t, want, m)
		}
	}},
	{"what a receive takes: the first that is not skipped, and each wait begins at the front", func(t *testing.T, s suspend.Spawner) {
		in := actor.Open[int](bg, actor.Options[int]{})
		defer in.Close()
		for i := range 200 {
			_ = in.Ref().Send(i)
		}
		odd, calls := 0, 0
		for range 50 {
			require.NoError(t, in.Handle(bg, func(m int) error {
				calls++
				if m%2 == 0 {
					return actor.Skip
				}
				odd = m
				return nil
			}))
		}
		require.Equal(t, 99, odd)
		require.Equal(t, 50*51/2+50, calls)
		require.Equal(t, 150, in.Len())
		for i := range 150 {
			m := ok(in.Receive(bg))
			if i <= 50 {
				require.Equal(t, min(2*i, 100), m)
			} else {
				require.Equal(t, i+50, m)
			}
		}
	}},
	{"what a receive takes: a wait looks at each message once", func(t *testing.T, s suspend.Spawner) {
		looked := map[int]int{}
		var waits promise.Promise[int]
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			look := func(m int) error {
				if looked[m]++; m == 3 {
					_ = waits.Fill(0)
				}
				if m < 100 {
					return actor.Skip
				}
				return nil
			}
			return actor.AndThen(self.React(look), func() error { return self.Handle(bg, look) })
		}, actor.Options[int]{})
		for i := range 4 {
			_ = ref.Send(i)
		}
		_, _ = waits.Await(bg)
		_ = ref.Send(4)
		_ = ref.Send(100)
		_ = ref.Send(101)
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, map[int]int{0: 2, 1: 2, 2: 2, 3: 2, 4: 2, 100: 1, 101: 1}, looked)
	}},
	{"where f runs: in the task, while its message keeps its place, and nested receives pass over the message", func(t *testing.T, s suspend.Spawner) {
		in := actor.Open[int](bg, actor.Options[int]{})
		defer in.Close()
		for i := range 5 {
			_ = in.Ref().Send(i)
		}
		var inner []int
		skipped := false
		require.NoError(t, in.Handle(bg, func(m int) error {
			if skipped {
				return nil
			}
			for range 2 { // message 0 is being handled
				v := ok(in.Receive(bg))
				inner = append(inner, v)
			}
			require.NoError(t, in.Handle(bg, func(v int) error {
				w, err := in.Receive(bg)
				inner = append(inner, v, w)
				require.NoError(t, err)
				return nil
			}))
			_, err := pending(in)
			require.ErrorIs(t, err, actor.ErrTimeout)
			suspend.Yield()
			_ = in.Ref().Send(5)
			skipped = true
			return actor.Skip
		}))
		require.Equal(t, []int{1, 2, 3, 4}, inner)
		require.Equal(t, 0, ok(in.Receive(bg)))
		require.Zero(t, in.Len())
	}},
	{"Send and an end: accepted before, or ErrEnded", func(t *testing.T, s suspend.Spawner) {
		for _, end := range []func(r actor.Ref[int]){
			func(r actor.Ref[int]) { r.Stop() },
			func(r actor.Ref[int]) { r.Kill(errOops) },
			func(r actor.Ref[int]) { _ = r.Send(-1) },
		} {
			var received, dead atomic.Int32
			ref := actor.Spawn(bg, s, loop(func(m int) error {
				received.Add(1)
				if m < 0 {
					return errOops
				}
				return nil
			}), actor.Options[int]{Dead: func(int) { dead.Add(1) }})
			accepted := int32(0)
			for i := range 100 {
				if i == 50 {
					end(ref)
				}
				if i%7 == 0 {
					suspend.Yield()
				}
				if err := ref.Send(i); err == nil {
					accepted++
				} else {
					require.ErrorIs(t, err, actor.ErrEnded)
				}
			}
			_ = ref.Send(-1)
			_ = ref.Wait(bg)
			require.ErrorIs(t, ref.Send(1), actor.ErrEnded)
			sum := received.Load() + dead.Load()
			require.Contains(t, []int32{accepted, accepted + 1, accepted + 2}, sum) // the messages with -1
		}
	}},
	{"timeouts: a message that is there wins, and none is lost", func(t *testing.T, s suspend.Spawner) {
		in := actor.Open[int](bg, actor.Options[int]{})
		defer in.Close()
		_, err := pending(in)
		require.ErrorIs(t, err, actor.ErrTimeout)
		_ = in.Ref().Send(1)
		require.Equal(t, 1, ok(pending(in)))
		_ = in.Ref().Send(2)
		require.ErrorIs(t, in.HandleWithin(bg, time.Microsecond, func(int) error { return actor.Skip }), actor.ErrTimeout)
		require.Equal(t, 1, in.Len())

		late := ""
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			skip := func(int) error { return actor.Skip }
			return self.ReactWithin(0, skip, func() error {
				late += "flush "
				return self.ReactWithin(time.Millisecond, skip, func() error {
					late += "late"
					return nil
				})
			})
		}, actor.Options[int]{})
		_ = ref.Send(1)
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, "flush late", late)
	}},
	{"timeouts: an absolute deadline is a message", func(t *testing.T, s suspend.Spawner) {
		n := 0
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[string]) error {
			self.SendAfter(time.Millisecond, "deadline")
			stop := self.SendAfter(time.Hour, "never")
			require.True(t, stop())
			require.False(t, stop())
			self.SendAfter(time.Hour, "given up at the end")
			return actor.Loop(func() error {
				return self.React(func(m string) error {
					if n++; m == "deadline" {
						return actor.ErrStopped
					}
					return nil
				})
			})
		}, actor.Options[string]{})
		for ref.Send("traffic") == nil {
			_ = suspend.Sleep(bg, 10*time.Microsecond)
		}
		require.NoError(t, ref.Wait(bg))
		require.Positive(t, n)
	}},
	{"Stop: drains, then ErrStopped, also while messages are skipped", func(t *testing.T, s suspend.Spawner) {
		var got, dead []int
		var err error
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			for err == nil {
				err = self.Handle(bg, func(m int) error {
					if m%2 == 0 {
						return actor.Skip
					}
					got = append(got, m)
					return nil
				})
			}
			return err
		}, actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
		for i := range 6 {
			_ = ref.Send(i)
		}
		ref.Stop()
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.ErrorIs(t, err, actor.ErrStopped)
		require.Equal(t, []int{1, 3, 5}, got)
		require.Equal(t, []int{0, 2, 4}, dead)
	}},
	{"Stop: an actor in React ends", func(t *testing.T, s suspend.Spawner) {
		var dead []int
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			return actor.AndThen(self.React(func(int) error { return actor.Skip }), func() error { panic("not reached") })
		}, actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
		_ = ref.Send(1)
		suspend.Yield()
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, []int{1}, dead)
	}},
	{"Kill: ends waits at once, whatever their context, and the cause is the error", func(t *testing.T, s suspend.Spawner) {
		for _, wait := range []func(ctx context.Context, self *actor.Self[int]) error{
			func(_ context.Context, self *actor.Self[int]) error { _, err := self.Receive(bg); return err },
			func(_ context.Context, self *actor.Self[int]) error {
				return self.Handle(bg, func(int) error { return actor.Skip })
			},
			once(func(int) error { return actor.Skip }),
			func(ctx context.Context, self *actor.Self[int]) error {
				_, err := promise.New[int]().Await(ctx)
				return err
			},
			func(_ context.Context, self *actor.Self[int]) error {
				return actor.Await(self, promise.New[int]().AwaitOp(), func(_ int, err error) error { return err })
			},
			func(_ context.Context, self *actor.Self[int]) error {
				_, err := suspend.Do(bg, self.RecvOp(func(int) bool { return false }))
				return err
			},
		} {
			var got error
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				return actor.Catch(func() error {
					return actor.Loop(func() error {
						err := wait(ctx, self)
						if _, ok := err.(actor.Next); !ok {
							got = err
						}
						return err
					})
				}, func(err error) error { panic("a Kill was caught") })
			}, actor.Options[int]{})
			suspend.Yield()
			ref.Kill(errOops)
			ref.Kill(errors.New("not the first"))
			require.Equal(t, errOops, ref.Wait(bg))
			if got != nil {
				require.ErrorIs(t, got, errOops)
				require.ErrorIs(t, got, context.Canceled)
			}
		}
	}},
	{"ctx done: a Kill with its cause, also if messages are left", func(t *testing.T, s suspend.Spawner) {
		ctx, cancel := context.WithCancelCause(bg)
		ref := actor.Spawn(ctx, s, once(func(int) error { return actor.Skip }), actor.Options[int]{})
		suspend.Yield()
		cancel(errOops)
		require.Equal(t, errOops, ref.Wait(bg))
		_ = ref.Send(1)
		ref = actor.Spawn(ctx, s, func(ctx context.Context, self *actor.Self[int]) error {
			_, err := self.Receive(bg)
			return err
		}, actor.Options[int]{})
		require.Equal(t, errOops, ref.Wait(bg))
	}},
	{"a request: answered, sent on, refused, answered by a goroutine", func(t *testing.T, s suspend.Spawner) {
		last := actor.Spawn(bg, s, loop(func(m *get) error { require.True(t, m.Reply(7)); require.False(t, m.Reply(8)); return nil }), actor.Options[*get]{})
		n := 0
		first := actor.Spawn(bg, s, loop(func(m any) error {
			g := m.(*get)
			switch n++; n {
			case 1:
				return last.Send(g)
			case 2:
				g.Refuse(errOops)
			case 3:
				_ = elsewhere(s).Go(func() { g.Reply(9) })
			}
			return nil
		}), actor.Options[any]{})
		require.Equal(t, 7, ok(actor.Ask(bg, first, &get{})))
		_, err := actor.Ask(bg, first, &get{})
		require.Equal(t, errOops, err)
		require.Equal(t, 9, ok(actor.AskLater(first, &get{}).Await(bg)))
		first.Stop()
		last.Stop()
		require.NoError(t, first.Wait(bg))
		_, err = actor.Ask(bg, first, &get{})
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorIs(t, err, actor.ErrEnded)
		_, err = actor.AskLater(first, &get{}).Await(bg)
		require.ErrorIs(t, err, actor.ErrNoReply)
	}},
	{"a request: fails at the end of its home, and at no other actor's end", func(t *testing.T, s suspend.Spawner) {
		second := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[*get]) error {
			return self.React(func(m *get) error { return self.React(func(*get) error { return nil }) })
		}, actor.Options[*get]{})
		first := actor.Spawn(bg, s, once(func(m *get) error { return second.Send(m) }), actor.Options[*get]{})
		answer := actor.AskLater(first, &get{})
		require.NoError(t, first.Wait(bg)) // self is not the home of the request any more
		_, _, filled := filled(answer)
		require.False(t, filled)
		second.Kill(errOops)
		_, err := answer.Await(bg)
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorIs(t, err, errOops)
	}},
	{"a request: a late reply goes nowhere", func(t *testing.T, s suspend.Spawner) {
		var asked promise.Promise[*get]
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[*get]) error {
			return self.React(func(m *get) error {
				_ = asked.Fill(m)
				return self.React(func(*get) error { return nil })
			})
		}, actor.Options[*get]{})
		ctx, cancel := context.WithCancelCause(bg)
		task := promise.Go(bg, s, func(context.Context) (int, error) { return actor.Ask(ctx, ref, &get{}) })
		m, _ := asked.Await(bg)
		cancel(nil)
		_, err := task.Await(bg)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, m.Reply(1))
		ref.Kill(nil)
		require.ErrorIs(t, ref.Wait(bg), context.Canceled)
	}},
	{"a caught failure: requests in hand fail, those in the mailbox stay", func(t *testing.T, s suspend.Spawner) {
		n := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{Panics: true}, loop(func(m *get) error {
			switch n++; n {
			case 1:
				return errOops
			case 2:
				panic(errOops)
			}
			m.Reply(n)
			return nil
		})), actor.Options[*get]{})
		a, b, c := actor.AskLater(ref, &get{}), actor.AskLater(ref, &get{}), actor.AskLater(ref, &get{})
		for _, f := range []promise.Future[int]{a, b} {
			_, err := f.Await(bg)
			require.ErrorIs(t, err, actor.ErrNoReply)
			require.ErrorIs(t, err, errOops)
		}
		require.Equal(t, 3, ok(c.Await(bg)))
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
	}},
	{"failure: Watch reports it, Link kills, other actors are not affected", func(t *testing.T, s suspend.Spawner) {
		type down struct{ err error }
		bystander := actor.Spawn(bg, s, once(func(int) error { return nil }), actor.Options[int]{})
		in := actor.Open[any](bg, actor.Options[any]{})
		defer in.Close()
		fails := actor.Spawn(bg, s, once(func(int) error { _ = in.Ref().Send("last words"); return errOops }), actor.Options[int]{})
		linked := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[any]) error {
			self.Link(fails)
			self.Link(bystander)
			_ = in.Ref().Send("linked")
			return self.React(func(any) error { return nil })
		}, actor.Options[any]{})
		watcher := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[any]) error {
			self.Watch(fails, func(err error) any { return down{err} })
			self.Watch(fails, func(err error) any { panic("stopped") })()
			_ = in.Ref().Send("watches")
			return self.React(func(m any) error { return in.Ref().Send(m) })
		}, actor.Options[any]{})
		for range 2 {
			_, _ = in.Receive(bg)
		}
		_ = fails.Send(1)
		m, _ := in.Receive(bg)
		require.Equal(t, "last words", m)
		m, _ = in.Receive(bg)
		require.Equal(t, down{errOops}, m)
		require.NoError(t, watcher.Wait(bg))
		var exit *actor.ExitError
		require.ErrorAs(t, linked.Wait(bg), &exit)
		require.ErrorIs(t, exit, errOops)
		var second *actor.ExitError
		require.ErrorAs(t, bystander.Wait(bg), &second) // bystander was linked to the linked actor

		ended := actor.Spawn(bg, s, func(context.Context, *actor.Self[int]) error { return nil }, actor.Options[int]{})
		require.NoError(t, ended.Wait(bg))
		late := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[any]) error {
			self.Link(ended) // a normal end is not a failure
			self.Watch(ended, func(err error) any { return down{err} })
			m, err := self.Receive(bg)
			require.Equal(t, down{}, m)
			self.Link(fails) // a Link after the end has the same effect
			if err == nil {
				_, err = self.Receive(bg)
			}
			return err
		}, actor.Options[any]{})
		require.ErrorAs(t, late.Wait(bg), &exit)
	}},
	{"reentrancy: messages wait during an Ask, unless the actor receives them itself", func(t *testing.T, s suspend.Spawner) {
		var self2 actor.Ref[any]
		helper := actor.Spawn(bg, s, loop(func(m *get) error {
			v, err := actor.Ask(bg, self2, &get{}) // asks the asker
			m.Reply(v + 1)
			return err
		}), actor.Options[*get]{})
		var ready promise.Promise[int]
		self2 = actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[any]) error {
			_, _ = ready.Await(ctx)
			answer := suspend.CaseOf(actor.AskLater(helper, &get{}).AwaitOp())
			mail := suspend.CaseOf(self.RecvOp(nil))
			for {
				switch won, err := suspend.Select(ctx, answer, mail); won {
				case answer:
					v, err := answer.Result()
					require.Equal(t, 42, v)
					return err
				case mail:
					m := ok(mail.Result())
					m.(*get).Reply(41)
				default:
					return err
				}
			}
		}, actor.Options[any]{})
		_ = ready.Fill(1)
		require.NoError(t, self2.Wait(bg))
		helper.Stop()
	}},
	{"back-pressure: Cap, ErrFull, SendOp in order, as a case, and what is never refused", func(t *testing.T, s suspend.Spawner) {
		in := actor.Open[int](bg, actor.Options[int]{Cap: 2})
		ref := in.Ref()
		require.NoError(t, ref.Send(0))
		require.NoError(t, ref.Send(1))
		require.ErrorIs(t, ref.Send(9), actor.ErrFull)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, ref.SendWait(ctx, 9), context.Canceled)
		c := chanx.New[int](1)
		send, recv := suspend.CaseOf(ref.SendOp(9)), suspend.CaseOf(c.RecvOp())
		_, _ = c.TrySend(1)
		won := ok(suspend.Select(bg, send, recv))
		require.Equal(t, suspend.Selectable(recv), won)
		sent := promise.Go(bg, s, func(context.Context) (int, error) {
			return 0, errors.Join(ref.SendWait(bg, 2), ref.SendWait(bg, 3))
		})
		for i := range 4 {
			require.Equal(t, i, ok(in.Receive(bg)))
		}
		ok(sent.Await(bg))
		in.Close()
		require.ErrorIs(t, ref.SendWait(bg, 1), actor.ErrEnded)
	}},
	{"fairness: an actor does not run twice at a time", func(t *testing.T, s suspend.Spawner) {
		var inside atomic.Int32
		n := 0
		ref := actor.Spawn(bg, s, loop(func(int) error {
			require.EqualValues(t, 1, inside.Add(1))
			n++
			if n%5 == 0 {
				suspend.Yield()
			}
			inside.Add(-1)
			return nil
		}), actor.Options[int]{})
		var senders []promise.Future[int]
		for range 4 {
			senders = append(senders, promise.Go(bg, s, func(context.Context) (int, error) {
				for i := range 200 {
					if i%3 == 0 {
						suspend.Yield()
					}
					_ = ref.Send(i)
				}
				return 0, nil
			}))
		}
		ok(suspend.Do(bg, promise.All(senders...)))
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, 800, n)
	}},
	{"ownership: children with the actor's ctx are killed at its end", func(t *testing.T, s suspend.Spawner) {
		var child actor.Ref[int]
		parent := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			child = actor.Spawn(ctx, s, once(func(int) error { return nil }), actor.Options[int]{})
			return nil
		}, actor.Options[int]{})
		require.NoError(t, parent.Wait(bg))
		require.ErrorIs(t, child.Wait(bg), context.Canceled)
	}},
	{"ownership: a scope waits for an actor", func(t *testing.T, s suspend.Spawner) {
		ended := false
		require.NoError(t, scope.Run(bg, func(_ context.Context, sc *scope.Scope) error {
			actor.Spawn(bg, sc.On(s), func(context.Context, *actor.Self[int]) error {
				suspend.Yield()
				ended = true
				return nil
			}, actor.Options[int]{})
			return nil
		}))
		require.True(t, ended)
	}},
	{"memory: what was done before a Send, a reaction, a Reply is seen after it", func(t *testing.T, s suspend.Spawner) {
		shared, mine := 0, 0
		ref := actor.Spawn(bg, s, loop(func(m *get) error {
			mine++
			shared++
			m.Reply(mine)
			return nil
		}), actor.Options[*get]{})
		for i := range 100 {
			shared++
			require.Equal(t, i+1, ok(actor.Ask(bg, ref, &get{})))
			require.Equal(t, 2*i+2, shared)
		}
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
	}},
	{"refused: the actor has ended with the error, and its messages are dead letters", func(t *testing.T, s suspend.Spawner) {
		for after := range 3 {
			on := &refusing{Spawner: s}
			on.left.Store(int32(after))
			var dead []int
			ref := actor.Spawn(bg, on, loop(func(int) error { return nil }), actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
			received := 0
			for i := range 5 {
				if ref.Send(i) == nil {
					received++
				}
				for range 3 {
					suspend.Yield()
				}
			}
			if after > 0 { // the actor need not have waited meanwhile, nor have used another task
				for ref.Send(-1) == nil {
					received++
					suspend.Yield()
				}
			}
			require.Equal(t, errOops, ref.Wait(bg))
			require.LessOrEqual(t, len(dead), received)
		}
	}},
	{"Await: any Op without a stack, on the actor, while its messages wait", func(t *testing.T, s suspend.Spawner) {
		a, b := actor.Open[int](bg, actor.Options[int]{}), actor.Open[string](bg, actor.Options[string]{})
		defer a.Close()
		defer b.Close()
		var got []string
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			n := 0
			return actor.LoopWhile(func() bool { n++; return n <= 2 }, func() error {
				both := suspend.Choose(
					suspend.Map(a.RecvOp(nil), func(v int, err error) (string, error) { return fmt.Sprint(v), err }),
					b.RecvOp(func(m string) bool { return m != "no" }))
				return actor.Await(self, both, func(m string, err error) error {
					got = append(got, m)
					suspend.Yield() // k runs in a task
					return err
				})
			})
		}, actor.Options[int]{})
		_ = b.Ref().Send("no")
		_ = ref.Send(1)
		_ = b.Ref().Send("yes")
		_ = a.Ref().Send(3)
		require.NoError(t, ref.Wait(bg))
		slices.Sort(got)
		require.Equal(t, []string{"3", "yes"}, got)
	}},
}

// elsewhere returns plain goroutines, or s in a simulation, which has no goroutines.
func elsewhere(s suspend.Spawner) suspend.Spawner {
	if _, simulated := s.(*simulation.World); simulated {
		return s
	}
	return suspend.Goroutines
}

// A refusing Spawner accepts a few tasks, and refuses all later ones.
type refusing struct {
	suspend.Spawner
	left atomic.Int32
}

func (r *refusing) Go(f func()) error {
	if r.left.Add(-1) < 0 {
		return errOops
	}
	return r.Spawner.Go(f)
}

func filled(f promise.Future[int]) (int, error, bool) {
	select {
	case <-f.Done():
		v, err := f.Await(bg)
		return v, err, true
	default:
		return 0, nil, false
	}
}

func TestRows(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				schedtest.Run(t, s, func() { row.main(t, s) })
			})
			if strings.HasPrefix(row.name, "refused") { // such an actor continues on a goroutine, which a World does not have
				return
			}
			t.Run("simulation", func(t *testing.T) {
				for seed := range uint64(10) {
					r := simulation.Run(func(_ context.Context, w *simulation.World) error {
						row.main(t, w)
						return nil
					}, simulation.Options{Seed: seed + 1})
					require.NoError(t, r.Err, "seed %d", seed+1)
				}
			})
		})
	}
}
