//go:build unix

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

// BenchmarkServe compares Serve with the client's own Consume, with the same number of goroutines that acknowledge and wait for
// the answer.
func BenchmarkServe(b *testing.B) {
	for _, width := range []int{1, 8, 64} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/width=%d", way.name, width), func(b *testing.B) {
				begun := processor(b)
				way.take(b, b.N, width, func() { begun = processor(b); b.ResetTimer() })
				b.StopTimer()
				b.ReportMetric(float64(processor(b)-begun)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// ways lists two ways to take n messages and acknowledge them, with the given width.
var ways = []struct {
	name string
	take func(tb testing.TB, n, width int, begins func()) time.Duration
}{{"serve", serveAll}, {"consume", consumeAll}}

func serveAll(tb testing.TB, n, width int, begins func()) time.Duration {
	q, _ := filled(tb, n)
	ctx, stop := context.WithCancel(bg)
	defer stop()
	s := stage.New("s", func(context.Context, int) (int, error) { return 0, nil }, stage.Options{Width: width, Queue: width})
	begins()
	begun := time.Now()
	ended := make(chan error)
	go func() { ended <- queue.Serve(ctx, q, s, width) }()
	for q.Stats().Done < uint64(n) {
		waitABit()
	}
	took := time.Since(begun)
	stop()
	<-ended
	_ = s.Shutdown(bg)
	return took
}

func consumeAll(tb testing.TB, n, width int, begins func()) time.Duration {
	_, js := filled(tb, n)
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
	begins()
	begun := time.Now()
	consuming := must(c.Consume(func(m jetstream.Msg) { messages <- m }))
	for done.Load() < int64(n) {
		waitABit()
	}
	took := time.Since(begun)
	consuming.Stop()
	<-consuming.Closed()
	close(messages)
	all.Wait()
	return took
}

func waitABit() { time.Sleep(100 * time.Microsecond) }

// filled returns a queue with n messages.
func filled(tb testing.TB, n int) (*queue.Queue[int], jetstream.JetStream) {
	js, q := open(tb, queue.Options{Queue: n + 1, InFlight: 1000, Storage: jetstream.MemoryStorage})
	for i := range n {
		must(js.PublishAsync("stage.work", fmt.Append(nil, i), jetstream.WithStallWait(time.Minute)))
	}
	<-js.PublishAsyncComplete()
	return q, js
}

// processor returns the processor time of this process, which includes the server.
func processor(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
