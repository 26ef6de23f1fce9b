//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, actorPrograms...) }

// An actorWorld is the scheduler of a run's actors, and counts their messages.
type actorWorld struct {
	w                        *explore.World
	running                  bool            // the setup is complete
	on                       suspend.Spawner // the scheduler of the run
	accepted, received, dead int
	fired, inTime            int // timers that have fired, and messages accepted before the first of them
	held                     int
	killed                   bool
}

// Go starts a task of the program. While the program runs, it uses the scheduler of the calling task.
func (a *actorWorld) Go(f func()) error {
	if !a.running {
		a.w.Go("actor", func(context.Context) {
			a.on = suspend.Here()
			f()
		})
		return nil
	}
	return a.on.Go(f)
}

// AfterFunc counts the timers that fire.
func (a *actorWorld) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return suspend.AfterFunc(a.on, d, func() {
		if a.fired++; a.fired == 1 {
			a.inTime = a.accepted
		}
		f()
	})
}

// Hold counts the live actors and the waiting continuations.
func (a *actorWorld) Hold() (release func(), err error) {
	a.held++
	return func() {
		if a.held--; a.held == 0 && a.accepted > a.received+a.dead {
			panic("released before the dead letters")
		}
	}, nil
}

func (a *actorWorld) options() actor.Options[int] {
	return actor.Options[int]{Dead: func(int) { a.dead++ }}
}

func (a *actorWorld) send(to actor.Ref[int], m int) {
	if err := to.Send(m); err == nil {
		a.accepted++
	} else if !errors.Is(err, actor.ErrEnded) {
		panic(err)
	}
}

// actors runs a program with actors. In the end, each accepted message was received or is a dead letter, and every actor has
// released its scheduler.
func actors(program func(w *explore.World, a *actorWorld)) func(w *explore.World) {
	return func(w *explore.World) {
		a := &actorWorld{w: w}
		program(w, a)
		a.running = true
		w.Check(func() error {
			if a.accepted != a.received+a.dead || a.held != 0 {
				return fmt.Errorf("%d accepted, %d received, %d dead, %d held", a.accepted, a.received, a.dead, a.held)
			}
			return nil
		})
	}
}

type question struct{ actor.Request[int] }

var actorPrograms = []program{
	{"actor, React and Receive", "3 × 2", actors(func(w *explore.World, a *actorWorld) {
		order := []int{}
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			take := func(m int) error { a.received++; order = append(order, m); return nil }
			return actor.AndThen(self.React(take), func() error {
				m, err := self.Receive(bg)
				_ = take(m)
				return err
			})
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1); a.send(ref, 2) })
		w.Check(func() error {
			if !slices.Equal(order, []int{1, 2}) {
				return fmt.Errorf("%v", order)
			}
			return nil
		})
	})},
	{"actor, two senders", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			take := func(m int) error { a.received++; return nil }
			return actor.AndThen(self.React(take), func() error { return self.React(take) })
		}, a.options())
		for _, name := range []string{"send", "send2"} {
			w.Go(name, func(context.Context) { a.send(ref, 1) })
		}
	})},
	{"actor, message, timeout and Kill", "3 × 1", timeoutProgram(nil)},
	{"actor, timeouts of two waits", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			skip := func(int) error { return actor.Skip }
			_ = self.HandleWithin(bg, time.Second, skip) // the timer of this call may fire late
			return self.React(func(m int) error {
				if m == 1 {
					return actor.Skip
				}
				a.received++
				return nil
			})
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1); a.send(ref, 2) })
	})},
	{"actor, a timeout while f skips", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return self.ReactWithin(time.Second, func(int) error {
				suspend.Yield()
				return actor.Skip
			}, func() error { return nil })
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1) })
	})},
	{"actor, timeouts of two reactions", "1 × 2", actors(func(w *explore.World, a *actorWorld) {
		skip := func(int) error { return actor.Skip }
		actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return self.ReactWithin(time.Second, skip, func() error {
				return self.ReactWithin(time.Second, skip, func() error {
					if a.fired < 2 {
						panic("the first timer has ended the second wait")
					}
					return nil
				})
			})
		}, actor.Options[int]{})
	})},
	{"actor, a message and a timeout", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return self.ReactWithin(time.Second, func(int) error { a.received++; return nil }, func() error {
				if a.inTime > 0 {
					panic("a message was there")
				}
				return nil
			})
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1) })
	})},
	{"actor, Receive cancelled", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		in := actor.Open[int](bg, a.options())
		w.Go("receive", func(ctx context.Context) {
			for range 2 {
				if _, err := in.Receive(ctx); err == nil {
					a.received++
				}
			}
			in.Close()
		})
		w.Go("send", func(context.Context) { a.send(in.Ref(), 1); a.send(in.Ref(), 2) })
	})},
	{"actor, nested", "2 × 3", actors(func(w *explore.World, a *actorWorld) {
		var order []int
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			skipped := false
			err := self.Handle(bg, func(m int) error {
				if m != 1 || skipped {
					order = append(order, m)
					a.received++
					return nil
				}
				skipped = true
				v, err := self.Receive(bg) // skips m, and fetches
				order = append(order, v)
				a.received++
				if err != nil {
					return err
				}
				return actor.Skip
			})
			if err == nil {
				var m int
				m, err = self.Receive(bg)
				order = append(order, m)
				a.received++
			}
			return err
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1); a.send(ref, 2); a.send(ref, 3) })
		w.Check(func() error {
			if !slices.Equal(order, []int{2, 3, 1}) {
				return fmt.Errorf("%v", order)
			}
			return nil
		})
	})},
	{"actor, Stop", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error { return self.React(func(int) error { a.received++; return nil }) })
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1) })
		w.Go("stop", func(context.Context) {
			ref.Stop()
			if err := ref.Wait(bg); err != nil {
				panic(err)
			}
		})
	})},
	{"actor, Kill", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			for {
				if _, err := self.Receive(bg); err != nil {
					return err
				}
				a.received++
			}
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1) })
		w.Go("kill", func(context.Context) {
			ref.Kill(errOops)
			before := a.received
			if err := ref.Wait(bg); err != errOops || a.received != before {
				panic(fmt.Sprint(err, " or received after the Kill"))
			}
		})
	})},
	{"actor, Kill with mail fetched", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		in := actor.Open[int](bg, a.options())
		a.send(in.Ref(), 1)
		a.send(in.Ref(), 2)
		w.Go("receive", func(context.Context) {
			for {
				killed := a.killed
				if _, err := in.Receive(bg); err != nil {
					break
				}
				if a.received++; killed {
					panic("received after the Kill")
				}
				_, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) { return 0, true })
			}
			in.Close()
		})
		w.Go("kill", func(context.Context) {
			in.Ref().Kill(errOops)
			a.killed = true
		})
	})},
	{"actor, a skipped message keeps its place", "2 × 3", actors(func(w *explore.World, a *actorWorld) {
		var order []int
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			take := func(m int) error { a.received++; order = append(order, m); return nil }
			return actor.AndThen(self.React(func(m int) error {
				if m != 3 {
					return actor.Skip
				}
				return take(m)
			}), func() error {
				return actor.AndThen(self.Handle(bg, take), func() error { return self.React(take) })
			})
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1); a.send(ref, 2); a.send(ref, 3) })
		w.Check(func() error {
			if !slices.Equal(order, []int{3, 1, 2}) {
				return fmt.Errorf("%v", order)
			}
			return nil
		})
	})},
	{"actor, Ask", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[*question]) error {
			return self.React(func(q *question) error { q.Reply(1); return nil })
		}, actor.Options[*question]{})
		w.Go("ask", func(ctx context.Context) {
			v, err := actor.Ask(ctx, ref, &question{})
			if v != 1 && err == nil || err != nil && !errors.Is(err, actor.ErrNoReply) && !errors.Is(err, context.Canceled) {
				panic(fmt.Sprint(v, err))
			}
		})
		w.Go("kill", func(context.Context) { ref.Kill(errOops) })
	})},
	{"actor, Reply and cancel", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		replied, got := false, false
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[*question]) error {
			return self.React(func(q *question) error { replied = q.Reply(1); return nil })
		}, actor.Options[*question]{})
		w.Go("ask", func(ctx context.Context) {
			_, err := actor.Ask(ctx, ref, &question{})
			got = err == nil
			ref.Stop()
		})
		w.Check(func() error {
			if replied != got {
				return fmt.Errorf("replied: %v, got: %v", replied, got)
			}
			return nil
		})
	})},
	{"actor, a request sent on", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		second := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[*question]) error {
			return self.React(func(q *question) error { return nil }) // then it ends
		}, actor.Options[*question]{})
		first := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[*question]) error {
			return self.React(func(q *question) error { _ = second.Send(q); return nil })
		}, actor.Options[*question]{})
		w.Go("ask", func(context.Context) {
			if _, err := actor.Ask(bg, first, &question{}); !errors.Is(err, actor.ErrNoReply) {
				panic(err)
			}
		})
		w.Go("stop", func(context.Context) { second.Stop() })
	})},
	{"actor, answered while sent on", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		in := actor.Open[*question](bg, actor.Options[*question]{})
		q := &question{}
		first := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[*question]) error {
			return self.React(func(q *question) error { _ = in.Ref().Send(q); return nil })
		}, actor.Options[*question]{})
		answer := actor.AskLater(first, q)
		w.Go("reply", func(context.Context) { q.Reply(1) })
		w.Go("await", func(context.Context) {
			v, err := answer.Await(bg)
			if (v != 1 || err != nil) && !errors.Is(err, actor.ErrNoReply) {
				panic(fmt.Sprint(v, err))
			}
			first.Stop()
			_ = first.Wait(bg)
			in.Close()
		})
	})},
	{"actor, answered while sent on, what is left", "2 × 1", func(w *explore.World) {
		first, second := actor.Open[*question](bg, actor.Options[*question]{}), actor.Open[*question](bg, actor.Options[*question]{})
		q := &question{}
		_ = actor.AskLater(first.Ref(), q)
		w.Go("reply", func(context.Context) { q.Reply(1) })
		w.Go("send", func(context.Context) { _ = second.Ref().Send(q) })
		w.OnIdle(lost)
		w.Check(func() error { return same(0, first.Requests()+second.Requests()) })
	}},
	{"actor, Watch", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		told := 0
		other := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(int) error { return nil })
		}, actor.Options[int]{})
		actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[error]) error {
			self.Watch(other, func(err error) error { told++; return err })
			return self.React(func(err error) error {
				if !errors.Is(err, errOops) {
					panic(err)
				}
				return nil
			})
		}, actor.Options[error]{})
		w.Go("kill", func(context.Context) { other.Kill(errOops) })
		w.Check(func() error { return same(1, told) })
	})},
	{"actor, Watch and its stop", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		var watcher *actor.Self[int]
		before := 0
		other := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(int) error { return nil })
		}, actor.Options[int]{})
		actor.Spawn(bg, unheld{a}, func(_ context.Context, self *actor.Self[int]) error {
			watcher = self
			stop := self.Watch(other, func(err error) int { return 1 })
			stop()
			before = self.Len()
			return self.React(func(int) error { return actor.Skip })
		}, actor.Options[int]{})
		w.Go("kill", func(context.Context) { other.Kill(errOops) })
		w.Check(func() error { return same(before, watcher.Len()) })
	})},
	{"actor, Link", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		waits := func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(int) error { return nil })
		}
		x := actor.Spawn(bg, a, waits, actor.Options[int]{})
		y := actor.Spawn(bg, a, func(ctx context.Context, self *actor.Self[int]) error {
			self.Link(x)
			return waits(ctx, self)
		}, actor.Options[int]{})
		w.Go("kill", func(context.Context) {
			x.Kill(errOops)
			var exit *actor.ExitError
			if err := y.Wait(bg); !errors.As(err, &exit) || !errors.Is(err, errOops) {
				panic(err)
			}
		})
		w.Go("wait", func(context.Context) { _ = x.Wait(bg) })
	})},
	{"actor, Cap", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		o := a.options()
		o.Cap = 1
		in := actor.Open[int](bg, o)
		left := 2
		for _, name := range []string{"send", "send2"} {
			w.Go(name, func(ctx context.Context) {
				if in.Ref().SendWait(ctx, 1) == nil {
					a.accepted++
				}
				if left--; left == 0 {
					in.Ref().Stop()
				}
			})
		}
		w.Go("receive", func(context.Context) {
			for {
				if in.Len() > 1 {
					panic("full")
				}
				if _, err := in.Receive(bg); err != nil {
					break
				}
				a.received++
			}
			in.Close()
		})
	})},
	{"actor, Cap and RecvOp", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		o := a.options()
		o.Cap = 1
		in := actor.Open[int](bg, o)
		w.Go("send", func(context.Context) {
			for range 3 {
				a.accepted++
				if err := in.Ref().SendWait(bg, 1); err != nil {
					panic(err)
				}
			}
		})
		w.Go("receive", func(context.Context) {
			for range 3 {
				if _, err := suspend.Do(bg, in.RecvOp(nil)); err != nil {
					panic(err)
				}
				a.received++
			}
			if in.Len() != 0 || in.Ref().Send(1) != nil { // the mailbox has room
				panic("room")
			}
			a.accepted++
			in.Close()
		})
	})},
	{"actor, RecvOp in a Select", "3 × 1", recvProgram(nil)},
	{"actor, RecvOp with a match in a Select", "3 × 1", recvProgram(func(m int) bool { return m == 2 })},
	{"actor, RecvOp with a match", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		in := actor.Open[int](bg, a.options())
		w.Go("receive", func(context.Context) {
			if m, err := suspend.Do(bg, in.RecvOp(func(m int) bool { return m == 2 })); err != nil || m != 2 {
				panic(err)
			}
			a.received++
			in.Close()
		})
		w.Go("send", func(context.Context) { a.send(in.Ref(), 1); a.send(in.Ref(), 2) })
	})},
	{"actor, a RecvOp and a Close", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		in := actor.Open[int](bg, a.options())
		w.Go("receive", func(context.Context) {
			if _, err := suspend.Do(bg, in.RecvOp(nil)); err == nil {
				a.received++
			} else if !errors.Is(err, actor.ErrStopped) {
				panic(err)
			}
			in.Close()
		})
		w.Go("send", func(context.Context) { a.send(in.Ref(), 1) })
		w.Go("stop", func(context.Context) { in.Ref().Stop() })
	})},
	{"actor, Await and Kill", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		c := chanx.New[int](0)
		ks := 0
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Await(self, c.RecvOp(), func(_ int, err error) error { ks++; return err })
		}, a.options())
		w.Go("send", func(ctx context.Context) { a.send(ref, 1); _ = c.Send(ctx, 1) })
		w.Go("kill", func(context.Context) {
			ref.Kill(errOops)
			_ = ref.Wait(bg)
			_ = c.Close()
		})
		w.Check(func() error { return same(1, ks) })
	})},
	{"actor, refused", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		tasks := 0
		ref := actor.Spawn(bg, &refuser{a, &tasks}, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error { return self.React(func(int) error { a.received++; return nil }) })
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1); a.send(ref, 2); a.send(ref, 3); ref.Stop() })
	})},
	{"actor, refused to a SendOp", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		tasks := 0
		ref := actor.Spawn(bg, &refuser{a, &tasks}, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(int) error { a.received++; return nil })
		}, a.options())
		w.Go("send", func(context.Context) {
			if ref.SendWait(bg, 1) == nil {
				a.accepted++
			}
		})
	})},
	{"actor, Restart and Stop", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		begun := 0
		ref := actor.Spawn(bg, a, actor.Restart(actor.Policy{Max: 2}, func(_ context.Context, self *actor.Self[int]) error {
			begun++
			return self.React(func(int) error { a.received++; return errOops })
		}), a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1) })
		var end error
		w.Go("stop", func(context.Context) {
			ref.Stop()
			end = ref.Wait(bg)
		})
		w.Check(func() error {
			if end != nil { // the last message has failed after the Stop
				return errors.Join(same(1, a.received), same(1, begun))
			}
			return same(begun, a.received+1)
		})
	})},
	{"actor, Restart, Stop and a child", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		var children []actor.Ref[int]
		ref := actor.Spawn(bg, a, actor.Restart(actor.Policy{Max: 1}, func(ctx context.Context, self *actor.Self[int]) error {
			for _, c := range children {
				if !hasEnded(c) {
					panic("a child of the failed life is alive")
				}
			}
			children = append(children, actor.Spawn(ctx, unheld{a}, func(_ context.Context, self *actor.Self[int]) error {
				return self.React(func(int) error { return nil })
			}, actor.Options[int]{}))
			return self.React(func(int) error { a.received++; return errOops })
		}), a.options())
		w.Go("stop", func(context.Context) {
			a.send(ref, 1)
			ref.Stop()
			if err := ref.Wait(bg); err == nil && slices.ContainsFunc(children, func(c actor.Ref[int]) bool { return !hasEnded(c) }) {
				panic("a child outlives the tree")
			}
			for _, c := range children {
				_ = c.Wait(bg)
			}
		})
	})},
	{"actor, Stop of one that backs off", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, timeless{a}, actor.Restart(actor.Policy{Backoff: func(int) time.Duration { return time.Hour }},
			func(_ context.Context, self *actor.Self[int]) error {
				return self.React(func(int) error { a.received++; return errOops })
			}), a.options())
		w.Go("stop", func(context.Context) {
			a.send(ref, 1)
			a.send(ref, 2)
			ref.Stop()
			if err := ref.Wait(bg); err != errOops || a.received != 2 {
				panic(fmt.Sprint(err, ", received: ", a.received))
			}
		})
	})},
	{"actor, Kill of one that outlives a child", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		lives := 0
		ref := actor.Spawn(bg, a, actor.Restart(actor.Policy{Max: 1}, func(ctx context.Context, self *actor.Self[int]) error {
			if lives++; lives == 1 {
				actor.Spawn(ctx, a, func(_ context.Context, self *actor.Self[int]) error {
					return self.React(func(int) error { return nil })
				}, actor.Options[int]{})
				return errOops
			}
			return self.React(func(int) error { return nil })
		}), actor.Options[int]{})
		w.Go("kill", func(context.Context) {
			ref.Kill(errOops)
			if err := ref.Wait(bg); err != errOops {
				panic(err)
			}
		})
	})},
	{"actor, Stop of a tree", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		var child actor.Ref[int]
		parent := actor.Spawn(bg, a, func(ctx context.Context, self *actor.Self[int]) error {
			child = actor.Spawn(ctx, a, func(_ context.Context, self *actor.Self[int]) error {
				return actor.Loop(func() error { return self.React(func(int) error { a.received++; return nil }) })
			}, a.options())
			return actor.Loop(func() error {
				return self.React(func(m int) error { a.received++; a.send(child, m); return nil })
			})
		}, a.options())
		w.Go("stop", func(context.Context) {
			a.send(parent, 1)
			parent.Stop()
			if err := parent.Wait(bg); err != nil || a.dead != 0 || !hasEnded(child) {
				panic(fmt.Sprint(err, ", dead: ", a.dead, ", the child is over: ", hasEnded(child)))
			}
		})
	})},
	{"actor, Kill of a tree", "2 × 2", actors(func(w *explore.World, a *actorWorld) {
		goOn := promise.New[int]()
		parent := actor.Spawn(bg, a, func(ctx context.Context, self *actor.Self[int]) error {
			actor.Spawn(ctx, a, func(context.Context, *actor.Self[int]) error {
				_, err := goOn.Await(bg) // does not learn of a Stop or a Kill meanwhile
				return err
			}, actor.Options[int]{})
			return self.React(func(int) error { return nil })
		}, actor.Options[int]{})
		w.Go("end", func(context.Context) {
			parent.Stop()
			parent.Kill(errOops)
			_ = parent.Wait(bg)
			_ = goOn.Resolve(0, nil)
		})
	})},
	{"actor, the cause of a Kill", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		var child actor.Ref[int]
		parent := actor.Spawn(bg, a, func(ctx context.Context, self *actor.Self[int]) error {
			child = actor.Spawn(ctx, a, func(ctx context.Context, _ *actor.Self[int]) error {
				_, err := promise.New[int]().Await(ctx)
				return err
			}, actor.Options[int]{})
			return self.React(func(int) error { return nil })
		}, actor.Options[int]{})
		w.Go("kill", func(context.Context) {
			parent.Kill(errOops)
			_ = parent.Wait(bg)
			if child == (actor.Ref[int]{}) { // was killed before it began
				return
			}
			if err := child.Wait(bg); err != errOops {
				panic(err)
			}
		})
	})},
	{"actor, Catch and Stop", "2 × 1", actors(func(w *explore.World, a *actorWorld) {
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Catch(func() error {
				return self.React(func(int) error { return nil })
			}, func(err error) error { panic(fmt.Sprint("caught: ", err)) })
		}, actor.Options[int]{})
		w.Go("stop", func(context.Context) { ref.Stop() })
	})},
	{"actor, a caught failure", "3 × 1", actors(func(w *explore.World, a *actorWorld) {
		n := 0
		ref := actor.Spawn(bg, a, actor.Restart(actor.Policy{}, func(_ context.Context, self *actor.Self[*question]) error {
			return actor.Loop(func() error {
				return self.React(func(q *question) error {
					if n++; n == 1 {
						return errOops
					}
					q.Reply(n)
					return nil
				})
			})
		}), actor.Options[*question]{})
		failed := 0
		var left atomicx.Int32 // traced, because the last one to finish stops the actor
		left.Store(2)
		for _, name := range []string{"ask", "ask2"} {
			w.Go(name, func(context.Context) {
				_, err := actor.Ask(bg, ref, &question{})
				if err != nil {
					if failed++; !errors.Is(err, actor.ErrNoReply) || !errors.Is(err, errOops) {
						panic(err)
					}
				}
				if left.Add(-1) == 0 {
					ref.Stop()
				}
			})
		}
		w.Check(func() error { return same(1, failed) })
	})},
}

// hasEnded reports whether an actor has ended.
func hasEnded(a actor.Actor) bool {
	select {
	case <-a.Done():
		return true
	default:
		return false
	}
}

// A timeless scheduler has timers that never fire.
type timeless struct{ *actorWorld }

func (timeless) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}

// An unheld scheduler has no Hold, so it does not count its actors.
type unheld struct{ on suspend.Spawner }

func (u unheld) Go(f func()) error { return u.on.Go(f) }

// A refuser starts one task and refuses others. A refused function still ends on a task of the run, which stands for a goroutine.
type refuser struct {
	*actorWorld
	tasks *int
}

func (r *refuser) Go(f func()) error {
	if *r.tasks++; *r.tasks > 1 {
		return errOops
	}
	return r.actorWorld.Go(f)
}

// timeoutProgram has four outcomes: the message, the timeout or the Kill comes first, or the message comes before the Kill and is
// not received.
func timeoutProgram(seen map[string]bool) func(w *explore.World) {
	return actors(func(w *explore.World, a *actorWorld) {
		outcome := ""
		ref := actor.Spawn(bg, a, func(_ context.Context, self *actor.Self[int]) error {
			return self.ReactWithin(time.Second,
				func(int) error { a.received++; outcome = "message"; return nil },
				func() error { outcome = "timeout"; return nil })
		}, a.options())
		w.Go("send", func(context.Context) { a.send(ref, 1) })
		w.Go("kill", func(context.Context) {
			ref.Kill(errOops)
			if err := ref.Wait(bg); outcome == "" && err != errOops {
				panic(err)
			}
		})
		w.Check(func() error {
			if outcome == "" {
				outcome = "killed"
				if a.dead > 0 {
					outcome = "killed with mail"
				}
			}
			if seen != nil {
				seen[outcome] = true
			}
			return nil
		})
	})
}

// TestActorOutcomes checks that each outcome of a message, a timeout and a Kill occurs.
func TestActorOutcomes(t *testing.T) {
	seen := map[string]bool{}
	c := with(reduced, 0)
	c.Executions = 200_000
	if r := explore.Run(c, timeoutProgram(seen)); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	for _, outcome := range []string{"message", "timeout", "killed", "killed with mail"} {
		if !seen[outcome] {
			t.Errorf("never %s", outcome)
		}
	}
}

// recvProgram has a Select with a RecvOp and a receive from a channel, which is closed.
func recvProgram(match func(m int) bool) func(w *explore.World) {
	return actors(func(w *explore.World, a *actorWorld) {
		in := actor.Open[int](bg, a.options())
		c := chanx.New[int](0)
		w.Go("select", func(ctx context.Context) {
			mail, other := suspend.CaseOf(in.RecvOp(match)), suspend.CaseOf(c.RecvOp())
			for {
				won, err := suspend.SelectOrdered(ctx, mail, other)
				if err != nil {
					break
				}
				if won == suspend.Selectable(other) {
					if _, err := other.Result(); !errors.Is(err, chanx.ErrClosed) {
						panic(err)
					}
					break
				}
				if m, err := mail.Result(); err != nil || match != nil && !match(m) {
					panic(err)
				}
				a.received++
			}
			in.Close()
		})
		w.Go("send", func(context.Context) { a.send(in.Ref(), 1); a.send(in.Ref(), 2) })
		w.Go("close", func(context.Context) { _ = c.Close() })
	})
}
