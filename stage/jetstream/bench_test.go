package jetstream_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
	queue "github.com/braidgo/braid/stage/jetstream"
)

// BenchmarkServe has the client's own Consume beside it, with the same number of goroutines that acknowledge and wait for the answer.
func BenchmarkServe(b *testing.B) {
	for _, width := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("serve/width=%d", width), func(b *testing.B) {
			q, _ := filled(b)
			var done atomic.Int64
			ctx, stop := context.WithCancel(bg)
			defer stop()
			s := stage.New("s", func(context.Context, int) (int, error) { return 0, nil }, stage.Options{Width: width, Queue: width})
			report := processor(b)
			b.ResetTimer()
			ended := make(chan error)
			go func() { ended <- queue.Serve(ctx, q, s, width) }()
			for done.Load() < int64(b.N) {
				waitABit()
				done.Store(int64(q.Stats().Done))
			}
			b.StopTimer()
			report()
			stop()
			<-ended
			_ = s.Close(bg)
		})
		b.Run(fmt.Sprintf("consume/width=%d", width), func(b *testing.B) {
			_, js := filled(b)
			c := must(js.Consumer(bg, "work", "work"))
			var done atomic.Int64
			messages := make(chan jetstream.Msg)
			var all sync.WaitGroup
			for range width {
				all.Go(func() {
					for m := range messages {
						if m.DoubleAck(bg) == nil {
							done.Add(1)
						}
					}
				})
			}
			report := processor(b)
			b.ResetTimer()
			consuming := must(c.Consume(func(m jetstream.Msg) { messages <- m }))
			for done.Load() < int64(b.N) {
				waitABit()
			}
			b.StopTimer()
			report()
			consuming.Stop()
			<-consuming.Closed()
			close(messages)
			all.Wait()
		})
	}
}

func waitABit() { time.Sleep(100 * time.Microsecond) }

// filled returns a queue with b.N messages.
func filled(b *testing.B) (*queue.Queue[int], jetstream.JetStream) {
	js, q := open(b, queue.Options{Queue: b.N + 1, InFlight: 1000, Storage: jetstream.MemoryStorage})
	for i := range b.N {
		must(js.PublishAsync("stage.work", fmt.Append(nil, i), jetstream.WithStallWait(time.Minute)))
	}
	<-js.PublishAsyncComplete()
	return q, js
}

// processor reports the processor time of this process for each message, the server's included.
func processor(b *testing.B) (report func()) {
	now := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	begun := now()
	return func() { b.ReportMetric(float64(now()-begun)/float64(b.N), "cpu-ns/op") }
}
