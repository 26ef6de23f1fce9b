package actor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func init() { rows = append(rows, lifeRows...) }

// lasting is the body of an actor that skips its messages until it is stopped or killed.
func lasting[M any](_ context.Context, self *actor.Self[M]) error {
	return self.React(func(M) error { return actor.Skip })
}

// isDone reports whether the actor has ended.
func isDone(a actor.Actor) bool {
	select {
	case <-a.Done():
		return true
	default:
		return false
	}
}

// lifeRows holds the tests of failed lives, and of a Stop of lives and of children.
var lifeRows = []struct {
	name string
	main func(t *testing.T, s suspend.Spawner)
}{
	{"Restart: no child, timer, watch or link of a failed life is left", func(t *testing.T, s suspend.Spawner) {
		watched := actor.Spawn(bg, s, lasting[int], actor.Options[int]{})
		linked := actor.Spawn(bg, s, lasting[int], actor.Options[int]{})
		var children []actor.Ref[int]
		var got []string
		var up promise.Promise[int]
		timers := &timing{Spawner: s}
		body := func(ctx context.Context, self *actor.Self[string]) error {
			for i, c := range children {
				select {
				case <-c.Done():
				default:
					t.Errorf("child %d is alive in life %d", i, len(children))
				}
			}
			require.Zero(t, timers.waiting.Load())
			life := len(children) + 1
			children = append(children, actor.Spawn(ctx, s, lasting[int], actor.Options[int]{}))
			d := time.Hour
			if life == 4 {
				d = time.Millisecond
			}
			self.SendAfter(d, fmt.Sprint("timer of ", life))
			self.Watch(watched, func(error) string { return fmt.Sprint("watch of ", life) })
			if life < 4 {
				self.Link(linked)
				return errOops
			}
			_ = up.Fill(0)
			return actor.LoopWhile(func() bool { return len(got) < 2 }, func() error {
				return self.React(func(m string) error { got = append(got, m); return nil })
			})
		}
		ref := actor.Spawn(bg, timers, actor.Restart(actor.Policy{}, body), actor.Options[string]{})
		ok(up.Await(bg))
		linked.Kill(errOops)
		require.Equal(t, errOops, linked.Wait(bg))
		watched.Stop()
		require.NoError(t, ref.Wait(bg))
		slices.Sort(got)
		require.Equal(t, []string{"timer of 4", "watch of 4"}, got)
		for _, c := range children {
			require.ErrorIs(t, c.Wait(bg), context.Canceled)
		}
	}},
	{"Restart: the next life begins after all descendants of the failed one", func(t *testing.T, s suspend.Spawner) {
		lives, held := 0, false
		up := promise.New[int]()
		leaf := func(ctx context.Context, self *actor.Self[int]) error { // needs some turns to release its resource
			require.False(t, held, "two lives hold the resource")
			held = true
			self.OnEnd(func() {
				for range 20 {
					suspend.Yield()
				}
				held = false
			})
			_ = self.Ref().Send(1)
			return self.React(func(int) error {
				_ = up.Fill(0)
				return lasting(ctx, self)
			})
		}
		body := leaf
		for range 3 { // three generations
			next := body
			body = func(ctx context.Context, self *actor.Self[int]) error {
				actor.Spawn(ctx, s, next, actor.Options[int]{})
				return lasting(ctx, self)
			}
		}
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, func(ctx context.Context, self *actor.Self[int]) error {
			lives++
			actor.Spawn(ctx, s, body, actor.Options[int]{})
			_, _ = up.Await(bg)
			if up = promise.New[int](); lives < 4 {
				return errOops
			}
			return nil
		}), actor.Options[int]{})
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, 4, lives)
		require.False(t, held, "the end was published before the last descendant had ended")
	}},
	{"Wait, Watch: end after all descendants, but at once after a Kill", func(t *testing.T, s suspend.Spawner) {
		for _, how := range []string{"done", "failure", "failure and Kill", "Kill"} {
			var release, begun, up, ready promise.Promise[int]
			var child, grandchild actor.Ref[int]
			var told error
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				child = actor.Spawn(ctx, s, func(ctx context.Context, self *actor.Self[int]) error {
					grandchild = actor.Spawn(ctx, s, func(context.Context, *actor.Self[int]) error {
						_ = begun.Fill(0)
						_, _ = release.Await(bg) // does not notice the Kill
						return nil
					}, actor.Options[int]{})
					_, _ = begun.Await(bg)
					_ = up.Fill(0) // grandchild is set
					return lasting(ctx, self)
				}, actor.Options[int]{})
				_, _ = up.Await(bg)
				_ = ready.Fill(0) // child is set, too
				switch how {
				case "done":
					return nil
				case "Kill":
					return lasting(ctx, self)
				}
				return errOops
			}, actor.Options[int]{})
			watcher := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[error]) error {
				self.Watch(ref, func(err error) error { return fmt.Errorf("told: %w", err) })
				return self.React(func(err error) error { told = err; return nil })
			}, actor.Options[error]{})
			_, _ = ready.Await(bg)
			for range 20 {
				suspend.Yield()
			}
			if how == "failure and Kill" || how == "Kill" {
				ref.Kill(errOops)
				require.Equal(t, errOops, ref.Wait(bg))
				require.NoError(t, watcher.Wait(bg))
				require.False(t, isDone(grandchild), how)
				_ = release.Fill(0)
			} else {
				require.Error(t, child.Wait(bg), "the child was killed")
				require.False(t, isDone(ref), how)
				require.NoError(t, told)
				_ = release.Fill(0)
				_ = ref.Wait(bg)
				require.True(t, isDone(grandchild), how)
				require.NoError(t, watcher.Wait(bg))
			}
			require.Error(t, told)
			_ = grandchild.Wait(bg)
		}
	}},
	{"Stop: ends a tree, including a child that is spawned meanwhile", func(t *testing.T, s suspend.Spawner) {
		var late actor.Ref[int]
		var up promise.Promise[int]
		ref := actor.Spawn(bg, s, func(parent context.Context, self *actor.Self[int]) error {
			actor.Spawn(parent, s, func(ctx context.Context, self *actor.Self[int]) error {
				self.OnEnd(func() {
					late = actor.Spawn(parent, s, lasting[int], actor.Options[int]{})
					for range 3 {
						suspend.Yield()
					}
				})
				_ = up.Fill(0)
				return lasting(ctx, self)
			}, actor.Options[int]{})
			_, _ = up.Await(bg)
			return lasting(parent, self)
		}, actor.Options[int]{})
		_, _ = up.Await(bg)
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.True(t, isDone(late))
		require.NoError(t, late.Wait(bg), "the late child was not stopped")
	}},
	{"SendWait: to a full mailbox ends when its actor stops its children", func(t *testing.T, s suspend.Spawner) {
		var up, release promise.Promise[int]
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			actor.Spawn(ctx, s, func(context.Context, *actor.Self[int]) error { _, _ = release.Await(bg); return nil }, actor.Options[int]{})
			_, _ = up.Await(bg)
			return actor.ErrStopped
		}, actor.Options[int]{Cap: 1})
		require.NoError(t, ref.Send(1))
		var sent promise.Promise[error]
		require.NoError(t, s.Go(func() { _ = sent.Fill(ref.SendWait(bg, 2)) }))
		for range 5 {
			suspend.Yield()
		}
		_ = up.Fill(0)
		require.ErrorIs(t, ok(sent.Await(bg)), actor.ErrEnded)
		require.False(t, isDone(ref))
		_ = release.Fill(0)
		require.NoError(t, ref.Wait(bg))
	}},
	{"Catch: a failure takes back only what was left in the Catch", func(t *testing.T, s suspend.Spawner) {
		watched := actor.Spawn(bg, s, lasting[int], actor.Options[int]{})
		var got []string
		var caught promise.Promise[int]
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[string]) error {
			take := func(m string) error { got = append(got, m); return nil }
			self.Watch(watched, func(error) string { return "outer" })
			done := actor.Catch(func() error {
				self.Watch(watched, func(error) string { return "of a Catch that has ended" })
				return nil
			}, func(err error) error { return err })
			return actor.AndThen(done, func() error {
				return actor.Catch(func() error {
					self.Watch(watched, func(error) string { return "inner" })
					return errOops
				}, func(err error) error {
					self.Watch(watched, func(error) string { return "last" })
					_ = caught.Fill(0)
					return actor.LoopWhile(func() bool { return !slices.Contains(got, "last") }, func() error { return self.React(take) })
				})
			})
		}, actor.Options[string]{})
		_, _ = caught.Await(bg)
		watched.Stop()
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, []string{"outer", "of a Catch that has ended", "last"}, got)
	}},
	{"Stop: ends an actor that is restarted before it looks at its mailbox", func(t *testing.T, s suspend.Spawner) {
		for _, mail := range []int{0, 3} {
			var dead, lives int
			var failed promise.Promise[int]
			ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, func(context.Context, *actor.Self[int]) error {
				if lives++; lives == 5 {
					_ = failed.Fill(0)
				}
				return errOops
			}), actor.Options[int]{Dead: func(int) { dead++ }})
			_, _ = failed.Await(bg)
			for i := range mail {
				require.NoError(t, ref.Send(i))
			}
			ref.Stop()
			require.Equal(t, errOops, ref.Wait(bg))
			require.Equal(t, mail, dead)
		}
	}},
	{"Stop: ends an actor that backs off", func(t *testing.T, s suspend.Spawner) {
		for _, mail := range []int{0, 3} {
			lives := 0
			var failed promise.Promise[int]
			ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{
				Backoff:   func(int) time.Duration { return time.Hour },
				OnRestart: func(error) { _ = failed.Fill(0) },
			}, func(_ context.Context, self *actor.Self[int]) error {
				if lives++; lives == 1 {
					return errOops
				}
				return actor.Loop(func() error {
					return self.React(func(m int) error {
						if m == 1 {
							return errOops // the next life begins at once
						}
						return nil
					})
				})
			}), actor.Options[int]{})
			_, _ = failed.Await(bg)
			for range 3 {
				suspend.Yield()
			}
			for i := range mail {
				require.NoError(t, ref.Send(i))
			}
			ref.Stop()
			if mail == 0 {
				require.Equal(t, errOops, ref.Wait(bg))
				require.Equal(t, 1, lives)
			} else {
				require.NoError(t, ref.Wait(bg))
				require.Equal(t, 3, lives)
			}
		}
	}},
	{"Kill: ends an actor that backs off", func(t *testing.T, s suspend.Spawner) {
		var failed promise.Promise[int]
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{
			Backoff:   func(int) time.Duration { return time.Hour },
			OnRestart: func(error) { _ = failed.Fill(0) },
		}, func(context.Context, *actor.Self[int]) error { return errors.New("of the body") }), actor.Options[int]{})
		_, _ = failed.Await(bg)
		ref.Kill(errOops)
		require.Equal(t, errOops, ref.Wait(bg))
	}},
	{"Stop: each life receives some of the remaining messages", func(t *testing.T, s suspend.Spawner) {
		var got, dead []int
		var ready promise.Promise[int]
		lives := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, func(ctx context.Context, self *actor.Self[int]) error {
			lives++
			_, _ = ready.Await(ctx)
			return self.React(func(m int) error { got = append(got, m); return errOops })
		}), actor.Options[int]{Dead: func(m int) { dead = append(dead, m) }})
		for i := range 10 {
			require.NoError(t, ref.Send(i))
		}
		ref.Stop()
		_ = ready.Fill(0)
		require.Equal(t, errOops, ref.Wait(bg))
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got)
		require.Equal(t, 10, lives)
		require.Empty(t, dead)
	}},
	{"Stop: ends a tree after its messages and those of its children", func(t *testing.T, s suspend.Spawner) {
		const leaves, each = 3, 20
		var handled [leaves]int
		var mu sync.Mutex
		var ended []string
		end := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, name)
		}
		node := func(name string) actor.Options[int] {
			return actor.Options[int]{OnEnd: func(err error) {
				require.NoError(t, err)
				end(name)
			}}
		}
		count := promise.New[int]()
		root := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			self.OnEnd(func() { end("OnEnd of the root") })
			type key struct{}
			middle := actor.Spawn(context.WithValue(ctx, key{}, 1), s, func(ctx context.Context, self *actor.Self[int]) error {
				ctx, cancel := context.WithCancel(ctx)
				self.OnEnd(cancel)
				var to [leaves]actor.Ref[int]
				for i := range to {
					to[i] = actor.Spawn(ctx, s, loop(func(int) error { suspend.Yield(); handled[i]++; return nil }), node("leaf"))
				}
				return actor.Loop(func() error { return self.React(func(m int) error { return to[m%leaves].Send(m) }) })
			}, node("middle"))
			_ = count.Resolve(0, nil)
			for {
				m, err := self.Receive(ctx)
				if err != nil {
					return nil // or an error that wraps err
				}
				require.NoError(t, middle.Send(m))
			}
		}, node("root"))
		for i := range leaves * each {
			require.NoError(t, root.Send(i))
		}
		root.Stop()
		require.NoError(t, root.Wait(bg))
		require.Equal(t, [leaves]int{each, each, each}, handled)
		require.Equal(t, []string{"leaf", "leaf", "leaf", "middle", "OnEnd of the root", "root"}, ended)
	}},
	{"Stop: an actor that ends with ErrStopped stops its children", func(t *testing.T, s suspend.Spawner) {
		var child actor.Ref[int]
		parent := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			child = actor.Spawn(ctx, s, lasting[int], actor.Options[int]{})
			return actor.ErrStopped
		}, actor.Options[int]{})
		require.NoError(t, parent.Wait(bg))
		select {
		case <-child.Done():
			require.NoError(t, child.Wait(bg))
		default:
			t.Error("the child is alive")
		}
	}},
	{"Stop: a request in the mailbox of a tree does not keep its child waiting", func(t *testing.T, s suspend.Spawner) {
		var answer error
		var asks, skips promise.Promise[int]
		dead := 0
		parent := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[any]) error {
			actor.Spawn(ctx, s, func(ctx context.Context, _ *actor.Self[int]) error {
				_ = asks.Fill(0)
				_, answer = actor.Ask(bg, self.Ref(), &get{})
				return nil
			}, actor.Options[int]{})
			return self.React(func(m any) error {
				_ = skips.Fill(0)
				return actor.Skip
			})
		}, actor.Options[any]{Dead: func(any) { dead++ }})
		_, _ = asks.Await(bg)
		_, _ = skips.Await(bg)
		parent.Stop()
		require.NoError(t, parent.Wait(bg))
		require.ErrorIs(t, answer, actor.ErrNoReply)
		require.Equal(t, 1, dead)
	}},
	{"Kill: ends a tree that waits for its children, and a child in it", func(t *testing.T, s suspend.Spawner) {
		for _, killed := range []string{"parent", "child"} {
			var child actor.Ref[int]
			var up promise.Promise[int]
			parent := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				child = actor.Spawn(ctx, s, func(ctx context.Context, _ *actor.Self[int]) error {
					_, err := promise.New[int]().Await(ctx) // does not notice a Stop
					return err
				}, actor.Options[int]{})
				_ = up.Fill(0)
				return lasting(ctx, self)
			}, actor.Options[int]{})
			_, _ = up.Await(bg)
			parent.Stop()
			for range 3 {
				suspend.Yield()
			}
			select {
			case <-parent.Done():
				t.Error("the parent has not waited")
			default:
			}
			if killed == "parent" {
				parent.Kill(errOops)
				require.Equal(t, errOops, parent.Wait(bg))
				require.Equal(t, errOops, child.Wait(bg))
			} else {
				child.Kill(errOops)
				require.Equal(t, errOops, child.Wait(bg))
				require.NoError(t, parent.Wait(bg))
			}
		}
	}},
	{"Link: a child to which its parent is linked fails, while the end of the parent waits for another child", func(t *testing.T, s suspend.Spawner) {
		gate := promise.New[int]()
		var first, second actor.Ref[int]
		var up promise.Promise[int]
		parent := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			first = actor.Spawn(ctx, s, func(ctx context.Context, _ *actor.Self[int]) error {
				_, err := promise.New[int]().Await(ctx)
				return err
			}, actor.Options[int]{})
			second = actor.Spawn(ctx, s, func(context.Context, *actor.Self[int]) error {
				_, err := gate.Await(bg)
				return err
			}, actor.Options[int]{})
			self.Link(first)
			self.Link(second)
			_ = up.Fill(0)
			return nil
		}, actor.Options[int]{})
		_, _ = up.Await(bg)
		require.ErrorIs(t, first.Wait(bg), context.Canceled)
		for range 3 {
			suspend.Yield()
		}
		require.False(t, isDone(parent))
		_ = gate.Fill(0)
		require.NoError(t, parent.Wait(bg))
		require.True(t, isDone(second))
	}},
	{"Ask: of oneself fails at once, with any context and in any way", func(t *testing.T, s suspend.Spawner) {
		type wrap struct{ q *get }
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[any]) error {
			ask := func() {
				part := actor.Adapt(self.Ref(), func(w *get) any { return wrap{w} })
				for _, ctx := range []context.Context{ctx, bg} {
					q := &get{}
					_, err := actor.Ask(ctx, self.Ref(), q)
					require.ErrorIs(t, err, actor.ErrNoReply)
					_, err = actor.Ask(ctx, part, q) // the request can be used again
					require.ErrorIs(t, err, actor.ErrNoReply)
				}
			}
			ask()
			return self.React(func(any) error {
				ask()
				suspend.Yield()
				ask()
				return actor.Await(self, suspend.After(0), func(time.Time, error) error { ask(); return nil })
			})
		}, actor.Options[any]{Dead: func(any) { t.Error("a request was accepted") }})
		require.NoError(t, ref.Send(1))
		require.NoError(t, ref.Wait(bg))
	}},
	{"Ask: of an actor by one of its tasks, with its context, is not an Ask of oneself", func(t *testing.T, s suspend.Spawner) {
		helped := 0
		var answers []promise.Future[int]
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[any]) error {
			help := func() {
				answers = append(answers, promise.Go(ctx, s, func(context.Context) (int, error) { return actor.Ask(ctx, self.Ref(), &get{}) }))
				suspend.Yield() // the helper asks while the actor runs
			}
			help()
			return actor.LoopWhile(func() bool { return helped < 4 }, func() error {
				return self.React(func(m any) error {
					if helped++; helped < 4 {
						help()
					}
					m.(*get).Reply(helped)
					over := actor.Await(self, suspend.After(0), func(time.Time, error) error { return nil })
					return over
				})
			})
		}, actor.Options[any]{})
		require.NoError(t, ref.Wait(bg))
		for i, a := range answers {
			require.Equal(t, i+1, ok(a.Await(bg)))
		}
	}},
	{"Restart: a life that is done ends its children, unless the actor is stopped", func(t *testing.T, s suspend.Spawner) {
		for _, stopped := range []bool{false, true} {
			var of context.Context
			var child actor.Ref[int]
			ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				return actor.AndThen(actor.Restart(actor.Policy{}, func(ctx context.Context, self *actor.Self[int]) error {
					of, child = ctx, actor.Spawn(ctx, s, lasting[int], actor.Options[int]{})
					if stopped {
						self.Close()
					}
					return nil
				})(ctx, self), func() error {
					require.Equal(t, stopped, of.Err() == nil)
					return nil
				})
			}, actor.Options[int]{})
			require.NoError(t, ref.Wait(bg))
			if err := child.Wait(bg); stopped {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
	}},
	{"a context that never ends registers no child", func(t *testing.T, s suspend.Spawner) {
		var other actor.Ref[int]
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			other = actor.Spawn(context.WithoutCancel(ctx), s, lasting[int], actor.Options[int]{})
			return lasting(ctx, self)
		}, actor.Options[int]{})
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.NoError(t, other.Send(1), "it is stopped")
		other.Stop()
		require.NoError(t, other.Wait(bg))
	}},
	{"an actor that waits for its own end, or for its parent, gets an error", func(t *testing.T, s suspend.Spawner) {
		var child actor.Ref[int]
		var ref actor.Ref[int]
		ref = actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			require.ErrorContains(t, self.Ref().Wait(ctx), "own end")
			child = actor.Spawn(ctx, s, func(ctx context.Context, self *actor.Self[int]) error {
				_, err := self.Receive(ctx)
				require.ErrorIs(t, err, actor.ErrStopped)
				grandchild := actor.Spawn(ctx, s, func(ctx context.Context, _ *actor.Self[int]) error { return ref.Wait(ctx) }, actor.Options[int]{})
				require.ErrorContains(t, grandchild.Wait(ctx), "own end")
				return ref.Wait(context.WithoutCancel(ctx))
			}, actor.Options[int]{})
			return lasting(ctx, self)
		}, actor.Options[int]{})
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		require.ErrorContains(t, child.Wait(bg), "own end")
		require.NoError(t, ref.Wait(bg))
	}},
}

// When one of many watchers of a hub ends, nothing is allocated.
func TestManyWatchers(t *testing.T) {
	const watchers = 20_000
	var before, after runtime.MemStats
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		hub := actor.Spawn(bg, s, lasting[int], actor.Options[int]{})
		defer hub.Stop()
		refs := make([]actor.Ref[int], watchers)
		for i := range refs {
			refs[i] = actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
				self.Watch(hub, func(error) int { return 1 })
				return actor.Loop(func() error { return self.React(func(int) error { return nil }) })
			}, actor.Options[int]{})
			suspend.Yield() // lets each actor reach its wait, so that one coroutine is enough
		}
		runtime.GC()
		runtime.ReadMemStats(&before)
		for _, r := range refs {
			r.Stop()
		}
		for _, r := range refs {
			require.NoError(t, r.Wait(bg))
		}
		runtime.ReadMemStats(&after)
	})
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/watchers, uint64(100), "bytes allocated at each end")
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // twice, because a sync.Pool survives one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// grows runs turn n times on a fifo, and fails if the heap has grown by more than most bytes per turn.
func grows(t *testing.T, n int, most int64, open func(s *fifo.Scheduler) (turn func(), over func())) {
	t.Helper()
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		turn, over := open(s)
		for range n / 10 {
			turn()
		}
		before := heap()
		for range n {
			turn()
		}
		if grown := heap() - before; grown > most*int64(n) {
			t.Errorf("%d bytes more after %d turns", grown, n)
		}
		over()
	})
}

// A state machine with a Loop in each state changes from state to state, and keeps no earlier state alive.
func TestStatesAreNotKept(t *testing.T) {
	for _, caught := range []bool{false, true} {
		grows(t, 20_000, 10, func(s *fifo.Scheduler) (turn, over func()) {
			ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
				var on, off func() error
				on = func() error {
					return actor.AndThen(nil, func() error {
						return actor.Loop(func() error { return self.React(func(int) error { return off() }) })
					})
				}
				off = func() error {
					return actor.LoopWhile(func() bool { return true }, func() error { return self.React(func(int) error { return on() }) })
				}
				if caught {
					return actor.Catch(on, func(err error) error { return err })
				}
				return on()
			}, actor.Options[int]{})
			return func() { _ = ref.Send(1); suspend.Yield() }, ref.Stop
		})
	}
}

// A Restart that happens again and again keeps no earlier life in memory.
func TestLivesAreNotKept(t *testing.T) {
	grows(t, 20_000, 10, func(s *fifo.Scheduler) (turn, over func()) {
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error {
				return actor.Restart(actor.Policy{}, func(context.Context, *actor.Self[int]) error {
					return self.React(func(int) error { return nil })
				})(ctx, self)
			})
		}, actor.Options[int]{})
		return func() { _ = ref.Send(1); suspend.Yield() }, ref.Stop
	})
}
