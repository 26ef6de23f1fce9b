//go:build !braid_portable

package eventloop

import (
	"context"
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/suspend"
)

// listen opens the sockets of a Listener.
func listen(l *Loop, network, address string) (*Listener, error) {
	ln := &Listener{loop: l, network: network}
	var sa unix.Sockaddr
	family, n := unix.AF_UNIX, 1
	switch network {
	case "unix":
		sa = &unix.SockaddrUnix{Name: address}
	case "tcp", "tcp4", "tcp6":
		var at *net.TCPAddr
		var err error
		if e := suspend.Blocking(context.Background(), func() { at, err = net.ResolveTCPAddr(network, address) }); e != nil {
			return nil, e
		}
		if err != nil {
			return nil, err
		}
		family, sa = listenAddr(network, at)
		n = len(l.reactors)
	default:
		return nil, net.UnknownNetworkError(network)
	}
	for i := range n {
		sys, err := listenSocket(family, sa, network == "tcp6", i, n)
		if errors.Is(err, unix.EAFNOSUPPORT) && network == "tcp" && i == 0 {
			if sa4 := withoutIPv6(sa); sa4 != nil {
				family, sa = unix.AF_INET, sa4
				sys, err = listenSocket(family, sa, false, i, n)
			}
		}
		if err == nil && network == "unix" && address != "" && address[0] != '@' {
			ln.unlink = address
		}
		if err == nil && i == 0 {
			if sa, err = unix.Getsockname(sys); err == nil { // further sockets use the same port; the system may have named a unix socket
				ln.addr = addrOf(network, sa)
			} else {
				unix.Close(sys)
			}
		}
		var d *fd
		if err == nil {
			d, err = newFD(l.reactors[i], sys, ln.fdClosed)
		}
		if err != nil {
			_ = ln.Close()
			return nil, err
		}
		ln.fds = append(ln.fds, d)
	}
	return ln, nil
}

// listenAddr returns the family and the address of a listening socket. As in net.Listen, a tcp socket with the
// wildcard address accepts IPv4 and IPv6 connections.
func listenAddr(network string, at *net.TCPAddr) (family int, sa unix.Sockaddr) {
	if ip := at.IP.To4(); ip != nil || network == "tcp4" {
		sa := &unix.SockaddrInet4{Port: at.Port}
		copy(sa.Addr[:], ip)
		return unix.AF_INET, sa
	}
	sa6 := &unix.SockaddrInet6{Port: at.Port, ZoneId: zoneID(at.Zone)}
	copy(sa6.Addr[:], at.IP)
	return unix.AF_INET6, sa6
}

// withoutIPv6 returns the address that replaces sa on a system without IPv6. The IPv6 wildcard becomes the IPv4
// wildcard; for any other address the result is nil.
func withoutIPv6(sa unix.Sockaddr) unix.Sockaddr {
	if sa, ok := sa.(*unix.SockaddrInet6); ok && sa.Addr == [16]byte{} {
		return &unix.SockaddrInet4{Port: sa.Port}
	}
	return nil
}

// listenSocket opens the ith of n sockets. listenSocket binds the first socket without SO_REUSEPORT, so that a port in
// use is refused. Afterwards the option is set, so that the other sockets can share the port.
func listenSocket(family int, sa unix.Sockaddr, only6 bool, i, n int) (sys int, err error) {
	sys, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	socket := sys
	defer func() {
		if err != nil {
			unix.Close(socket)
		}
	}()
	set := func(level, option, value int) {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(sys, level, option, value))
		}
	}
	if family != unix.AF_UNIX {
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		inheritable(sys)
	}
	if family == unix.AF_INET6 {
		v := 0
		if only6 {
			v = 1
		}
		set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, v)
	}
	if i > 0 {
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err != nil {
		return -1, err
	}
	if err = os.NewSyscallError("bind", unix.Bind(sys, sa)); err != nil {
		return -1, err
	}
	if i == 0 && n > 1 {
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(sys, 1<<15)) // the system reduces the backlog to its limit
	}
	return sys, err
}

// accept accepts a connection from any of the descriptors ds and registers it with r. During the call, accept holds
// the turns of all these descriptors, acquired in order.
func accept(ln *Listener, cs contexts, ds []*fd, r *reactor) (*Conn, error) {
	taken := 0
	defer func() {
		for _, d := range ds[:taken] {
			d.rd.give()
		}
	}()
	for _, d := range ds {
		if err := d.rd.acquireTurn(cs); err != nil {
			return nil, err
		}
		taken++
	}
	first := 0
	if len(ds) > 1 {
		first = int(ln.turns.Add(1) % uint32(len(ds)))
	}
	for {
		for i := range ds {
			d := ds[(first+i)%len(ds)]
			sys, sa, err := d.accept()
			switch err {
			case nil:
				return ln.conn(r, sys, sa)
			case unix.EAGAIN:
			default:
				return nil, err
			}
		}
		if err := waitAny(cs, ds); err != nil {
			return nil, err
		}
	}
}

// accept tries once to accept a connection, without waiting.
func (d *fd) accept() (sys int, sa unix.Sockaddr, err error) {
	d.rd.mayBeReady()
	for {
		if !d.incref() {
			return -1, nil, errClosed
		}
		sys, sa, err = unix.Accept4(d.sys, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		d.decref()
		switch err {
		case nil, unix.EAGAIN:
			return sys, sa, err
		case unix.EINTR, unix.ECONNABORTED:
		default: // the connection is still queued, and the next accept tries again before it waits
			return -1, nil, os.NewSyscallError("accept4", err)
		}
	}
}

func (ln *Listener) conn(r *reactor, sys int, remote unix.Sockaddr) (*Conn, error) {
	local := ln.addr
	if a, ok := local.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		if sa, err := unix.Getsockname(sys); err == nil {
			local = addrOf(ln.network, sa)
		}
	}
	return newConn(r, sys, ln.network, local, addrOf(ln.network, remote))
}
