package actor_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// An actor does not keep requests to which it has replied.
func TestAnsweredRequestsAreNotKept(t *testing.T) {
	grows(t, 10_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
		r := actor.Spawn(bg, s, loop(func(q *get) error { q.Reply(1); return nil }), actor.Options[*get]{})
		return func() { _, _ = actor.Ask(bg, r, &get{}) }, r.Stop
	})
}

// An actor keeps nothing of actors that were linked to it, to which it was linked, or that watched it, after their end.
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
				}, actor.Options[int]{})
				schedtest.Settle()
				return func() {
					peer := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
						tie(hub, self, self.Ref())
						return nil
					}, actor.Options[int]{})
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
		}, actor.Options[int]{})
		schedtest.Settle()
		return func() {
			child := actor.Spawn(parent, s, func(context.Context, *actor.Self[int]) error { return nil }, actor.Options[int]{})
			_ = child.Wait(bg)
		}, ref.Stop
	})
}

// A RecvOp that was served leaves no waiter behind.
func TestServedRecvOpsAreNotKept(t *testing.T) {
	grows(t, 3_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
		in := actor.Open[int](bg, actor.Options[int]{})
		return func() {
			_ = s.Go(func() { _ = in.Ref().Send(1) })
			if _, err := suspend.Do(bg, in.RecvOp(nil)); err != nil {
				t.Error(err)
			}
		}, func() { _ = in.Close() }
	})
}

// A mailbox in which a few messages remain among many holes is rebuilt.
func TestFewAmongManyHoles(t *testing.T) {
	in := actor.Open[string](bg, actor.Options[string]{})
	defer in.Close()
	before := heap()
	const segments = 400
	for i := range segments * 64 {
		m := "goes"
		if i%64 == 0 {
			m = "stays" // one message in each segment stays
		}
		require.NoError(t, in.Ref().Send(m))
	}
	flood := heap() - before
	for range segments * 63 {
		require.NoError(t, in.Handle(bg, func(m string) error {
			if m == "stays" {
				return actor.Skip
			}
			return nil
		}))
	}
	require.Equal(t, segments, in.Len())
	require.Less(t, heap()-before, flood/5)
}

// A timing scheduler counts the timers that are set.
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

// The first child of an actor costs as much as any later child.
func TestChildrenCostTheSame(t *testing.T) {
	if schedtest.Race {
		return
	}
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		allocs := func(ctx context.Context) float64 {
			return testing.AllocsPerRun(100, func() {
				child := actor.Spawn(ctx, s, func(context.Context, *actor.Self[int]) error { return nil }, actor.Options[int]{})
				_ = child.Wait(bg)
			})
		}
		alone := allocs(bg)
		ref := actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
			require.LessOrEqual(t, allocs(ctx), alone+6)
			return nil
		}, actor.Options[int]{})
		require.NoError(t, ref.Wait(bg))
		runtime.KeepAlive(ref)
	})
}
