package scope_test

import (
	"context"
	"errors"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A Then on the scheduler of a scope keeps the Run of the scheduler from returning. Otherwise its continuation would run on a
// stray goroutine.
func TestThenKeepsARunOpen(t *testing.T) {
	var p promise.Promise[int]
	got := 0
	s := fifo.New(fifo.Options{})
	go func() { _ = p.Fill(1) }()
	err := s.Run(context.Background(), func(ctx context.Context) error {
		suspend.Then(ctx, p.AwaitOp(), s, func(v int, _ error) { got = v })
		return nil
	})
	if err != nil || got != 1 {
		t.Errorf("the continuation got %d, Run returned %v", got, err)
	}
	if stats := s.Stats(); stats.Live != 0 || stats.Suspended != 0 {
		t.Errorf("%+v", stats)
	}
}

// A wait without a task keeps scope.Run, and the Run of the scheduler inside, from returning.
func TestHoldKeepsAScopeOpen(t *testing.T) {
	s := fifo.New(fifo.Options{})
	released := false
	err := s.Run(context.Background(), func(ctx context.Context) error {
		var on suspend.Spawner
		err := scope.Run(ctx, func(_ context.Context, sc *scope.Scope) error {
			on = sc.On(s)
			h, ok := suspend.As[sched.Holder](on)
			if !ok {
				t.Fatal("the Spawner of a scope cannot be held")
			}
			let, _ := h.Hold()
			direct, _ := sc.On(nil).(sched.Holder).Hold()
			if n := s.Stats().Suspended; n != 1 {
				t.Errorf("%d suspended", n)
			}
			return s.Go(func() {
				for range 10 {
					suspend.Yield()
				}
				direct()
				suspend.Yield()
				released = true
				let()
			})
		})
		if err != nil || !released {
			t.Errorf("the scope has ended: %v, released: %v", err, released)
		}
		h, _ := suspend.As[sched.Holder](on)
		if _, err := h.Hold(); !errors.Is(err, suspend.ErrEnded) {
			t.Errorf("Hold after the end: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Hold(); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("Hold after Run: %v", err)
	}
	defer schedtest.Within(t, schedtest.Deadline)()
	err = scope.Run(context.Background(), func(_ context.Context, sc *scope.Scope) error { // returns although the scheduler refuses the Hold
		h, _ := suspend.As[sched.Holder](sc.On(s))
		_, err := h.Hold()
		return err
	})
	if !errors.Is(err, suspend.ErrClosed) {
		t.Error(err)
	}
}
