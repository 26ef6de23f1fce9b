package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// A task has two Shields, one in a deferred function of the other. The end of the run lifts both.
func TestTwoShields(t *testing.T) {
	unwound := false
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		var a, b mutex.Mutex
		ca, cb := cond.New(&a), cond.New(&b)
		_ = w.Go(func() {
			defer func() { unwound = true }()
			_ = a.LockContext(ctx)
			_ = b.LockContext(ctx)
			defer func() { _ = ca.Wait(ctx) }()
			_ = cb.Wait(ctx)
		})
		_ = suspend.Sleep(ctx, time.Second)
		_ = b.LockContext(ctx)        // waits for ever
		_ = w.Go(func() { a.Lock() }) // gets the lock while the deferred function waits, and keeps it
		_ = suspend.Sleep(ctx, time.Second)
		return nil
	}, simulation.Options{Seed: 1})
	if r.Err != nil || !unwound {
		t.Fatal(r.Err, "the task was left behind")
	}
}

// The message is refused on a goroutine outside the World. This may release the hold of the actor, which the crash has already
// released.
func TestActorOnACrashedNode(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		ref := actor.Spawn(ctx, n, func(_ context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error { return self.React(func(int) error { return nil }) })
		}, actor.Options[int]{})
		_ = suspend.Sleep(ctx, time.Second)
		n.Crash()
		_ = ref.Send(1)
		time.Sleep(20 * time.Millisecond)
		return suspend.Sleep(ctx, time.Second)
	}, simulation.Options{Seed: 1})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}
