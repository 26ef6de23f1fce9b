package netstack

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/braidgo/braid/adapters/eventloop"
)

// TUN returns the program's end of the TUN device with the given name. If the device does not exist and the process has
// the permission, TUN creates the device. A task of loop reads from the device until the Stack is closed. Set the
// addresses and routes of the kernel's end with the system's tools:
//
//	ip address add 10.0.0.1/24 dev tun0 && ip link set tun0 up
func TUN(loop *eventloop.Loop, name string) (stack.LinkEndpoint, error) {
	fd, mtu, err := openTUN(name)
	if err != nil {
		return nil, &os.PathError{Op: "tun", Path: name, Err: err}
	}
	// The stack calls WritePackets under its locks, so a write must not suspend. Writes therefore use a separate
	// descriptor.
	out, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	t := &tun{Endpoint: channel.New(0, uint32(mtu), ""), out: out}
	file := os.NewFile(uintptr(fd), name)
	if t.in, err = loop.Adopt(file); err != nil {
		unix.Close(out)
		_ = file.Close()
		return nil, err
	}
	if err := loop.Go(t.read); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// openTUN opens the TUN device with the given name. openTUN returns a non-blocking descriptor and the MTU.
func openTUN(name string) (fd, mtu int, err error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return -1, 0, err
	}
	if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return -1, 0, err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err == nil {
		var s int
		if s, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			defer unix.Close(s)
			err = unix.IoctlIfreq(s, unix.SIOCGIFMTU, ifr)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, int(ifr.Uint32()), nil
}

// A tun is a link over a TUN device. Each read and each write transfers one packet.
type tun struct {
	*channel.Endpoint
	in *eventloop.Conn

	mu  sync.RWMutex // WritePackets holds the read lock, and Close holds the write lock
	out int          // the descriptor for writes, -1 after Close
}

// read passes packets from the device to the stack until t.in is closed.
func (t *tun) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := t.in.Read(buf)
		if err != nil {
			return
		}
		if n == 0 {
			continue
		}
		proto := tcpip.NetworkProtocolNumber(header.IPv4ProtocolNumber)
		if header.IPVersion(buf[:n]) == header.IPv6Version {
			proto = header.IPv6ProtocolNumber
		}
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(buf[:n])})
		t.InjectInbound(proto, p)
		p.DecRef()
	}
}

// WritePackets implements stack.LinkWriter. A packet that the kernel does not accept immediately is lost, as on a wire.
func (t *tun) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.out < 0 {
		return 0, &tcpip.ErrClosedForSend{}
	}
	for _, p := range packets.AsSlice() {
		_, _ = unix.Writev(t.out, p.AsSlices())
	}
	return packets.Len(), nil
}

// Close implements stack.LinkEndpoint.
func (t *tun) Close() {
	_ = t.in.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out >= 0 {
		unix.Close(t.out)
		t.out = -1
	}
}
