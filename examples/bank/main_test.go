package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

func Example() {
	main()
	// Output: audited: true <nil> some refused: true <nil>
}

// Each audit sees the accounts of one moment, also while transfers run on two schedulers.
func TestAuditDuringTransfers(t *testing.T) {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	b := newBank()
	require.NoError(t, scope.Run(t.Context(), func(ctx context.Context, s *scope.Scope) error {
		transfers := 0
		var ended stm.Var[int]
		for _, on := range []suspend.Spawner{pool, suspend.Goroutines} {
			transfers++
			_ = s.Go(on, func(ctx context.Context) error {
				refused, err := b.storm(ctx, on)
				require.Positive(t, refused)
				_, _ = stm.Try(func(tx *stm.Tx) error { ended.Set(tx, ended.Get(tx)+1); return nil })
				return err
			})
		}
		for ended.Load() < transfers {
			if err := stm.Atomically(ctx, b.audit); err != nil {
				return err
			}
		}
		return stm.Atomically(ctx, b.audit)
	}))
}
