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

// TUN returns the program's side of the named TUN device, which is made if it does not exist and the process may make it. A task of loop
// reads from the device, until the Stack is closed. Addresses and routes of the kernel's side are set by its tools:
//
//	ip address add 10.0.0.1/24 dev tun0 && ip link set tun0 up
func TUN(loop *eventloop.Loop, name string) (stack.LinkEndpoint, error) {
	fd, mtu, err := openTUN(name)
	if err != nil {
		return nil, &os.PathError{Op: "tun", Path: name, Err: err}
	}
	// The stack writes under its locks, so a write must not suspend, and uses a separate descriptor.
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

// openTUN returns a descriptor that does not block.
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

// A tun is a link over a TUN device: a packet is a read, or a write.
type tun struct {
	*channel.Endpoint
	in *eventloop.Conn

	mu  sync.RWMutex // held by writes, and by Close alone
	out int          // -1: closed
}

// read delivers packets until in is closed.
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

// WritePackets implements stack.LinkWriter. A packet that the kernel does not take now is lost, as on a wire.
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
