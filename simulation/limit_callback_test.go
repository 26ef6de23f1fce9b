package simulation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// If a callback of scope A panics, scope B must not lose its place.
func TestAPanickingCallbackLosesThePlace(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		one := scope.Limit(1, w)
		std, end := context.WithCancel(context.Background())
		defer end()
		var gate promise.Promise[int]
		_ = one.Go(func() { _, _ = gate.Await(ctx); end() })
		_ = w.Go(func() {
			_ = scope.Run(std, func(ctx context.Context, s *scope.Scope) error {
				cancel.AfterFunc(ctx, func() { panic("a callback of scope A") })
				s.Go(one, func(context.Context) error { return nil })
				return nil
			})
		})
		_ = suspend.Sleep(ctx, time.Second)
		ran := false
		_ = one.Go(func() { ran = true })
		_ = gate.Fill(1)
		_ = suspend.Sleep(ctx, time.Second)
		if !ran {
			return errors.New("the place is lost")
		}
		return nil
	}, simulation.Options{Seed: 1, OnPanic: func(any, []byte) {}})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}
