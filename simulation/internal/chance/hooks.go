package chance

import (
	"context"
	"net"
	"net/netip"
	_ "unsafe"
)

// Net has the functions that package net calls with the overlay of simulation/overlay. Package simulation sets them once, in an init function.
// Without the overlay, nobody calls them. A local address may be nil. Addresses are a *net.TCPAddr, a *net.UDPAddr or a *net.UnixAddr, and so
// are the addresses of the results.
//
//go:linkname Net net.worldNet
var Net struct {
	Here   func() uint32 // the number of the program that the calling goroutine belongs to, or 0 outside of a World
	Dial   func(ctx context.Context, network string, local, remote net.Addr) (net.Conn, error)
	Listen func(network string, local net.Addr) (net.Listener, error)
	Packet func(network string, local, remote net.Addr) (net.PacketConn, error) // remote is nil without a Dial
	Lookup func(name string) ([]netip.Addr, error)
	Names  func(addr netip.Addr) []string
	Addr   func() netip.Addr // the address of the node
}
