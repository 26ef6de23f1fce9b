package netstack_test

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A sink records the numbers of packets.
type sink struct {
	stack.NetworkDispatcher
	mu  sync.Mutex
	got []int
	at  time.Time
}

func (s *sink) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := p.ToBuffer()
	data := b.Flatten()
	s.got, s.at = append(s.got, int(data[0])<<8|int(data[1])), time.Now()
}

// send sends n packets of 100 bytes over a wire. It returns the numbers of the packets that arrived, in order, and the total
// time.
func send(t *testing.T, n, want int, o netstack.WireOptions) ([]int, time.Duration) {
	t.Helper()
	a, b := netstack.Pair(o)
	s := new(sink)
	b.Attach(s)
	begun := time.Now()
	for i := range n {
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(append([]byte{byte(i >> 8), byte(i)}, make([]byte, 98)...))})
		p.NetworkProtocolNumber = header.IPv4ProtocolNumber
		var list stack.PacketBufferList
		list.PushBack(p)
		_, err := a.WritePackets(list)
		require.Nil(t, err)
		list.Reset()
	}
	schedtest.Eventually(t, "all have come", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.got) >= want && (want > 0 || netstack.InFlight(a) == 0)
	})
	a.Close()
	b.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got), s.at.Sub(begun)
}

// Each option has the effect that its name says, and the seed chooses the packets.
func TestWire(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	const n = 1000
	got, _ := send(t, n, n, netstack.WireOptions{})
	require.Len(t, got, n)
	require.True(t, slices.IsSorted(got))

	got, _ = send(t, n, 0, netstack.WireOptions{Loss: 0.1, Seed: 1})
	require.InDelta(t, n*9/10, len(got), n/20)
	same, _ := send(t, n, 0, netstack.WireOptions{Loss: 0.1, Seed: 1})
	require.Equal(t, got, same)
	other, _ := send(t, n, 0, netstack.WireOptions{Loss: 0.1, Seed: 2})
	require.NotEqual(t, got, other)

	got, _ = send(t, n, 0, netstack.WireOptions{Duplicate: 0.1, Seed: 1})
	require.InDelta(t, n*11/10, len(got), n/20)
	require.Len(t, slices.Compact(got), n)

	got, took := send(t, n, n, netstack.WireOptions{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond})
	require.True(t, slices.IsSorted(got), "jitter alone reorders nothing")
	require.GreaterOrEqual(t, took, 5*time.Millisecond)

	got, _ = send(t, n, n, netstack.WireOptions{Reorder: 0.1, Seed: 1})
	require.False(t, slices.IsSorted(got))
	slices.Sort(got)
	require.Len(t, slices.Compact(got), n)

	got, took = send(t, n, n, netstack.WireOptions{Bandwidth: 1 << 20})
	require.True(t, slices.IsSorted(got))
	require.GreaterOrEqual(t, took, time.Duration(n*100)*time.Second/(1<<20))
	got, _ = send(t, n, 1, netstack.WireOptions{Bandwidth: 1 << 15})
	require.Less(t, len(got), n, "what waits too long is lost")
}

// A packet without a delay does not wait for a timer, because a timer may be late by a millisecond.
func TestAWireWithoutDelay(t *testing.T) {
	x, y := netstack.Pair(netstack.WireOptions{})
	a := must(netstack.New(netstack.Options{Link: x, Addresses: prefixes("10.0.0.1/24")}))
	b := must(netstack.New(netstack.Options{Link: y, Addresses: prefixes("10.0.0.2/24")}))
	ln := must(b.Listen("tcp", ":80"))
	served := make(chan error, 1)
	go func() { served <- ln.Serve(background, echo) }()
	c := must(a.Dial(background, "tcp", "10.0.0.2:80"))
	for range 10 {
		must(c.Write(make([]byte, 100)))
		must(io.ReadFull(c, make([]byte, 100)))
	}
	require.False(t, netstack.Timed(x))
	require.False(t, netstack.Timed(y))
	must(0, c.Close())
	must(0, a.Close())
	must(0, b.Close())
	require.ErrorIs(t, <-served, net.ErrClosed)
}
