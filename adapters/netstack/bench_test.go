package netstack_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/suspend"
)

// A way says how connections are made, and where both ends run.
type way struct {
	name string
	on   func(b *testing.B) suspend.Spawner
	open func(on suspend.Spawner, a, b *netstack.Stack, serve func(net.Conn)) (dial func() net.Conn)
}

func loopOf(b *testing.B) suspend.Spawner {
	l := must(eventloop.New(eventloop.Options{}))
	b.Cleanup(func() { _ = l.Close() })
	return l
}

var ways = []way{
	{"goroutines", func(*testing.B) suspend.Spawner { return suspend.Goroutines }, openOurs},
	{"gonet", func(*testing.B) suspend.Spawner { return suspend.Goroutines }, openGonet},
	{"loop", loopOf, openOurs},
	{"kernel", loopOf, openKernel},
}

func openOurs(on suspend.Spawner, x, y *netstack.Stack, serve func(net.Conn)) func() net.Conn {
	ln := must(y.Listen("tcp", "10.0.0.2:80"))
	go ln.Serve(background, func(_ context.Context, c net.Conn) { serve(c) })
	return func() net.Conn { return must(x.Dial(background, "tcp", "10.0.0.2:80")) }
}

func openGonet(_ suspend.Spawner, x, y *netstack.Stack, serve func(net.Conn)) func() net.Conn {
	at := tcpip.FullAddress{Addr: tcpip.AddrFrom4([4]byte{10, 0, 0, 2}), Port: 80}
	ln := must(gonet.ListenTCP(y.Stack(), at, header.IPv4ProtocolNumber))
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return func() net.Conn { return must(gonet.DialTCP(x.Stack(), at, header.IPv4ProtocolNumber)) }
}

func openKernel(on suspend.Spawner, _, _ *netstack.Stack, serve func(net.Conn)) func() net.Conn {
	l := on.(*eventloop.Loop)
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	go ln.Serve(background, func(_ context.Context, c net.Conn) { serve(c) })
	return func() net.Conn { return must(l.Dial(background, "tcp", ln.Addr().String())) }
}

// BenchmarkEcho measures a round trip of 64 bytes on one of several connections. Both ends are tasks of one loop, or goroutines.
// Kernel is the loopback of the kernel, on a loop.
func BenchmarkEcho(b *testing.B) {
	for _, conns := range []int{1, 64} {
		for _, w := range ways {
			b.Run(fmt.Sprintf("%s/%d", w.name, conns), func(b *testing.B) {
				on := w.on(b)
				x, y := stacks(b, netstack.Options{On: on}, netstack.WireOptions{})
				dial := w.open(on, x, y, func(c net.Conn) { echoMessages(c) })
				var open []net.Conn
				for range conns {
					open = append(open, dial())
				}
				b.ResetTimer()
				used := processor.Used()
				var all sync.WaitGroup
				for i, c := range open {
					n := b.N / conns
					if i < b.N%conns {
						n++
					}
					all.Add(1)
					must(0, on.Go(func() {
						defer all.Done()
						buf := make([]byte, 64)
						for range n {
							must(c.Write(buf))
							must(io.ReadFull(c, buf))
						}
					}))
				}
				all.Wait()
				b.StopTimer()
				b.ReportMetric(float64(processor.Used()-used)/float64(b.N), "cpu-ns/op")
				for _, c := range open {
					_ = c.Close()
				}
			})
		}
	}
}

func echoMessages(c net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// BenchmarkStream sends 64 KB over one connection, over a wire as fast as memory. In BenchmarkLoss a packet takes 10 ms, and some
// are lost. These figures depend only on gVisor's TCP and on chance, so they should be equal for all ways.
func BenchmarkStream(b *testing.B) { stream(b, 0, 0, 0.001, 0.01) }
func BenchmarkLoss(b *testing.B)   { stream(b, 10*time.Millisecond, 0, 0.001, 0.01, 0.03, 0.1) }

func stream(b *testing.B, delay time.Duration, losses ...float64) {
	for _, loss := range losses {
		for _, w := range ways {
			if w.name == "kernel" && (loss > 0 || delay > 0) {
				continue
			}
			b.Run(fmt.Sprintf("%s/%v", w.name, loss*100), func(b *testing.B) {
				on := w.on(b)
				x, y := stacks(b, netstack.Options{On: on}, netstack.WireOptions{Loss: loss, Delay: delay, Seed: 1})
				received := make(chan struct{})
				dial := w.open(on, x, y, func(c net.Conn) {
					_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 1<<16))
					close(received)
				})
				c := dial()
				b.SetBytes(1 << 16)
				b.ResetTimer()
				used := processor.Used()
				must(0, on.Go(func() {
					buf := make([]byte, 1<<16)
					for range b.N {
						must(c.Write(buf))
					}
					_ = c.Close()
				}))
				<-received
				b.ReportMetric(float64(processor.Used()-used)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
