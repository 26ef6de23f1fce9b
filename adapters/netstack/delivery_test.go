package netstack_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A router answers a SYN by ICMP. If the wire delivered the answer in the sender's call, it would block on the endpoint's lock.
func TestAnAnswerUnderTheLock(t *testing.T) {
	x, y := netstack.Pair(netstack.WireOptions{})
	a := must(netstack.New(netstack.Options{Link: x, Addresses: prefixes("10.0.0.1/24")}))
	b := must(netstack.New(netstack.Options{Link: y, Addresses: prefixes("10.0.0.2/24"), Routes: prefixes("10.0.0.0/24")}))
	a.Stack().SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, Gateway: tcpip.AddrFrom4([4]byte{10, 0, 0, 2}), NIC: 1}})
	require.Nil(t, b.Stack().SetForwardingDefaultAndAllNICs(ipv4.ProtocolNumber, true))
	defer schedtest.Within(t, schedtest.Deadline)()
	ctx, cancel := context.WithTimeout(background, 2*time.Second)
	defer cancel()
	_, err := a.Dial(ctx, "tcp", "10.9.9.9:80")
	require.Error(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// A slowDispatcher takes a long time for packet 1.
type slowDispatcher struct {
	mu    sync.Mutex
	order []int
}

func (d *slowDispatcher) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	b := p.ToBuffer()
	n := int(b.Flatten()[0])
	b.Release()
	if n == 1 {
		time.Sleep(50 * time.Millisecond) // like a goroutine that is preempted
	}
	d.mu.Lock()
	d.order = append(d.order, n)
	d.mu.Unlock()
}
func (d *slowDispatcher) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// Only one goroutine delivers at a time, so that no packet overtakes another.
func TestAWireKeepsTheOrder(t *testing.T) {
	x, y := netstack.Pair(netstack.WireOptions{Delay: time.Millisecond})
	d := new(slowDispatcher)
	y.Attach(d)
	send := func(n byte) {
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData([]byte{n})})
		var l stack.PacketBufferList
		l.PushBack(p)
		_, _ = x.WritePackets(l)
		p.DecRef()
	}
	send(1)
	time.Sleep(10 * time.Millisecond)
	send(2)
	schedtest.Eventually(t, "both have come", func() bool { return netstack.InFlight(x) == 0 })
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Equal(t, []int{1, 2}, d.order)
	x.Close()
	y.Close()
}
