//go:build !braid_portable

package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A stockSocket is a file or a socket of the standard library whose descriptor can be adopted.
type stockSocket interface {
	syscall.Conn
	io.Closer
}

// adopt registers a duplicate of stock's descriptor with r, and closes stock. If adopt fails, stock stays open.
func adopt(r *reactor, stock stockSocket) (*fd, error) {
	raw, err := stock.SyscallConn()
	if err != nil {
		return nil, err
	}
	sys := -1
	if e := raw.Control(func(old uintptr) {
		if sys, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(sys, true)
		}
	}); e != nil {
		err = e
	}
	if err != nil {
		if sys >= 0 {
			unix.Close(sys)
		}
		return nil, os.NewSyscallError("fcntl", err)
	}
	d, err := newFD(r, sys, nil)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			err = errors.ErrUnsupported // epoll returns EPERM if it cannot wait for the descriptor
		}
		return nil, err
	}
	kind, err := unix.GetsockoptInt(sys, unix.SOL_SOCKET, unix.SO_TYPE)
	d.socket, d.packets = err == nil, err == nil && kind != unix.SOCK_STREAM
	d.bounded = isStream(sys)
	own, _ := unix.Getsockname(sys)
	_, d.inet4 = own.(*unix.SockaddrInet4)
	_ = stock.Close()
	return d, nil
}

// isStream reports whether sys is a pipe, a FIFO or a stream socket.
func isStream(sys int) bool {
	var s unix.Stat_t
	if unix.Fstat(sys, &s) != nil {
		return false
	}
	kind, err := unix.GetsockoptInt(sys, unix.SOL_SOCKET, unix.SO_TYPE)
	return s.Mode&unix.S_IFMT == unix.S_IFIFO || err == nil && kind == unix.SOCK_STREAM
}

func (d *fd) readPacket(p []byte) (n int, from net.Addr, err error) {
	var sa unix.Sockaddr
	e := d.raw(&d.rd, nil, func(sys uintptr) bool {
		for {
			if n, sa, err = unix.Recvfrom(int(sys), p, unix.MSG_DONTWAIT); err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	if e != nil {
		return 0, nil, e
	}
	if err != nil {
		return 0, nil, os.NewSyscallError("recvfrom", err)
	}
	return n, udpAddr(sa), nil
}

func (d *fd) writePacket(p []byte, to *net.UDPAddr) (int, error) {
	var sa unix.Sockaddr
	if d.inet4 {
		ip := to.IP.To4()
		if ip == nil && len(to.IP) > 0 {
			return 0, &net.AddrError{Err: "non-IPv4 address", Addr: to.String()}
		}
		sa4 := &unix.SockaddrInet4{Port: to.Port}
		copy(sa4.Addr[:], ip)
		sa = sa4
	} else {
		sa6 := &unix.SockaddrInet6{Port: to.Port, ZoneId: zoneID(to.Zone)}
		copy(sa6.Addr[:], to.IP.To16())
		sa = sa6
	}
	var err error
	e := d.raw(&d.wr, nil, func(sys uintptr) bool {
		for {
			if err = unix.Sendto(int(sys), p, unix.MSG_DONTWAIT, sa); err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	if e != nil {
		return 0, e
	}
	if err != nil {
		return 0, os.NewSyscallError("sendto", err)
	}
	return len(p), nil
}

func udpAddr(sa unix.Sockaddr) net.Addr {
	if a, ok := addrOf("udp", sa).(*net.TCPAddr); ok {
		return (*net.UDPAddr)(a)
	}
	return nil
}
