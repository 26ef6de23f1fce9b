//go:build !braid_portable

package eventloop_test

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// Some clients send more than the server can handle. The other clients wait at most for a turn of the reactor, however many such
// clients there are. Otherwise they would wait for 64 operations of each such client, which is 0.8 s in an HTTP server. The test
// counts operations, because times say little on a busy machine.
func TestAFloodLeavesOthersTheirTurn(t *testing.T) {
	const floods, rounds, takes = 8, 20, time.Millisecond / 2
	l := open(t, eventloop.Options{HandOver: -1}) // no hand-overs: a reactor does not take turns with tasks outside it
	var handled atomic.Int64
	var senders sync.WaitGroup
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		served <- ln.Serve(ctx, func(_ context.Context, c net.Conn) { // stock code that does not yield by itself
			in := bufio.NewReaderSize(c, 512)
			for {
				if _, err := in.ReadByte(); err != nil {
					return
				}
				_, _ = in.Discard(in.Buffered())
				for began := time.Now(); time.Since(began) < takes; {
				}
				handled.Add(1)
			}
		})
	}()
	flood := make([]byte, 64<<10)
	for range floods {
		c := must(net.Dial("tcp", ln.Addr().String()))
		senders.Go(func() {
			defer c.Close()
			for err := error(nil); err == nil; { // until the handler ends
				_, err = c.Write(flood)
			}
		})
	}
	there, back, err := l.Pipe()
	must(0, err)
	hither, thither, err := l.Pipe()
	must(0, err)
	var longest, total int64
	must(0, l.Go(func() { // the server of another client
		buf := make([]byte, 1)
		for {
			if _, err := there.Read(buf); err != nil {
				return
			}
			must(thither.Write(buf))
		}
	}))
	task(t, l, func() {
		buf := make([]byte, 1)
		for handled.Load() < 100 { // until all senders are under way
			must(0, suspend.Sleep(ctx, time.Millisecond))
		}
		for range rounds {
			before := handled.Load()
			must(back.Write(buf))
			must(hither.Read(buf))
			n := handled.Load() - before
			longest, total = max(longest, n), total+n
		}
	})
	cancel()
	within(t, func() { <-served; senders.Wait() })
	must(0, there.Close())
	t.Logf("%d operations of the flood during %d round trips, %d at most during one", total, rounds, longest)
	if total == 0 {
		t.Error("uncovered: no flood")
	}
	if longest > 2*floods { // two turns: one for each direction
		t.Errorf("a round trip took as long as %d operations of the flood", longest)
	}
}

// A request needs three operations, and a turn with all clients lasts several milliseconds. If a task had to pause because others
// have used up the turn, its client would wait twenty times as long as the others: in a web server with 256 clients, 180 ms
// instead of 8. The test counts answers to other clients.
func TestBusyConnectionsWaitForEachOtherEqually(t *testing.T) {
	const clients, rounds, takes = 200, 40, 30 * time.Microsecond
	l := open(t, eventloop.Options{HandOver: -1})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	var answers atomic.Int64
	served := make(chan error, 1)
	go func() {
		served <- ln.Serve(context.Background(), func(_ context.Context, c net.Conn) {
			first, rest := make([]byte, 1), make([]byte, 8)
			for {
				if _, err := c.Read(first); err != nil {
					return
				}
				must(c.Read(rest))
				for began := time.Now(); time.Since(began) < takes; {
				}
				answers.Add(1)
				must(c.Write(first))
			}
		})
	}()
	var all sync.WaitGroup
	longest := make([]int64, clients)
	for i := range clients {
		c := must(net.Dial("tcp", ln.Addr().String()))
		all.Go(func() {
			defer c.Close()
			buf := []byte("ask")
			for range rounds {
				before := answers.Load()
				must(c.Write(buf))
				must(c.Read(buf[:1]))
				longest[i] = max(longest[i], answers.Load()-before)
			}
		})
	}
	within(t, all.Wait)
	must(0, ln.Close())
	within(t, func() { <-served })
	t.Logf("at most %d answers to others during one wait, %d clients", slices.Max(longest), clients)
	if slices.Max(longest) > 10*clients {
		t.Error("a client has waited too long")
	}
}
