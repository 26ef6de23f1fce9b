package fifo_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

func BenchmarkSuspendResume(b *testing.B) {
	b.ReportAllocs()
	_ = fifo.Run(bg, func(context.Context) error {
		for range b.N {
			_, _ = suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
				r.Resume(1, nil)
				return 0, false
			})
		}
		return nil
	})
}

func BenchmarkPingPong(b *testing.B) {
	b.ReportAllocs()
	var ping, pong mvar.MVar[int]
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() {
			for range b.N {
				v, _ := ping.Take(bg)
				_ = pong.Put(bg, v)
			}
		})
		for i := range b.N {
			_ = ping.Put(bg, i)
			_, _ = pong.Take(bg)
		}
		return nil
	})
}
