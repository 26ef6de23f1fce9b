package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

func TestThenOnACrashedNode(t *testing.T) {
	r := simulation.Run(simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		var p promise.Promise[int]
		ran := make(chan int, 1)
		suspend.Then(context.Background(), p.AwaitOp(), n, func(v int, _ error) { ran <- v })
		n.Crash()
		_ = p.Fill(1)
		<-ran
		time.Sleep(20 * time.Millisecond)
		return suspend.Sleep(ctx, time.Second)
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}
