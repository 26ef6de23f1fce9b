package edited

// netEdits make package net ask _net/world.go what to do for a goroutine of a node, and for a netFD with a simulated end.
var netEdits = []edit{
	// Sockets, and their families, which must not depend on the machine.
	{file: "net/fd_posix.go", old: "type netFD struct {\n", changed: "type netFD struct {\n	world worldEnd // a simulated end, or nil\n	raw   worldPipe\n\n"},
	{file: "net/sock_posix.go", old: "	s, err := sysSocket(family, sotype, proto)\n", changed: "	if worldHere() {\n		return worldSocket(ctx, net, family, sotype, laddr, raddr, ctrlCtxFn)\n	}\n	s, err := sysSocket(family, sotype, proto)\n"},
	{file: "net/ipsock.go", old: "	ipStackCaps.Once.Do(ipStackCaps.probe)\n", changed: "	if worldHere() {\n		return true\n	}\n	ipStackCaps.Once.Do(ipStackCaps.probe)\n", times: 3, elsewhere: true},
	{file: "net/mptcpsock_linux.go", old: "func supportsMultipathTCP() bool {\n", changed: "func supportsMultipathTCP() bool {\n	if worldHere() {\n		return false\n	}\n"},
	{file: "net/unixsock_posix.go", old: "ln.path[0] != '@' && ln.unlink {", changed: "ln.path[0] != '@' && ln.unlink && ln.fd.world == nil {"},

	// The methods of a netFD.
	{file: "net/fd_posix.go", old: "func (fd *netFD) Close() error {\n", changed: "func (fd *netFD) Close() error {\n	if fd.world != nil {\n		return fd.worldClose()\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) shutdown(how int) error {\n", changed: "func (fd *netFD) shutdown(how int) error {\n	if fd.world != nil {\n		return fd.worldShutdown(how)\n	}\n"},
	{file: "net/fd_unix.go", old: "func (fd *netFD) accept() (netfd *netFD, err error) {\n", changed: "func (fd *netFD) accept() (netfd *netFD, err error) {\n	if fd.world != nil {\n		return fd.worldAccept()\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) Read(p []byte) (n int, err error) {\n", changed: "func (fd *netFD) Read(p []byte) (n int, err error) {\n	if fd.world != nil {\n		n, _, err = fd.worldRead(readSyscallName, p)\n		return n, err\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) readFrom(p []byte) (n int, sa syscall.Sockaddr, err error) {\n", changed: `func (fd *netFD) readFrom(p []byte) (n int, sa syscall.Sockaddr, err error) {
	if fd.world != nil {
		n, _, err = fd.worldRead(readFromSyscallName, p)
		return n, nil, err
	}
`},
	{file: "net/fd_posix.go", old: "func (fd *netFD) readFromInet4(p []byte, from *syscall.SockaddrInet4) (n int, err error) {\n", changed: "func (fd *netFD) readFromInet4(p []byte, from *syscall.SockaddrInet4) (n int, err error) {\n	if fd.world != nil {\n		return fd.worldReadInet4(readFromSyscallName, p, from)\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) readFromInet6(p []byte, from *syscall.SockaddrInet6) (n int, err error) {\n", changed: "func (fd *netFD) readFromInet6(p []byte, from *syscall.SockaddrInet6) (n int, err error) {\n	if fd.world != nil {\n		return fd.worldReadInet6(readFromSyscallName, p, from)\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) readMsg(p []byte, oob []byte, flags int) (n, oobn, retflags int, sa syscall.Sockaddr, err error) {\n", changed: `func (fd *netFD) readMsg(p []byte, oob []byte, flags int) (n, oobn, retflags int, sa syscall.Sockaddr, err error) {
	if fd.world != nil {
		n, _, err = fd.worldRead(readMsgSyscallName, p)
		return n, 0, 0, nil, err
	}
`},
	{file: "net/fd_posix.go", old: "func (fd *netFD) readMsgInet4(p []byte, oob []byte, flags int, sa *syscall.SockaddrInet4) (n, oobn, retflags int, err error) {\n", changed: `func (fd *netFD) readMsgInet4(p []byte, oob []byte, flags int, sa *syscall.SockaddrInet4) (n, oobn, retflags int, err error) {
	if fd.world != nil {
		n, err = fd.worldReadInet4(readMsgSyscallName, p, sa)
		return n, 0, 0, err
	}
`},
	{file: "net/fd_posix.go", old: "func (fd *netFD) readMsgInet6(p []byte, oob []byte, flags int, sa *syscall.SockaddrInet6) (n, oobn, retflags int, err error) {\n", changed: `func (fd *netFD) readMsgInet6(p []byte, oob []byte, flags int, sa *syscall.SockaddrInet6) (n, oobn, retflags int, err error) {
	if fd.world != nil {
		n, err = fd.worldReadInet6(readMsgSyscallName, p, sa)
		return n, 0, 0, err
	}
`},
	{file: "net/fd_posix.go", old: "func (fd *netFD) Write(p []byte) (nn int, err error) {\n", changed: "func (fd *netFD) Write(p []byte) (nn int, err error) {\n	if fd.world != nil {\n		return fd.worldWrite(writeSyscallName, p, nil)\n	}\n"},
	{file: "net/fd_posix.go", old: `(?m)^func \(fd \*netFD\) writeTo(?:Inet4|Inet6)\(p \[\]byte, sa .*\{\n`, changed: "$0	if fd.world != nil {\n		return fd.worldWrite(writeToSyscallName, p, sockaddrToUDP(sa))\n	}\n", times: 2, pattern: true},
	{file: "net/fd_posix.go", old: "func (fd *netFD) writeMsg(p []byte, oob []byte, sa syscall.Sockaddr) (n int, oobn int, err error) {\n", changed: `func (fd *netFD) writeMsg(p []byte, oob []byte, sa syscall.Sockaddr) (n int, oobn int, err error) {
	if fd.world != nil {
		n, err = fd.worldWriteMsg(p, oob, fd.addrFunc()(sa))
		return n, 0, err
	}
`},
	{file: "net/fd_posix.go", old: `(?m)^func \(fd \*netFD\) writeMsg(?:Inet4|Inet6)\(p \[\]byte, oob \[\]byte, sa .*\{\n`, changed: `$0	if fd.world != nil {
		var to Addr
		if sa != nil {
			to = sockaddrToUDP(sa)
		}
		n, err = fd.worldWriteMsg(p, oob, to)
		return n, 0, err
	}
`, times: 2, pattern: true},
	{file: "net/writev_unix.go", old: "func (fd *netFD) writeBuffers(v *Buffers) (n int64, err error) {\n", changed: "func (fd *netFD) writeBuffers(v *Buffers) (n int64, err error) {\n	if fd.world != nil {\n		return fd.worldWriteBuffers(v)\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) SetDeadline(t time.Time) error {\n", changed: "func (fd *netFD) SetDeadline(t time.Time) error {\n	if fd.world != nil {\n		return fd.worldDeadline(t, true, true)\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) SetReadDeadline(t time.Time) error {\n", changed: "func (fd *netFD) SetReadDeadline(t time.Time) error {\n	if fd.world != nil {\n		return fd.worldDeadline(t, true, false)\n	}\n"},
	{file: "net/fd_posix.go", old: "func (fd *netFD) SetWriteDeadline(t time.Time) error {\n", changed: "func (fd *netFD) SetWriteDeadline(t time.Time) error {\n	if fd.world != nil {\n		return fd.worldDeadline(t, false, true)\n	}\n"},

	// What needs a descriptor.
	{file: "net/tcpsock_posix.go", old: "func (c *TCPConn) readFrom(r io.Reader) (int64, error) {\n", changed: "func (c *TCPConn) readFrom(r io.Reader) (int64, error) {\n	if c.fd.world != nil {\n		return genericReadFrom(c, r)\n	}\n"},
	{file: "net/tcpsock_posix.go", old: "func (c *TCPConn) writeTo(w io.Writer) (int64, error) {\n", changed: "func (c *TCPConn) writeTo(w io.Writer) (int64, error) {\n	if c.fd.world != nil {\n		return genericWriteTo(c, w)\n	}\n"},
	{file: "net/fd_unix.go", old: "func (fd *netFD) dup() (f *os.File, err error) {\n", changed: "func (fd *netFD) dup() (f *os.File, err error) {\n	if fd.world != nil {\n		return nil, os.NewSyscallError(\"dup\", syscall.ENOTSUP)\n	}\n"},
	{file: "net/rawconn.go", old: `(?s)(func \(c \*rawConn\) (Control|Read|Write)\(.*?return syscall\.EINVAL\n	\}\n)`, changed: "$1	if c.fd.world != nil {\n		return c.worldRaw(\"$2\", f)\n	}\n", times: 3, pattern: true},
	{file: "net/rawconn.go", old: "	return &c.fd.pfd\n", changed: "	if c.fd.world != nil {\n		return nil\n	}\n	return &c.fd.pfd\n"},
	{file: "net/sockopt_posix.go", old: `(?m)^func set(?:ReadBuffer|WriteBuffer|KeepAlive|Linger)\(fd \*netFD, .*\{\n`, changed: "$0	if fd.world != nil {\n		return nil\n	}\n", times: 4, pattern: true},
	{file: "net/tcpsockopt_posix.go", old: "func setNoDelay(fd *netFD, noDelay bool) error {\n", changed: "func setNoDelay(fd *netFD, noDelay bool) error {\n	if fd.world != nil {\n		return nil\n	}\n"},
	{file: "net/tcpsockopt_unix.go", old: `(?m)^func setKeepAlive(?:Idle|Interval|Count)\(fd \*netFD, .*\{\n`, changed: "$0	if fd.world != nil {\n		return nil\n	}\n", times: 3, pattern: true},

	// Names and interfaces.
	{file: "net/lookup.go", old: "	trace, _ := ctx.Value(nettrace.TraceKey{}).(*nettrace.Trace)\n", changed: "	if worldHere() {\n		return r.worldLookup(ctx, network, host)\n	}\n	trace, _ := ctx.Value(nettrace.TraceKey{}).(*nettrace.Trace)\n"},
	{file: "net/lookup_unix.go", old: "func (r *Resolver) lookupHost(ctx context.Context, host string) (addrs []string, err error) {\n", changed: `func (r *Resolver) lookupHost(ctx context.Context, host string) (addrs []string, err error) {
	if worldHere() {
		all, err := r.worldLookup1(ctx, "ip", host)
		for _, a := range all {
			addrs = append(addrs, a.String())
		}
		return addrs, err
	}
`},
	{file: "net/lookup_unix.go", old: "func (r *Resolver) lookupAddr(ctx context.Context, addr string) ([]string, error) {\n", changed: "func (r *Resolver) lookupAddr(ctx context.Context, addr string) ([]string, error) {\n	if worldHere() {\n		return r.worldLookupAddr(ctx, addr)\n	}\n"},
	{file: "net/lookup_unix.go", old: "func (r *Resolver) lookupCNAME(ctx context.Context, name string) (string, error) {\n", changed: "func (r *Resolver) lookupCNAME(ctx context.Context, name string) (string, error) {\n	if worldHere() {\n		return r.worldLookupCNAME(ctx, name)\n	}\n"},
	{file: "net/lookup_unix.go", old: "func (r *Resolver) lookupPort(ctx context.Context, network, service string) (int, error) {\n", changed: "func (r *Resolver) lookupPort(ctx context.Context, network, service string) (int, error) {\n	if worldHere() {\n		return lookupPortMap(network, service)\n	}\n"},
	{file: "net/dnsclient_unix.go", old: "	if conf == nil {\n		conf = getSystemDNSConfig()\n	}\n\n	var (\n", changed: "	if conf == nil && worldHere() {\n		if r == nil || r.Dial == nil {\n			return dnsmessage.Parser{}, \"\", newDNSError(errNoSuchHost, name, \"\")\n		}\n		conf = worldDNS()\n	}\n	if conf == nil {\n		conf = getSystemDNSConfig()\n	}\n\n	var (\n"},
	{file: "net/interface_linux.go", old: "func interfaceTable(ifindex int) ([]Interface, error) {\n", changed: "func interfaceTable(ifindex int) ([]Interface, error) {\n	if worldHere() {\n		return worldInterfaces(ifindex)\n	}\n"},
	{file: "net/interface_linux.go", old: "func interfaceAddrTable(ifi *Interface) ([]Addr, error) {\n", changed: "func interfaceAddrTable(ifi *Interface) ([]Addr, error) {\n	if worldHere() {\n		return worldInterfaceAddrs(ifi), nil\n	}\n"},
	{file: "net/interface_linux.go", old: "func interfaceMulticastAddrTable(ifi *Interface) ([]Addr, error) {\n", changed: "func interfaceMulticastAddrTable(ifi *Interface) ([]Addr, error) {\n	if worldHere() {\n		return nil, nil\n	}\n"},

	// Patterns and idle connections belong to a program.
	{file: "net/http/transport.go", old: "		onlyH1: cm.onlyH1,\n", changed: "		onlyH1: cm.onlyH1,\n		world:  worldProgram(),\n"},
	{file: "net/http/transport.go", old: "	proxy, scheme, addr string\n	onlyH1              bool\n", changed: "	proxy, scheme, addr string\n	onlyH1              bool\n	world               uint32\n"},
	{file: "net/http/server.go", old: `(?m)^func Handle(Func)?\(pattern .*\{\n`, changed: "$0	if m := worldMux(); m != DefaultServeMux {\n		m.Handle$1(pattern, handler)\n		return\n	}\n", times: 2, pattern: true},
	{file: "net/http/server.go", old: "		handler = DefaultServeMux\n", changed: "		handler = worldHandler(req)\n"},
}
