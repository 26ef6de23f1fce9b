package stm_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/stm"
)

func BenchmarkCounter(b *testing.B) {
	ctx := context.Background()
	b.Run("stm", func(b *testing.B) {
		v := stm.NewVar(0)
		b.ReportAllocs()
		for range b.N {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+1); return nil })
		}
	})
	b.Run("read", func(b *testing.B) {
		v := stm.NewVar(0)
		b.ReportAllocs()
		for range b.N {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error { v.Get(tx); return nil })
		}
	})
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		n := 0
		for range b.N {
			mu.Lock()
			n++
			mu.Unlock()
		}
	})
	b.Run("scan1000", func(b *testing.B) {
		vs := make([]stm.Var[int], 1000)
		b.ReportAllocs()
		for range b.N {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				for i := range vs {
					vs[i].Get(tx)
				}
				return nil
			})
		}
	})
}
