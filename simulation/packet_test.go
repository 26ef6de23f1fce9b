package simulation_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// socket opens a socket for packets.
func socket(t *testing.T, n *simulation.Node, address string) net.PacketConn {
	c, err := n.ListenPacket("udp", address)
	require.NoError(t, err)
	return c
}

// send sends n datagrams with consecutive numbers.
func send(t *testing.T, c net.PacketConn, to string, n int) {
	at, err := simulation.UDPAddr(to)
	require.NoError(t, err)
	for i := range n {
		_, err := c.WriteTo(fmt.Append(nil, i), at)
		require.NoError(t, err)
	}
}

// drain reads all datagrams that arrive within a second.
func drain(c net.PacketConn) (all []string) {
	_ = c.SetDeadline(suspend.Now().Add(time.Second))
	for p := make([]byte, 8); ; {
		n, _, err := c.ReadFrom(p)
		if err != nil {
			return all
		}
		all = append(all, string(p[:n]))
	}
}

// The table has the faults of datagrams, each alone, with some seeds.
func TestPackets(t *testing.T) {
	for name, x := range map[string]struct {
		faults                  simulation.Faults
		lost, doubled, overtook bool
	}{
		"none":      {faults: simulation.Faults{MinLatency: time.Millisecond, MaxLatency: time.Millisecond}},
		"loss":      {faults: simulation.Faults{Loss: 0.2}, lost: true},
		"double":    {faults: simulation.Faults{Double: 0.2}, doubled: true},
		"reorder":   {faults: simulation.Faults{MaxLatency: time.Millisecond}, overtook: true},
		"bandwidth": {faults: simulation.Faults{Bandwidth: 1000}},
	} {
		total := map[string]int{}
		for seed := range uint64(10) {
			r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
				w.SetFaults(x.faults)
				a, b := socket(t, w.Node("a"), ":0"), socket(t, w.Node("b"), ":53")
				send(t, a, "b:53", 20)
				got := drain(b)
				if counted := slices.Compact(slices.Sorted(slices.Values(got))); len(counted) < 20 {
					total["lost"] += 20 - len(counted)
				} else if len(got) > len(counted) {
					total["doubled"] += len(got) - len(counted)
				}
				if !slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }) {
					total["overtook"]++
				}
				return nil
			}, simulation.Options{Seed: seed + 1})
			require.NoError(t, r.Err)
		}
		require.Equal(t, x.lost, total["lost"] > 10, "%s: %v", name, total)
		require.Equal(t, x.doubled, total["doubled"] > 10, "%s: %v", name, total)
		require.Equal(t, x.overtook, total["overtook"] > 5, "%s: %v", name, total)
		if x.lost || x.doubled {
			require.Less(t, total["lost"]+total["doubled"], 80, name)
		}
	}
}

// A datagram does not arrive in these cases. The table has the results of the sockets.
func TestPacketsThatAreLost(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := w.Node("a"), w.Node("b")
		from, to := socket(t, a, ":0"), socket(t, b, ":53")
		arrive := func(at string) int { send(t, from, at, 1); return len(drain(to)) }
		require.Equal(t, 1, arrive("b:53"))
		require.Equal(t, 0, arrive("b:54"))
		link := w.Link("a", "b")
		for _, harm := range []func(){func() { link.Hold() }, link.Cut, func() { link.Hold("a") }} {
			harm()
			require.Equal(t, 0, arrive("b:53"))
			w.Heal()
			require.Equal(t, 1, arrive("b:53"), "lost datagrams do not arrive")
		}
		link.Hold("b")
		require.Equal(t, 1, arrive("b:53"))
		big := make([]byte, 65507)
		at, _ := simulation.UDPAddr("b:53")
		for range 3 {
			_, err := from.WriteTo(big, at)
			require.NoError(t, err)
		}
		require.Len(t, drain(to), 1, "a socket with 64 KB has no room")
		_, err := from.WriteTo(make([]byte, 65508), at)
		require.ErrorIs(t, err, syscall.EMSGSIZE)
		at, _ = simulation.UDPAddr("c:53")
		_, err = from.WriteTo(nil, at)
		var none *net.DNSError
		require.ErrorAs(t, err, &none)
		_, err = b.ListenPacket("udp", ":53")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = b.Listen("tcp", ":53")
		require.NoError(t, err, "TCP has other ports")
		_, err = b.ListenPacket("tcp", ":54")
		require.Error(t, err)
		local := socket(t, b, "localhost:54")
		send(t, from, "b:54", 1)
		send(t, to, "localhost:54", 1)
		_, who, err := local.ReadFrom(big)
		require.NoError(t, err)
		require.Equal(t, "udp b:53", who.Network()+" "+who.String())
		require.Empty(t, drain(local))
		_, _, err = local.ReadFrom(big)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		w.Node("b").Crash()
		_, _, err = to.ReadFrom(big)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = to.WriteTo(nil, from.LocalAddr())
		require.ErrorIs(t, err, net.ErrClosed)
		w.Node("b").Restart(func(context.Context) {})
		to = socket(t, b, ":53")
		require.Equal(t, 1, arrive("b:53"))
		require.NoError(t, to.Close())
		require.ErrorIs(t, to.Close(), net.ErrClosed)
		require.NoError(t, socket(t, b, ":53").Close())
		return nil
	})
}
