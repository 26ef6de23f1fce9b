package simulation_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/nemesis"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// at returns the byte at a position of a stream.
func at(stream, place int) byte { return byte(stream*31 + place*7 + place>>8) }

// Streams run in both directions, over a network with resets, holds, cuts and pauses. A reader has read a prefix of what was
// written, and all of it if the stream ended with io.EOF. Each kind of ending occurs.
func TestStormConservesTheStreams(t *testing.T) {
	endings := map[string]int{}
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 100 * time.Millisecond, Bandwidth: 1 << 20, Reset: 0.01, Refuse: 0.05})
		totals := map[string]int{} // the totals of the ended streams, by the addresses of writer and reader
		server := w.Node("server")
		ln := must(server.Listen("tcp", ":1"))
		_ = server.Go(func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_ = server.Go(func() { exchange(t, endings, totals, w, c, 1, 0) })
			}
		})
		names := []string{"client0", "client1", "client2"}
		calm := nemesis.Start(w, nemesis.Options{Nodes: append(names, "server"), Every: time.Second})
		err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for _, name := range names {
				n := w.Node(name)
				s.Go(n, func(ctx context.Context) error {
					for range 5 {
						if c, err := n.Dial(ctx, "tcp", "server:1"); err == nil {
							exchange(t, endings, totals, w, c, 0, 1)
						}
					}
					return nil
				})
			}
			return nil
		})
		calm()
		return err
	}, simulation.TestOptions{Seeds: 25, Options: simulation.Options{MaxTime: 48 * time.Hour}})
	require.Len(t, endings, 2, "%v", endings)
	for how, n := range endings {
		require.Greater(t, n, 50, how)
	}
}

// exchange writes one stream and reads another at the same time.
func exchange(t *testing.T, endings, totals map[string]int, w *simulation.World, c net.Conn, out, in int) {
	defer c.Close()
	wrote := false
	_ = suspend.Here().Go(func() {
		defer func() { wrote = true }()
		size := w.Rand().IntN(200_000)
		for place := 0; place < size; {
			p := make([]byte, min(1+w.Rand().IntN(30_000), size-place))
			for i := range p {
				p[i] = at(out, place+i)
			}
			n, err := c.Write(p)
			if place += n; err != nil {
				return
			}
		}
		totals[c.LocalAddr().String()+c.RemoteAddr().String()] = size
		_ = c.(halves).CloseWrite()
	})
	place, buf := 0, make([]byte, 10_000)
	for {
		n, err := c.Read(buf[:1+w.Rand().IntN(len(buf)-1)])
		for i, b := range buf[:n] {
			if b != at(in, place+i) {
				t.Errorf("byte %d of stream %d is %d", place+i, in, b)
			}
		}
		place += n
		if err != nil {
			if errors.Is(err, io.EOF) {
				endings["whole"]++
				require.Equal(t, totals[c.RemoteAddr().String()+c.LocalAddr().String()], place, "bytes are missing")
			} else {
				endings["broken"]++
			}
			break
		}
	}
	for !wrote {
		_ = suspend.Sleep(context.Background(), time.Second)
	}
}
