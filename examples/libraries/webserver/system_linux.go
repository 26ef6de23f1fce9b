package main

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/netstack"
)

const openDirect = syscall.O_DIRECT

// newStack creates a TUN device and a user-space TCP stack at its other end. The connections of the stack are tasks of loop.
func newStack(loop *eventloop.Loop, at string) (*netstack.Stack, error) {
	device, prefix, ok := strings.Cut(at, "=")
	if !ok {
		return nil, errors.New("-stack needs device=prefix, such as tun0=10.0.0.2/24")
	}
	address, err := netip.ParsePrefix(prefix)
	if err != nil {
		return nil, err
	}
	link, err := netstack.TUN(loop, device)
	if err != nil {
		return nil, err
	}
	stack, err := netstack.New(netstack.Options{Link: link, Addresses: []netip.Prefix{address}, On: loop})
	if err != nil {
		link.Close()
	}
	return stack, err
}
