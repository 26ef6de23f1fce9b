package eventloop_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/processor"
)

// echoMessages is the handler of both sides of the comparison.
func echoMessages(_ context.Context, c net.Conn) {
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

// BenchmarkEcho measures a round trip of 64 bytes: with the handler on a loop, and with a goroutine for each connection. The
// clients are goroutines on package net in both cases.
func BenchmarkEcho(b *testing.B) {
	for _, conns := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("Braid/%d", conns), func(b *testing.B) {
			l := must(eventloop.New(eventloop.Options{}))
			defer l.Close()
			ln := must(l.Listen("tcp", "127.0.0.1:0"))
			go ln.Serve(context.Background(), echoMessages)
			clients(b, ln.Addr().String(), conns)
		})
		b.Run(fmt.Sprintf("net/%d", conns), func(b *testing.B) {
			ln := must(net.Listen("tcp", "127.0.0.1:0"))
			defer ln.Close()
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() { defer c.Close(); echoMessages(context.Background(), c) }()
				}
			}()
			clients(b, ln.Addr().String(), conns)
		})
	}
}

// clients runs the clients in another process, which reports the time of a round trip.
func clients(b *testing.B, addr string, conns int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("EVENTLOOP_CLIENTS=%s %d %d", addr, conns, b.N))
	before := processor.Used()
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err, string(out))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(processor.Used()-before)/float64(b.N), "cpu-ns/op")
	took, err := strconv.ParseInt(string(out), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(took)/float64(b.N), "ns/trip")
}

func TestMain(m *testing.M) {
	if job := os.Getenv("EVENTLOOP_CLIENTS"); job != "" {
		var addr string
		var conns, n int
		must(fmt.Sscan(job, &addr, &conns, &n))
		fmt.Print(int64(runClients(addr, conns, n)))
		return
	}
	if ln, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // makes the runtime open its two descriptors
		ln.Close()
	}
	os.Exit(m.Run())
}

func runClients(addr string, conns, total int) time.Duration {
	var open []net.Conn
	for range conns {
		open = append(open, must(net.Dial("tcp", addr)))
	}
	start := time.Now()
	var all sync.WaitGroup
	for i, c := range open {
		n := total / conns
		if i < total%conns {
			n++
		}
		all.Go(func() {
			defer c.Close()
			buf := make([]byte, 64)
			for range n {
				must(c.Write(buf))
				must(io.ReadFull(c, buf))
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

// A file of 1 MB is sent to a peer that reads with package net: inside the kernel, and through a buffer.
func BenchmarkFile(b *testing.B) {
	for _, name := range []string{"sendfile", "copy"} {
		b.Run(name, func(b *testing.B) {
			l := open(b, eventloop.Options{})
			ln := must(net.Listen("tcp", "127.0.0.1:0"))
			defer ln.Close()
			c := must(l.Dial(context.Background(), "tcp", ln.Addr().String()))
			peer := must(ln.Accept())
			defer peer.Close()
			f := file(b, make([]byte, 1<<20))
			b.SetBytes(1 << 20)
			go func() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{peer}, make([]byte, 1<<18))
			}()
			task(b, l, func() {
				defer c.Close()
				var w io.Writer = c
				if name == "copy" {
					w = struct{ io.Writer }{c}
				}
				for range b.N {
					must(f.Seek(0, io.SeekStart))
					must(io.Copy(w, struct{ *os.File }{f}))
				}
			})
		})
	}
}
