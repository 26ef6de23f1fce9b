package actor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A SendAfter is accepted by a full mailbox, and takes no room.
func TestSendAfterTakesNoRoom(t *testing.T) {
	inABubble(t, func(s *fifo.Scheduler) {
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			self.SendAfter(time.Second, 7)
			return actor.AndThen(self.HandleWithin(ctx, time.Minute, func(m int) error {
				if m != 7 {
					return actor.Skip
				}
				require.ErrorIs(t, self.Ref().Send(3), actor.ErrFull) // the first one is still there
				return nil
			}), func() error {
				require.ErrorIs(t, self.Ref().Send(3), actor.ErrFull)
				return nil
			})
		}, actor.Options[int]{Cap: 1})
		require.NoError(t, ref.Send(1))
		require.NoError(t, ref.Wait(bg))
	})
}

// An error that wraps ErrStopped ends an actor normally, and no Restart goes on after it.
func TestWrappedErrStopped(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		lives := 0
		body := func(context.Context, *actor.Self[int]) error {
			lives++
			return fmt.Errorf("done: %w", actor.ErrStopped)
		}
		require.NoError(t, actor.Spawn(bg, s, body).Wait(bg))
		require.NoError(t, actor.Spawn(bg, s, actor.Restart(actor.Policy{Max: 1}, body)).Wait(bg))
		require.Equal(t, 2, lives)
	})
}

// A normal end kills nobody, whichever of the two has made the Link.
func TestNormalEndsOfLinked(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for first := range 2 {
			var refs [2]actor.Ref[int]
			refs[0] = actor.Spawn(bg, s, lasting[int])
			refs[1] = actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				self.Link(refs[0])
				return lasting(ctx, self)
			})
			schedtest.Settle()
			refs[first].Stop()
			require.NoError(t, refs[first].Wait(bg))
			schedtest.Settle()
			refs[1-first].Stop()
			require.NoError(t, refs[1-first].Wait(bg))
		}
	})
}

// A message that has taken no room leaves none, also when a RecvOp takes it.
func TestRecvOpOfWhatTookNoRoom(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		other := actor.Spawn(bg, s, func(context.Context, *actor.Self[int]) error { return nil })
		require.NoError(t, other.Wait(bg))
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			self.Watch(other, func(error) int { return -1 })
			if _, err := suspend.Do(ctx, self.RecvOp(nil)); err != nil {
				return err
			}
			return errors.Join(self.Ref().Send(1), self.Ref().Send(2))
		}, actor.Options[int]{Cap: 1})
		require.ErrorIs(t, ref.Wait(bg), actor.ErrFull)
	})
}

// The functions of OnEnd are called the last one first.
func TestOnEndIsAStack(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var order []int
		ref := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
			leave := func(i int) { self.OnEnd(func() { order = append(order, i) }) }
			leave(1)
			leave(2)
			return actor.Catch(func() error {
				leave(3)
				leave(4)
				return errOops
			}, func(error) error {
				leave(5)
				return nil
			})
		})
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, []int{4, 3, 5, 2, 1}, order)
	})
}

// An actor keeps no request that is answered.
func TestAnsweredRequestsAreNotKept(t *testing.T) {
	grows(t, 10_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
		r := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[*get]) error {
			return actor.Loop(func() error { return self.React(func(q *get) error { q.Reply(1); return nil }) })
		})
		return func() { _, _ = actor.Ask(bg, r, &get{}) }, r.Stop
	})
}

// An actor keeps nothing of those that were linked to it, that it was linked to, or that watched it.
func TestEndedPeersAreNotKept(t *testing.T) {
	for name, tie := range map[string]func(hub, peer *actor.Self[int], ref actor.Actor){
		"linked by the peer": func(hub, peer *actor.Self[int], _ actor.Actor) { peer.Link(hub.Ref()) },
		"linked by it":       func(hub, peer *actor.Self[int], _ actor.Actor) { hub.Link(peer.Ref()) },
		"watched":            func(hub, peer *actor.Self[int], _ actor.Actor) { peer.Watch(hub.Ref(), func(error) int { return 1 }) },
		"watched and stopped": func(hub, peer *actor.Self[int], _ actor.Actor) {
			peer.Watch(hub.Ref(), func(error) int { return 1 })()
		},
	} {
		t.Run(name, func(t *testing.T) {
			grows(t, 5_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
				var hub *actor.Self[int]
				ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
					hub = self
					return lasting(ctx, self)
				})
				schedtest.Settle()
				return func() {
					peer := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
						tie(hub, self, self.Ref())
						return nil
					})
					_ = peer.Wait(bg)
				}, ref.Stop
			})
		})
	}
}

// A parent keeps nothing of a child that has ended.
func TestEndedChildrenAreNotKept(t *testing.T) {
	grows(t, 5_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
		var parent context.Context
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			parent = ctx
			return lasting(ctx, self)
		})
		schedtest.Settle()
		return func() {
			child := actor.Spawn(parent, s, func(context.Context, *actor.Self[int]) error { return nil })
			_ = child.Wait(bg)
		}, ref.Stop
	})
}

// A RecvOp that was served is waited for no more.
func TestServedRecvOpsAreNotKept(t *testing.T) {
	grows(t, 3_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
		in := actor.Open[int](bg)
		return func() {
			_ = s.Go(func() { _ = in.Ref().Send(1) })
			if _, err := suspend.Do(bg, in.RecvOp(nil)); err != nil {
				t.Error(err)
			}
		}, in.Close
	})
}

// A mailbox in which few messages are left among many that are gone is rebuilt.
func TestFewAmongManyHoles(t *testing.T) {
	in := actor.Open[[64]byte](bg)
	defer in.Close()
	before := heap()
	const segments = 300
	for i := range segments * 64 {
		m := [64]byte{}
		if i%64 == 0 {
			m[0] = 1 // one in each segment is left
		}
		require.NoError(t, in.Ref().Send(m))
	}
	flood := heap() - before
	for range segments * 63 {
		require.NoError(t, in.Handle(bg, func(m [64]byte) error {
			if m[0] == 1 {
				return actor.Skip
			}
			return nil
		}))
	}
	require.Equal(t, segments, in.Len())
	require.Less(t, heap()-before, flood/5)
}

// A restart counts for Within, and no longer: one exactly as old as that is forgotten.
func TestRestartsOfAPeriod(t *testing.T) {
	inABubble(t, func(s *fifo.Scheduler) {
		lives := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{Max: 1, Within: time.Minute}, func(_ context.Context, self *actor.Self[int]) error {
			lives++
			return self.React(func(int) error { return errOops })
		}))
		for range 3 {
			require.NoError(t, ref.Send(1))
			_ = suspend.Sleep(bg, time.Minute)
		}
		require.Equal(t, 4, lives)
		require.NoError(t, ref.Send(1))
		_ = suspend.Sleep(bg, time.Minute-1)
		require.NoError(t, ref.Send(1))
		require.Equal(t, errOops, ref.Wait(bg))
	})
}

// An actor that is stopped accepts no message of a Watch, nor of a SendAfter.
func TestStoppedAcceptsNothing(t *testing.T) {
	inABubble(t, func(s *fifo.Scheduler) {
		other := actor.Spawn(bg, s, lasting[int])
		var goOn promise.Promise[int]
		var self2 *actor.Self[int]
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			self2 = self
			self.Watch(other, func(error) int { return 1 })
			self.SendAfter(time.Second, 2)
			_, err := goOn.Await(ctx)
			return err
		}, actor.Options[int]{Dead: func(m int) { t.Errorf("%d was accepted", m) }})
		schedtest.Settle()
		ref.Stop()
		other.Stop()
		_ = suspend.Sleep(bg, time.Minute)
		require.Zero(t, self2.Len())
		_ = goOn.Fill(0)
		require.NoError(t, ref.Wait(bg))
	})
}

// The timers of an actor end with it.
func TestTimersEndWithTheirActor(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		timers := &timing{Spawner: s}
		ref := actor.Spawn(bg, timers, func(ctx context.Context, self *actor.Self[int]) error {
			for range 3 {
				self.SendAfter(time.Hour, 1)
			}
			return self.ReactWithin(time.Hour, func(int) error { return actor.Skip }, func() error { return nil })
		})
		schedtest.Settle()
		require.EqualValues(t, 4, timers.waiting.Load())
		ref.Stop()
		require.NoError(t, ref.Wait(bg))
		schedtest.Settle()
		require.Zero(t, timers.waiting.Load())
	})
}

// A timing scheduler counts the timers that wait.
type timing struct {
	suspend.Spawner
	waiting atomic.Int32
}

func (c *timing) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.waiting.Add(1)
	cancel := suspend.AfterFunc(c.Spawner, d, func() { c.waiting.Add(-1); f() })
	return func() bool {
		stopped := cancel()
		if stopped {
			c.waiting.Add(-1)
		}
		return stopped
	}
}

// The first child of an actor costs what the next ones cost.
func TestChildrenCostTheSame(t *testing.T) {
	if schedtest.Race {
		return
	}
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		allocs := func(ctx context.Context) float64 {
			return testing.AllocsPerRun(100, func() {
				child := actor.Spawn(ctx, s, func(context.Context, *actor.Self[int]) error { return nil })
				_ = child.Wait(bg)
			})
		}
		alone := allocs(bg)
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			require.LessOrEqual(t, allocs(ctx), alone+6)
			return nil
		})
		require.NoError(t, ref.Wait(bg))
		runtime.KeepAlive(ref)
	})
}
