//go:build !braid_portable

package eventloop

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/suspend"
)

var errNotSupported = error(unix.EOPNOTSUPP)

// epollNow is epoll_wait without waiting, so the runtime need not know of it.
func epollNow(epfd int, events []unix.EpollEvent) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// listen opens the sockets of a Listener.
func listen(l *Loop, network, address string) (*Listener, error) {
	ln := &Listener{loop: l, network: network}
	var sa unix.Sockaddr
	family, n := unix.AF_UNIX, 1
	switch network {
	case "unix":
		sa, ln.addr = &unix.SockaddrUnix{Name: address}, &net.UnixAddr{Name: address, Net: network}
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
		if errors.Is(err, unix.EAFNOSUPPORT) && network == "tcp" && family == unix.AF_INET6 && i == 0 {
			family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: sa.(*unix.SockaddrInet6).Port}
			sys, err = listenSocket(family, sa, false, i, n)
		}
		if err == nil && i == 0 && network != "unix" {
			if sa, err = unix.Getsockname(sys); err == nil { // the others take its port
				ln.addr = addrOf(network, sa)
			} else {
				unix.Close(sys)
			}
		}
		if err == nil && network == "unix" && address != "" && address[0] != '@' {
			ln.unlink = address
		}
		var d *fd
		if err == nil {
			d, err = newFD(l.reactors[i], sys, ln.over)
		}
		if err != nil {
			_ = ln.Close()
			return nil, err
		}
		ln.fds = append(ln.fds, d)
	}
	return ln, nil
}

// listenAddr chooses as net.Listen does: a wildcard without a family takes both.
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

// listenSocket opens the i'th of n. The first is bound alone, so that a port which somebody else has is refused, and
// is then shared with the others.
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
		err = os.NewSyscallError("listen", unix.Listen(sys, 1<<15)) // as many as the system allows
	}
	return sys, err
}

// inheritable sets what a connection of the net package has by default; accepted ones have it from their listener.
func inheritable(sys int) {
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_ = unix.SetsockoptInt(sys, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15)
	_ = unix.SetsockoptInt(sys, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9)
}

// accept takes a connection from any of ds, for r. It has the turns of all, taken in order.
func accept(ln *Listener, cs contexts, ds []*fd, r *reactor) (*Conn, error) {
	taken := 0
	defer func() {
		for _, d := range ds[:taken] {
			d.rd.give()
		}
	}()
	for _, d := range ds {
		if err := d.rd.begin(cs); err != nil {
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

// accept is one try.
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
		default:
			// What was there still is, and no event will tell of it.
			d.rd.guard.Lock()
			d.rd.ready = true
			d.rd.guard.Unlock()
			return -1, nil, os.NewSyscallError("accept4", err)
		}
	}
}

// waitAny is side.wait on all of ds at once.
func waitAny(cs contexts, ds []*fd) error {
	if len(ds) == 1 {
		return ds[0].rd.wait(cs)
	}
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	v, err := suspend.Suspend(ctx, func(r suspend.Resumer[verdict]) (verdict, bool) {
		for _, d := range ds {
			if d.rd.publish(r) {
				break
			}
		}
		return undecided, false
	})
	for _, d := range ds {
		d.rd.ops = 0
		d.rd.forget()
	}
	if err != nil {
		return cs.explain(err)
	}
	return v.err()
}

// publish leaves r with s, or resumes it if there is no need to wait.
func (s *side) publish(r suspend.Resumer[verdict]) (resumed bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	v := s.failed()
	if v == undecided && s.ready {
		v = isReady
	}
	if v != undecided {
		r.Resume(v, nil)
		return true
	}
	s.waiter = r
	return false
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

func newConn(r *reactor, sys int, network string, local, remote net.Addr) (*Conn, error) {
	d, err := newFD(r, sys, nil)
	if err != nil {
		return nil, err
	}
	d.gapless = network != "unix"
	return &Conn{fd: d, network: network, local: local, remote: remote}, nil
}

// dial tries one address after the other.
func dial(l *Loop, cs contexts, network, address string) (*Conn, error) {
	if network == "unix" {
		return dialOne(l, cs, network, unix.AF_UNIX, &unix.SockaddrUnix{Name: address})
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
		if err == nil {
			err = e
		}
		if cs.err() != nil {
			break
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
		for err == unix.EINTR { // it goes on; connected waits for it
			err = unix.EINPROGRESS
		}
		if err == unix.EAGAIN { // a unix socket whose backlog is full
			unix.Close(sys)
			if err := l.Sleep(cs[0], delay); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil && err != unix.EINPROGRESS {
			unix.Close(sys)
			return nil, os.NewSyscallError("connect", err)
		}
		d, e := newFD(l.pick(), sys, nil)
		if e != nil {
			return nil, e
		}
		d.gapless = family != unix.AF_UNIX
		if err == unix.EINPROGRESS {
			if err := d.connected(cs); err != nil {
				_ = d.close()
				return nil, err
			}
		}
		c := &Conn{fd: d, network: network, remote: addrOf(network, sa)}
		if d.incref() {
			if local, err := unix.Getsockname(sys); err == nil {
				c.local = addrOf(network, local)
			}
			d.decref()
		}
		return c, nil
	}
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
