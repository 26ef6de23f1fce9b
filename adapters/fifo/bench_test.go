package fifo_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

func BenchmarkMVarSerial(b *testing.B) {
	run := func(b *testing.B, ctx context.Context) {
		b.ReportAllocs()
		var m mvar.MVar[int]
		_ = fifo.Run(bg, func(context.Context) error {
			_ = suspend.Here().Go(func() {
				for i := range b.N {
					_ = m.Put(ctx, i)
				}
			})
			for range b.N {
				_, _ = m.Take(ctx)
			}
			return nil
		})
	}
	b.Run("Braid", func(b *testing.B) { run(b, bg) })
	b.Run("Braid/ctx", func(b *testing.B) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		run(b, ctx)
	})
	b.Run("channel", func(b *testing.B) {
		b.ReportAllocs()
		c := make(chan int, 1)
		go func() {
			for i := range b.N {
				c <- i
			}
		}()
		for range b.N {
			<-c
		}
	})
	b.Run("channel/ctx", func(b *testing.B) {
		b.ReportAllocs()
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		c := make(chan int, 1)
		go func() {
			for i := range b.N {
				select {
				case c <- i:
				case <-ctx.Done():
				}
			}
		}()
		for range b.N {
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
	})
}

func BenchmarkSpawn(b *testing.B) {
	b.Run("Braid", func(b *testing.B) {
		b.ReportAllocs()
		_ = fifo.Run(bg, func(context.Context) error {
			s := suspend.Here()
			for range b.N {
				_ = s.Go(func() {})
				suspend.Yield()
			}
			return nil
		})
	})
	b.Run("go", func(b *testing.B) {
		b.ReportAllocs()
		var wg sync.WaitGroup
		for range b.N {
			wg.Add(1)
			go func() { wg.Done() }()
			wg.Wait()
		}
	})
}

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
