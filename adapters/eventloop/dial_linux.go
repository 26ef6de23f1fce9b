//go:build !braid_portable

package eventloop

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/suspend"
)

// dial tries the addresses of a name in order. If all of them fail, dial returns the first error.
func dial(l *Loop, cs contexts, network, address string) (*Conn, error) {
	if network == "unix" {
		return dialOne(l, cs, network, unix.AF_UNIX, &unix.SockaddrUnix{Name: address})
	}
	if isUDP(network) {
		return dialUDP(l, cs, network, address)
	}
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, net.UnknownNetworkError(network)
	}
	ips, port, err := resolve(cs, network, address)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		family, sa := unix.AF_INET6, unix.Sockaddr(nil)
		if ip = ip.Unmap(); ip.Is4() {
			family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
		} else {
			sa = &unix.SockaddrInet6{Port: port, Addr: ip.As16(), ZoneId: zoneID(ip.Zone())}
		}
		c, e := dialOne(l, cs, network, family, sa)
		if e == nil {
			return c, nil
		}
		if cause := cs.err(); cause != nil {
			return nil, cause
		}
		if err == nil {
			err = &net.OpError{Op: "dial", Net: network, Addr: addrOf(network, sa), Err: e}
		}
	}
	return nil, err
}

func resolve(cs contexts, network, address string) (ips []netip.Addr, port int, err error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, err
	}
	port, badPort := strconv.Atoi(service)
	badPort = orRange(badPort, port)
	if host == "" {
		ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if network == "tcp6" {
			ip = netip.IPv6Loopback()
		}
		ips = append(ips, ip)
	} else if ip, err := netip.ParseAddr(host); err == nil {
		if network == "tcp4" && !ip.Unmap().Is4() || network == "tcp6" && ip.Is4() {
			return nil, 0, &net.AddrError{Err: "no suitable address found", Addr: host}
		}
		ips = append(ips, ip)
	}
	if ips != nil && badPort == nil {
		return ips, port, nil
	}
	ctx := cs[0]
	e := suspend.Blocking(ctx, func() {
		if badPort != nil {
			if port, err = net.DefaultResolver.LookupPort(ctx, network, service); err != nil {
				return
			}
		}
		if ips == nil {
			ips, err = net.DefaultResolver.LookupNetIP(ctx, "ip"+network[len("tcp"):], host)
		}
	})
	if e == nil {
		e = err
	}
	if e != nil {
		if cause := cs.err(); cause != nil {
			e = cause
		}
	}
	return ips, port, e
}

func orRange(err error, port int) error {
	if err == nil && (port < 0 || port > 65535) {
		return strconv.ErrRange
	}
	return err
}

func dialOne(l *Loop, cs contexts, network string, family int, sa unix.Sockaddr) (*Conn, error) {
	for delay := time.Millisecond; ; delay = min(2*delay, 50*time.Millisecond) {
		sys, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, os.NewSyscallError("socket", err)
		}
		if family != unix.AF_UNIX {
			inheritable(sys)
		}
		err = unix.Connect(sys, sa)
		if err == unix.EINTR { // an interrupted connect continues, and the method connected waits for its end
			err = unix.EINPROGRESS
		}
		if err == unix.EAGAIN { // the backlog of a unix socket is full
			unix.Close(sys)
			switch err := l.pick().timers.sleep(cs[0], delay); err {
			case nil:
				continue
			case errLoopClosed:
				return nil, errClosed
			default:
				return nil, err
			}
		}
		if err != nil && err != unix.EINPROGRESS {
			unix.Close(sys)
			return nil, os.NewSyscallError("connect", err)
		}
		local, e := unix.Getsockname(sys) // the local address is known even if the connect has not finished
		if e != nil {
			unix.Close(sys)
			return nil, os.NewSyscallError("getsockname", e)
		}
		if isSame(local, sa) {
			unix.Close(sys)
			return nil, os.NewSyscallError("connect", unix.ECONNREFUSED)
		}
		c, e := newConn(l.pick(), sys, network, addrOf(network, local), addrOf(network, sa))
		if e != nil {
			return nil, e
		}
		if err == unix.EINPROGRESS {
			if err := c.fd.connected(cs); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
}

// isSame reports whether a connecting socket's own address is the address to which the socket connects. Such a socket
// would connect to itself. In this case no other socket listens on that address, because the system does not assign a
// port that is in use.
func isSame(local, remote unix.Sockaddr) bool {
	switch local := local.(type) {
	case *unix.SockaddrInet4:
		remote, ok := remote.(*unix.SockaddrInet4)
		return ok && local.Port == remote.Port && (local.Addr == remote.Addr || remote.Addr == [4]byte{})
	case *unix.SockaddrInet6:
		remote, ok := remote.(*unix.SockaddrInet6)
		return ok && local.Port == remote.Port && (local.Addr == remote.Addr || remote.Addr == [16]byte{})
	}
	return false
}
