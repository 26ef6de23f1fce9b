package integration_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var derivations = map[string]func(ctx context.Context) (context.Context, func(error)){
	"New": func(ctx context.Context) (context.Context, func(error)) { return cancel.New(ctx) },
	"New of New": func(ctx context.Context) (context.Context, func(error)) {
		ctx, end := cancel.New(ctx)
		ctx, _ = cancel.New(ctx)
		return ctx, end
	},
	"WithTimeoutCause": func(ctx context.Context) (context.Context, func(error)) {
		ctx, end := cancel.WithTimeoutCause(ctx, time.Hour, errors.New("late"))
		return ctx, func(error) { end() }
	},
}

// A context has a parent whose methods panic. When it is cancelled, it ends in any case, and so do the waits with it. If the
// panic left the cancel too early, the waits would hang.
func TestAPanickyParentAndACancel(t *testing.T) {
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			for _, place := range places {
				withPanicky(t, "on a "+place.Name, func(t *testing.T, at string, _ bool, with panickyOf) (reached bool) {
					inner, release := context.WithCancel(bg)
					defer release()
					on, closed := place.Open()
					defer closed()
					ctx, panics := with(inner)
					cancelsOnce(t, at, on, ctx, derive)
					return panics.Reached()
				})
			}
		})
	}
}

func cancelsOnce(t *testing.T, at string, on suspend.Spawner, parent context.Context, derive func(context.Context) (context.Context, func(error))) {
	ctx, end := context.Context(nil), func(error) {}
	survives(t, at, func() { ctx, end = derive(parent) })
	if ctx == nil {
		return
	}
	var m mvar.MVar[int]
	var waits atomic.Int64
	for range 3 {
		waits.Add(1)
		require.NoError(t, on.Go(func() {
			survives(t, at, func() {
				defer waits.Add(-1)
				_, _ = m.Take(ctx)
			})
		}))
	}
	synctest.Wait()
	start := time.Now()
	survives(t, at, func() { end(errEnough) })
	synctest.Wait()
	require.Error(t, ctx.Err(), at)
	require.Error(t, suspend.Err(ctx), at)
	require.Zero(t, waits.Load(), "%s: waits that were not ended", at)
	require.Zero(t, time.Since(start), at)
}

// survives calls f, in which the context may panic.
func survives(t *testing.T, at string, f func()) {
	defer func() {
		if r := recover(); r != nil && r != schedtest.PanickyValue {
			t.Errorf("%s: panic %v", at, r)
		}
	}()
	f()
}
