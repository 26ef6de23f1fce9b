package integration_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

var errEnough = errors.New("enough")

// Each of these calls starts tasks, which wait for a value of m with the context that they get.
var gatherings = map[string]func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) error{
	"Run": func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) error {
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for range 3 {
				s.Go(on, child)
			}
			return child(ctx)
		})
	},
	"Run, a child fails": func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) error {
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for range 3 {
				s.Go(on, child)
			}
			return errEnough
		})
	},
	"Map": func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) error {
		_, err := scope.Map(ctx, on, []int{1, 2, 3}, func(ctx context.Context, n int) (int, error) { return n, child(ctx) })
		return err
	},
	"First": func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) error {
		f := func(ctx context.Context) (int, error) { return 0, child(ctx) }
		_, err := scope.First(ctx, on, f, f, f)
		return err
	},
	"Stream": func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) (err error) {
		in := func(yield func(int, error) bool) {
			for n := range 3 {
				if !yield(n, nil) {
					return
				}
			}
		}
		for _, err = range scope.Stream(ctx, on, 2, in, func(ctx context.Context, n int) (int, error) { return n, child(ctx) }) {
			if err != nil {
				break
			}
		}
		return err
	},
}

// If a context panics, the panic leaves a scope only after its children have ended, and none of them stays queued. A child that
// outlived its scope could use memory that the caller has freed.
func TestAPanickyContextLeavesNoChild(t *testing.T) {
	for name, gather := range gatherings {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			for _, place := range places {
				if place.Name == "goroutine" { // on a goroutine, a panic of a child would end the process
					place.Open = func() (suspend.Spawner, func()) { return survivor{}, func() {} }
				}
				for _, end := range []string{"fed", "cancelled", "done before"} {
					withPanicky(t, "on a "+place.Name+", "+end, func(t *testing.T, at string, onwards bool, with panickyOf) (reached bool) {
						return gatherOnce(t, at, onwards, place, gather, with, end)
					})
				}
			}
		})
	}
}

func gatherOnce(t *testing.T, at string, onwards bool, place schedtest.Scheduler,
	gather func(ctx context.Context, on suspend.Spawner, child func(context.Context) error) error, with panickyOf, end string) (reached bool) {
	on, closed := place.Open()
	defer closed()
	inner, cancel := context.WithCancel(bg)
	defer cancel()
	if end == "done before" {
		cancel()
	}
	ctx, panics := with(inner)
	var m mvar.MVar[int]
	var live, taken, put atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if r := recover(); r != nil && r != schedtest.PanickyValue {
				t.Errorf("%s: panic %v", at, r)
			}
			if n := live.Load(); n != 0 {
				t.Errorf("%s: %d children live on", at, n)
			}
		}()
		_ = gather(ctx, on, func(ctx context.Context) error {
			live.Add(1)
			defer live.Add(-1)
			defer func() { _ = suspend.Sleep(bg, time.Millisecond) }() // runs too late if the scope does not wait for it
			_, err := m.Take(ctx)
			if err == nil {
				taken.Add(1)
			}
			return err
		})
	}()
	synctest.Wait()
	if end == "cancelled" {
		cancel()
	}
	settle := func() {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	for range 4 {
		settle()
		if end == "fed" && m.TryPut(1) {
			put.Add(1)
		}
	}
	cancel() // otherwise a child whose context has not ended would wait for ever
	settle()
	select {
	case <-ended:
	default: // a context that panics in each call may hide its end from the children, which then need a value
		if !onwards {
			t.Errorf("%s: does not end", at)
		}
		for m.TryPut(1) {
			put.Add(1)
			settle()
			if _, ok := m.TryTake(); ok {
				put.Add(-1)
				break
			}
		}
		<-ended
	}
	if _, ok := m.TryTake(); ok {
		taken.Add(1)
	}
	require.Equal(t, put.Load(), taken.Load(), at)
	require.True(t, m.TryPut(1), at)
	_, ok := m.TryTake()
	require.True(t, ok, "%s: a child is queued", at)
	return panics.Reached()
}
