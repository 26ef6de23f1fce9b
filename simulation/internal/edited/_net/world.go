// Package net serves the goroutines of a simulated node: the overlay adds this file to it.
//
// Listen, Dial and look-ups of such a goroutine go to the World of its node, through the functions in worldNet. The types are the usual types of package
// net, but the netFD of a connection has a simulated end instead of a descriptor. All other goroutines use the real network.
package net

import (
	"context"
	"internal/nettrace"
	"net/netip"
	"strings"
	"syscall"
	"time"
	_ "unsafe"
)

// worldNet has the functions of a simulation, which package simulation sets in chance.Net. Without a simulation they are nil. A local
// address is nil if the caller leaves it to the network. Addresses are a *TCPAddr, a *UDPAddr or a *UnixAddr, also in the results.
//
//go:linkname worldNet
var worldNet struct {
	here   func() uint32 // the number of the program that the calling goroutine belongs to, or 0 outside of a World
	dial   func(ctx context.Context, network string, local, remote Addr) (Conn, error)
	listen func(network string, local Addr) (Listener, error)
	packet func(network string, local, remote Addr) (PacketConn, error) // remote is nil without a Dial
	lookup func(name string) ([]netip.Addr, error)
	names  func(addr netip.Addr) []string
	addr   func() netip.Addr // the address of the node
}

func worldHere() bool { return worldProgram() != 0 }

// worldProgram is also for package net/http.
//
//go:linkname worldProgram
func worldProgram() uint32 {
	if worldNet.here == nil {
		return 0
	}
	return worldNet.here()
}

// A worldEnd is the simulated end of a netFD: a Conn, a Listener or a PacketConn of a World.
type worldEnd interface {
	Close() error
	SetDeadline(t time.Time) error
}

// worldNew is the end of a socket without an address.
type worldNew struct{}

func (worldNew) Close() error                { return nil }
func (worldNew) SetDeadline(time.Time) error { return nil }

// worldSocket is socket for a goroutine of a node. The descriptor is -1. A Control function is called with a RawConn
// whose Control does nothing.
func worldSocket(ctx context.Context, network string, family, sotype int, laddr, raddr sockaddr, control func(context.Context, string, string, syscall.RawConn) error) (*netFD, error) {
	fd := &netFD{family: family, sotype: sotype, net: network, world: worldNew{}}
	fd.pfd.Sysfd = -1
	local, err := fd.worldAddr(laddr)
	if err != nil {
		return nil, err
	}
	remote, err := fd.worldAddr(raddr)
	if err != nil {
		return nil, err
	}
	if control != nil {
		to := ""
		if raddr != nil {
			to = raddr.String()
		} else if laddr != nil {
			to = laddr.String()
		}
		if err := control(ctx, fd.ctrlNetwork(), to, newRawConn(fd)); err != nil {
			return nil, err
		}
	}
	call, stream := "bind", sotype == syscall.SOCK_STREAM || sotype == syscall.SOCK_SEQPACKET
	switch {
	case stream && raddr == nil:
		var l Listener
		if l, err = worldNet.listen(network, local); err == nil {
			fd.world, fd.laddr = l.(worldEnd), l.Addr()
		}
	case stream:
		call = "connect"
		var c Conn
		if c, err = worldNet.dial(ctx, network, local, remote); err == nil {
			fd.worldConn(c)
			fd.isConnected = true
		}
	case sotype == syscall.SOCK_DGRAM:
		var c PacketConn
		if c, err = worldNet.packet(network, local, remote); err == nil {
			fd.world, fd.laddr = c, c.LocalAddr()
			if fd.isConnected = remote != nil; fd.isConnected {
				fd.raddr = remote
			}
		}
	default:
		call, err = "socket", syscall.EPERM // only root may open raw sockets
	}
	if err != nil {
		return nil, worldError(call, mapErr(err))
	}
	return fd, nil
}

// worldConn gives fd a connection.
func (fd *netFD) worldConn(c Conn) { fd.world, fd.laddr, fd.raddr = c, c.LocalAddr(), c.RemoteAddr() }

// worldAddr returns a as a public type, and nil if there is no address.
func (fd *netFD) worldAddr(a sockaddr) (Addr, error) {
	if a == nil {
		return nil, nil
	}
	sa, err := a.sockaddr(fd.family)
	if err != nil || sa == nil {
		return nil, err
	}
	return fd.addrFunc()(sa), nil
}

// worldError returns the error of a World as the system call with this name would return it. The caller adds an OpError.
func worldError(call string, err error) error {
	if op, ok := err.(*OpError); ok {
		err = op.Err
	}
	return wrapSyscallError(call, err)
}

func (fd *netFD) worldAccept() (*netFD, error) {
	c, err := fd.world.(Listener).Accept()
	if err != nil {
		return nil, worldError("accept", err)
	}
	n := &netFD{family: fd.family, sotype: fd.sotype, net: fd.net}
	n.pfd.Sysfd = -1
	n.worldConn(c)
	return n, nil
}

func (fd *netFD) worldRead(call string, p []byte) (n int, from Addr, err error) {
	switch c := fd.world.(type) {
	case Conn:
		if n = fd.raw.rest(p); n == 0 {
			n, err = c.Read(p)
		}
	case PacketConn:
		n, from, err = c.ReadFrom(p)
	default:
		err = syscall.EINVAL
	}
	return n, from, worldError(call, err)
}

func (fd *netFD) worldReadInet4(call string, p []byte, from *syscall.SockaddrInet4) (int, error) {
	n, a, err := fd.worldRead(call, p)
	if a, ok := a.(*UDPAddr); ok {
		*from, _ = ipToSockaddrInet4(a.IP, a.Port)
	}
	return n, err
}

func (fd *netFD) worldReadInet6(call string, p []byte, from *syscall.SockaddrInet6) (int, error) {
	n, a, err := fd.worldRead(call, p)
	if a, ok := a.(*UDPAddr); ok {
		*from, _ = ipToSockaddrInet6(a.IP, a.Port, "")
	}
	return n, err
}

// worldWrite writes to an address, or to the peer of a connected socket if the address is nil.
func (fd *netFD) worldWrite(call string, p []byte, to Addr) (n int, err error) {
	if to == nil && fd.isConnected {
		to = fd.raddr
	}
	switch c := fd.world.(type) {
	case Conn:
		n, err = c.Write(p)
	case PacketConn:
		if err = syscall.EDESTADDRREQ; to != nil {
			n, err = c.WriteTo(p, to)
		}
	default:
		err = syscall.EINVAL
	}
	return n, worldError(call, err)
}

// worldWriteMsg is worldWrite without control messages, which a World does not have.
func (fd *netFD) worldWriteMsg(p, oob []byte, to Addr) (n int, err error) {
	if len(oob) > 0 {
		return 0, wrapSyscallError(writeMsgSyscallName, syscall.ENOTSUP)
	}
	return fd.worldWrite(writeMsgSyscallName, p, to)
}

func (fd *netFD) worldWriteBuffers(v *Buffers) (n int64, err error) {
	for len(*v) > 0 && err == nil {
		var k int
		k, err = fd.Write((*v)[0])
		n += int64(k)
		v.consume(int64(k))
	}
	return n, err
}

func (fd *netFD) worldClose() error {
	defer fd.raw.close()
	return worldError("close", fd.world.Close())
}

func (fd *netFD) worldShutdown(how int) error {
	c, ok := fd.world.(interface {
		CloseRead() error
		CloseWrite() error
	})
	switch {
	case !ok:
		return wrapSyscallError("shutdown", syscall.ENOTCONN)
	case how == syscall.SHUT_RD:
		return worldError("shutdown", c.CloseRead())
	}
	return worldError("shutdown", c.CloseWrite())
}

func (fd *netFD) worldDeadline(t time.Time, read, write bool) error {
	if c, ok := fd.world.(interface {
		SetReadDeadline(t time.Time) error
		SetWriteDeadline(t time.Time) error
	}); ok && !(read && write) {
		if read {
			return worldError("set", c.SetReadDeadline(t))
		}
		return worldError("set", c.SetWriteDeadline(t))
	}
	return worldError("set", fd.world.SetDeadline(t))
}

// worldLookup is the look-up of the addresses of a name.
func (r *Resolver) worldLookup(ctx context.Context, network, host string) (addrs []IPAddr, err error) {
	trace, _ := ctx.Value(nettrace.TraceKey{}).(*nettrace.Trace)
	if trace != nil && trace.DNSStart != nil {
		trace.DNSStart(host)
	}
	addrs, err = r.worldLookup1(ctx, network, host)
	if trace != nil && trace.DNSDone != nil {
		trace.DNSDone(ipAddrsEface(addrs), false, err)
	}
	return addrs, err
}

func (r *Resolver) worldLookup1(ctx context.Context, network, host string) (addrs []IPAddr, err error) {
	if err := ctx.Err(); err != nil {
		return nil, newDNSError(mapErr(err), host, "")
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		if network == "ip6" {
			return []IPAddr{{IP: IPv6loopback}}, nil
		}
		return []IPAddr{{IP: IPv4(127, 0, 0, 1)}}, nil
	}
	all, err := worldNet.lookup(strings.TrimSuffix(host, "."))
	for _, a := range all {
		addrs = append(addrs, IPAddr{IP: IP(a.AsSlice()).To16()})
	}
	switch {
	case err != nil:
		return nil, newDNSError(err, host, "")
	case len(addrs) > 0:
		return addrs, nil
	case r != nil && r.Dial != nil: // a server for names, which is a program of the World, too
		addrs, _, err = r.goLookupIPCNAMEOrder(ctx, network, host, hostLookupDNS, worldDNS())
		return addrs, err
	}
	return nil, newDNSError(errNoSuchHost, host, "")
}

// worldDNS replaces the system's configuration. The Dial of a Resolver decides which server it reaches.
func worldDNS() *dnsConfig {
	return &dnsConfig{servers: defaultNS[:1], ndots: 1, timeout: 5 * time.Second, attempts: 2, noReload: true}
}

// worldLookupCNAME is the look-up of the canonical name, which is the name itself for a node.
func (r *Resolver) worldLookupCNAME(ctx context.Context, name string) (string, error) {
	if all, err := worldNet.lookup(strings.TrimSuffix(name, ".")); err != nil || len(all) == 0 {
		if r != nil && r.Dial != nil {
			return r.goLookupCNAME(ctx, name, hostLookupDNS, worldDNS())
		}
		return "", newDNSError(errNoSuchHost, name, "")
	}
	return strings.TrimSuffix(name, ".") + ".", nil
}

// worldLookupAddr is the look-up of the names of an address.
func (r *Resolver) worldLookupAddr(ctx context.Context, addr string) ([]string, error) {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, newDNSError(err, addr, "")
	}
	if ip = ip.Unmap(); ip.IsLoopback() {
		return []string{"localhost"}, nil
	}
	if names := worldNet.names(ip); len(names) > 0 {
		return names, nil
	}
	if r != nil && r.Dial != nil {
		return r.goLookupPTR(ctx, addr, hostLookupDNS, worldDNS())
	}
	return nil, newDNSError(errNoSuchHost, addr, "")
}

// worldInterfaces returns the interfaces of a node: lo, and eth0 with the node's address.
func worldInterfaces(index int) (all []Interface, err error) {
	for _, i := range []Interface{
		{Index: 1, MTU: 65536, Name: "lo", Flags: FlagUp | FlagLoopback | FlagRunning},
		{Index: 2, MTU: 1500, Name: "eth0", HardwareAddr: worldHardware(), Flags: FlagUp | FlagBroadcast | FlagRunning},
	} {
		if index == 0 || index == i.Index {
			all = append(all, i)
		}
	}
	return all, nil
}

// worldHardware returns a local hardware address that has the node's address in it.
func worldHardware() HardwareAddr {
	a := worldNet.addr().As16()
	return append(HardwareAddr{2, 0}, a[12:]...)
}

func worldInterfaceAddrs(ifi *Interface) (all []Addr) {
	if ifi == nil || ifi.Index == 1 {
		all = append(all, &IPNet{IP: IPv4(127, 0, 0, 1), Mask: CIDRMask(8, 32)}, &IPNet{IP: IPv6loopback, Mask: CIDRMask(128, 128)})
	}
	if ifi == nil || ifi.Index == 2 {
		a := worldNet.addr()
		mask := CIDRMask(8, 32)
		if a.Is6() {
			mask = CIDRMask(64, 128)
		}
		all = append(all, &IPNet{IP: a.AsSlice(), Mask: mask})
	}
	return all
}

// worldRaw is a method of a RawConn. Setting an option succeeds, as it does by TCPConn.SetNoDelay: there is no descriptor to call the
// function with. A Read has the descriptor of a pipe.
func (c *rawConn) worldRaw(op string, f any) (err error) {
	conn, ok := c.fd.world.(Conn)
	switch f, reads := f.(func(uintptr) bool); {
	case op == "Control":
		return nil
	case op == "Read" && reads && ok:
		err = c.fd.raw.read(conn, f)
	default:
		err = syscall.ENOTSUP
	}
	if err != nil {
		err = &OpError{Op: "raw-" + strings.ToLower(op), Net: c.fd.net, Source: c.fd.laddr, Addr: c.fd.raddr, Err: worldError("read", err)}
	}
	return err
}
