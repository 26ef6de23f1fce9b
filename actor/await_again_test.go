package actor_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// An Await of a transaction ends when the transaction commits, however often the Vars that it had read changed before.
func TestAwaitOfATransaction(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		var v stm.Var[int]
		got := 0
		schedtest.Run(t, on, func() {
			ref := actor.Spawn(bg, on, func(_ context.Context, self *actor.Self[int]) error {
				return actor.Await(self, stm.Op(func(tx *stm.Tx) (int, error) {
					if n := v.Get(tx); n == 3 {
						return n, nil
					}
					return 0, stm.Retry
				}), func(n int, err error) error { got = n; return err })
			}, actor.Options[int]{})
			for i := range 3 {
				for range 5 {
					suspend.Yield()
				}
				require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, i+1); return nil }))
			}
			require.NoError(t, ref.Wait(bg))
			require.Equal(t, 3, got)
		})
	})
}

// If the scheduler refuses the task that continues an Await, the function is still called, because it may have to release a lock,
// and the actor ends. If the operation only had to look again, it is cancelled.
func TestARefusedAwait(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Bool
			refused := errors.New("refused")
			on := spawner(func(f func()) error {
				if closed.Load() {
					return refused
				}
				go f()
				return nil
			})
			var v stm.Var[int]
			var told []error
			ref := actor.Spawn(bg, on, func(_ context.Context, self *actor.Self[int]) error {
				return actor.Await(self, stm.Op(func(tx *stm.Tx) (int, error) {
					if n := v.Get(tx); n < 2 {
						return 0, stm.Retry
					}
					return 0, nil
				}), func(_ int, err error) error { told = append(told, err); return nil })
			}, actor.Options[int]{})
			synctest.Wait()
			closed.Store(true)
			set := 2
			if again {
				set = 1
			}
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, set); return nil }))
			synctest.Wait()
			require.Len(t, told, 1)
			require.True(t, isDone(ref))
			require.Equal(t, refused, ref.Wait(bg))
			if again {
				require.ErrorIs(t, told[0], context.Canceled)
			} else {
				require.NoError(t, told[0])
			}
		})
	}
}

type spawner func(f func()) error

func (s spawner) Go(f func()) error { return s(f) }

// A RecvOp looks at each message once in a wait, and at all messages again in the next wait. It takes the first that matches.
func TestMatchLooksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := actor.Open[int](bg, actor.Options[int]{})
		var seen []int
		want := 3
		mail := suspend.CaseOf(in.RecvOp(func(m int) bool { seen = append(seen, m); return m == want }))
		got := make(chan int)
		go func() {
			for range 2 {
				_, _ = suspend.Select(bg, mail)
				got <- mail.Value()
			}
		}()
		for i := range 4 {
			require.NoError(t, in.Ref().Send(i))
			synctest.Wait()
		}
		require.Equal(t, []int{0, 1, 2, 3}, seen)
		seen, want = nil, 1
		require.Equal(t, 3, <-got)
		require.Equal(t, 1, <-got)
		require.Equal(t, []int{0, 1}, slices.Clip(seen))
		require.Equal(t, 2, in.Len())
	})
}

// A full mailbox keeps nothing of a cancelled SendOp alive.
func TestGivenUpSendOpsAreNotKept(t *testing.T) {
	grows(t, 5_000, 20, func(s *fifo.Scheduler) (turn, over func()) {
		in := actor.Open[int](bg, actor.Options[int]{Cap: 1})
		_ = in.Ref().Send(1)
		return func() {
			ctx, cancel := schedtest.WithCancel()
			_ = s.Go(func() { _ = in.Ref().SendWait(ctx, 2) })
			suspend.Yield()
			cancel()
			schedtest.Settle()
		}, func() { _ = in.Close() }
	})
}
