package stm_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
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
	b.Run("floor", func(b *testing.B) { // the steps that a commit of one Var needs, one after another
		b.ReportAllocs()
		type box struct {
			of      *atomic.Pointer[box]
			version int64
			value   int
		}
		var v atomic.Pointer[box]
		v.Store(&box{of: &v})
		var clock atomic.Int64
		var guard suspend.Guard
		ban := suspend.NewBan("floor")
		pool := sync.Pool{New: func() any { return new([8]any) }}
		for range b.N {
			log := pool.Get().(*[8]any)
			now := clock.Load()
			entered, _ := ban.Enter()
			seen := v.Load()
			log[0], log[1] = seen, &box{of: &v, value: seen.value + 1}
			ban.Exit(entered)
			guard.Lock()
			if v.Load() == log[0].(*box) {
				to := log[1].(*box)
				to.version = now + 1
				v.Store(to)
				clock.Store(now + 1)
			}
			guard.Unlock()
			log[0], log[1] = nil, nil
			pool.Put(log)
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
	b.Run("read4", func(b *testing.B) {
		var vs [4]stm.Var[int]
		for range b.N {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				for i := range vs {
					vs[i].Get(tx)
				}
				return nil
			})
		}
	})
	b.Run("read4 floor", func(b *testing.B) { // the steps that this needs: a log from a pool, the Ban, the clock, and the loads
		type box struct{ version int64 }
		var vs [4]atomic.Pointer[box]
		for i := range vs {
			vs[i].Store(new(box))
		}
		var clock atomic.Int64
		ban := suspend.NewBan("floor")
		pool := sync.Pool{New: func() any { return new([4]*box) }}
		for range b.N {
			log := pool.Get().(*[4]*box)
			now := clock.Load()
			entered, _ := ban.Enter()
			for i := range vs {
				if log[i] = vs[i].Load(); log[i].version > now {
					b.Fatal("newer")
				}
			}
			ban.Exit(entered)
			*log = [4]*box{}
			pool.Put(log)
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
