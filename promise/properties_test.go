package promise_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// One of several fillers wins, and every waiter that is not cancelled gets its value.
func TestStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		seen := stress.Of("awaited", "failed", "cancelled", "lost in a Select", "filled", "filled already", "found", "not found")
		errFailed := errors.New("failed")
		stress.Rounds(t, seen, func() {
			const tasks = 64
			var promises [8]promise.Promise[int]
			var filled, other [len(promises)]atomic.Int64 // filled: the value, or 0; other: a value that a waiter has got
			got := func(i int, v int, err error) {
				switch {
				case errors.Is(err, errFailed):
					v = -1
					seen.Add("failed")
				case errors.Is(err, context.Canceled):
					seen.Add("cancelled")
					return
				case err != nil:
					t.Error(err)
					return
				default:
					seen.Add("awaited")
				}
				if was := other[i].Swap(int64(v)); was != 0 && was != int64(v) {
					t.Errorf("one gets %d, another %d", was, v)
				}
			}
			schedtest.Stress(t, next, tasks, func(id int, rng *rand.Rand) {
				for i := range promises {
					p := &promises[i]
					ctx, cancel := schedtest.MayCancel(rng)
					how := rng.IntN(8)
					if id == 0 { // fills all promises, late
						how = 0
						schedtest.Yield(rng.IntN(20))
					}
					switch how {
					case 0:
						v, err := id+1, error(nil)
						if rng.IntN(2) == 0 {
							v, err = -1, errFailed
						}
						if p.Resolve(v, err) {
							seen.Add("filled")
							filled[i].Store(int64(v))
						} else {
							seen.Add("filled already")
						}
					case 1:
						if v, ok, err := p.Try(); ok {
							seen.Add("found")
							got(i, v, err)
						} else {
							seen.Add("not found")
						}
					case 2:
						mine, lose := suspend.CaseOf(p.AwaitOp()), suspend.CaseOf(promises[(i+1)%len(promises)].AwaitOp())
						switch won, err := suspend.Select(ctx, mine, lose); won {
						case mine:
							v, err := mine.Result()
							got(i, v, err)
						case lose:
							seen.Add("lost in a Select")
							v, err := lose.Result()
							got((i+1)%len(promises), v, err)
						default:
							got(i, 0, err)
						}
					default:
						if rng.IntN(2) == 0 {
							suspend.Yield()
						}
						v, err := p.Await(ctx)
						got(i, v, err)
					}
					cancel()
				}
			})
			for i := range promises {
				v, want := other[i].Load(), filled[i].Load()
				if v != 0 && v != want {
					t.Errorf("filled with %d, but a waiter got %d", want, v)
				}
			}
		})
	})
}
