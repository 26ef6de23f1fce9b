package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// Two nodes share an object. The first waits for it, and crashes at each of its steps. The second must not wait for the first any
// more.
func TestCrashOfTheFirst(t *testing.T) {
	for name, open := range map[string]func() func(ctx context.Context) error{
		"Cache": func() func(ctx context.Context) error {
			c := keyed.NewCache(func(ctx context.Context, key int) (int, error) { return 1, suspend.Sleep(ctx, time.Second) }, keyed.CacheOptions{})
			return func(ctx context.Context) error { _, err := c.Get(ctx, 1); return err }
		},
		"Cache that keeps": func() func(ctx context.Context) error {
			c := keyed.NewCache(func(ctx context.Context, key int) (int, error) { suspend.Yield(); return 1, nil }, keyed.CacheOptions{TTL: time.Hour})
			return func(ctx context.Context) error { _, err := c.Get(ctx, 1); return err }
		},
		"Limiter": func() func(ctx context.Context) error {
			l := rate.NewLimiter(1, 1)
			l.Allow(1)
			return l.Wait
		},
		"Ticker": func() func(ctx context.Context) error {
			k := rate.NewTicker(time.Second, rate.Skip)
			return func(ctx context.Context) error { _, err := k.Tick(ctx); return err }
		},
		"keyed Mutex": func() func(ctx context.Context) error {
			var m keyed.Mutex[int]
			return func(ctx context.Context) error {
				if err := m.LockContext(ctx, 1); err != nil {
					return err
				}
				defer m.Unlock(1)
				suspend.Yield()
				return nil
			}
		},
	} {
		for seed := range uint64(20) {
			for steps := range 8 {
				r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
					shared, first, others := open(), w.Node("first"), []*simulation.Node{w.Node("a"), w.Node("b")}
					_ = first.Go(func() { _ = shared(ctx) })
					var ended int
					for i, n := range others {
						_ = n.Go(func() {
							for range i {
								suspend.Yield()
							}
							_ = shared(ctx)
							ended++
						})
					}
					for range steps {
						suspend.Yield()
					}
					first.Crash()
					_ = suspend.Sleep(ctx, 2*time.Hour)
					if ended < len(others) {
						return fmt.Errorf("%d of %d waits have ended", ended, len(others))
					}
					return nil
				}, simulation.Options{Seed: seed + 1})
				if r.Err != nil {
					t.Errorf("%s, seed %d, %d steps: %v", name, seed+1, steps, r.Err)
				}
			}
		}
	}
}
