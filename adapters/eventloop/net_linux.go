//go:build !braid_portable

package eventloop

import (
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

var errNotSupported = error(unix.EOPNOTSUPP)

// inheritable sets the options that connections of package net have by default. An accepted connection inherits the
// options of its listener.
func inheritable(sys int) {
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_ = unix.SetsockoptInt(sys, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15)
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9)
}

func newConn(r *reactor, sys int, network string, local, remote net.Addr) (*Conn, error) {
	d, err := newFD(r, sys, nil)
	if err != nil {
		return nil, err
	}
	d.gapless, d.bounded, d.socket = network != "unix", true, network != "pipe"
	return &Conn{fd: d, network: network, local: local, remote: remote}, nil
}

func pipe(l *Loop) (r, w *Conn, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	on := l.pick()
	if r, err = newConn(on, p[0], "pipe", pipeAddr{}, pipeAddr{}); err != nil {
		unix.Close(p[1])
		return nil, nil, err
	}
	if w, err = newConn(on, p[1], "pipe", pipeAddr{}, pipeAddr{}); err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	return r, w, nil
}

func addrOf(network string, sa unix.Sockaddr) net.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: append(net.IP(nil), sa.Addr[:]...), Port: sa.Port}
	case *unix.SockaddrInet6:
		a := &net.TCPAddr{IP: append(net.IP(nil), sa.Addr[:]...), Port: sa.Port}
		if sa.ZoneId != 0 {
			a.Zone = zoneName(int(sa.ZoneId))
		}
		return a
	case *unix.SockaddrUnix:
		return &net.UnixAddr{Name: sa.Name, Net: network}
	}
	return &net.UnixAddr{Net: network}
}

func zoneName(id int) string {
	if i, err := net.InterfaceByIndex(id); err == nil {
		return i.Name
	}
	return strconv.Itoa(id)
}

func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	id, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(id)
}
