package netstack

import (
	"bytes"
	"encoding/binary"
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
//	ip address add 10.0.0.1/24 dev tun0 && ip link set tun0 up txqueuelen 10000
//
// The kernel's queue for the device has room for txqueuelen packets, 500 by default, and drops further packets. A
// thousand connections need more.
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
	t.SupportedGSOKind = stack.HostGSOSupported
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
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err == nil {
		// The kernel divides large packets, and completes checksums, before the program reads them, because gVisor trusts
		// either the checksums of all packets or of none. An earlier program may have left other settings.
		_ = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0)
		err = unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, offloadSize)
	}
	if err == nil {
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

// A tun is a link over a TUN device. Each read and each write transfers one packet. A packet that is written may have up
// to 32 KB, because gVisor leaves it to the kernel to divide the packet into segments. A virtio_net_hdr precedes each
// packet.
type tun struct {
	*channel.Endpoint
	in *eventloop.Conn

	mu  sync.RWMutex // WritePackets holds the read lock, and Close holds the write lock
	out int          // the descriptor for writes, -1 after Close
}

// offloadSize is the size of a virtio_net_hdr. Its fields, in the byte order of the machine, are described in
// linux/virtio_net.h: flags, gso_type (one byte each), hdr_len, gso_size, csum_start and csum_offset (two bytes each).
const offloadSize = 10

const (
	needsCsum = 1 // a flag: the checksum of the TCP segment is incomplete
	gsoTCPv4  = 1
	gsoTCPv6  = 4
)

// read passes packets from the device to the stack until t.in is closed.
func (t *tun) read() {
	buf := make([]byte, offloadSize+1<<16)
	for {
		n, err := t.in.Read(buf)
		if err != nil {
			return
		}
		if n <= offloadSize {
			continue
		}
		data := buf[offloadSize:n]
		proto := tcpip.NetworkProtocolNumber(header.IPv4ProtocolNumber)
		if header.IPVersion(data) == header.IPv6Version {
			proto = header.IPv6ProtocolNumber
		}
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(data)})
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
		head := offload(p)
		parts := append([][]byte{head[:]}, p.AsSlices()...)
		if len(parts) > maxParts { // the packet consists of many small Writes
			parts = [][]byte{bytes.Join(parts, nil)}
		}
		_, _ = unix.Writev(t.out, parts)
	}
	return packets.Len(), nil
}

// maxParts is the maximum number of slices that the kernel takes in one call (IOV_MAX).
const maxParts = 1024

// offload returns the virtio_net_hdr for a packet of the stack. It tells the kernel how to divide the packet, and where
// the checksum belongs.
func offload(p *stack.PacketBuffer) (head [offloadSize]byte) {
	gso := p.GSOOptions
	if gso.Type == stack.GSONone {
		return head
	}
	if gso.NeedsCsum {
		head[0] = needsCsum
		binary.NativeEndian.PutUint16(head[6:], uint16(len(p.NetworkHeader().Slice())))
		binary.NativeEndian.PutUint16(head[8:], gso.CsumOffset)
	}
	if p.Data().Size() > int(gso.MSS) {
		head[1] = gsoTCPv4
		if gso.Type == stack.GSOTCPv6 {
			head[1] = gsoTCPv6
		}
		binary.NativeEndian.PutUint16(head[2:], uint16(p.HeaderSize()))
		binary.NativeEndian.PutUint16(head[4:], gso.MSS)
	}
	return head
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
