package netstack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// The other end is the TCP of the kernel, in a network namespace of another process.
func TestTUN(t *testing.T) {
	if os.Getenv("NETSTACK_TUN") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTUN$", "-test.v")
		cmd.Env = append(os.Environ(), "NETSTACK_TUN=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || bytes.Contains(out, []byte("--- SKIP")) {
			t.Skip("this machine permits no TUN: ", err, string(out))
		}
		require.NoError(t, err, string(out))
		return
	}
	defer schedtest.Within(t, schedtest.Deadline)()
	loop := must(eventloop.New(eventloop.Options{}))
	defer loop.Close()
	leaveTUN(t, "braid0")
	link, err := netstack.TUN(loop, "braid0")
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, up("braid0", [4]byte{10, 9, 0, 1}))
	s := must(netstack.New(netstack.Options{Link: link, Addresses: prefixes("10.9.0.2/24", "fe80::2/64"), On: loop}))

	ln := must(s.Listen("tcp", ":80"))
	served := make(chan error, 1)
	go func() { served <- ln.Serve(background, echo) }()
	kernel := must(net.Listen("tcp", "10.9.0.1:0"))
	go func() {
		for {
			c, err := kernel.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); echo(background, c) }()
		}
	}()
	roundTrips := func(c net.Conn, seed uint64) {
		defer c.Close()
		for round := range 10 {
			msg, got := content(seed, round, 20000), make([]byte, 20000)
			must(c.Write(msg))
			must(io.ReadFull(c, got))
			if !bytes.Equal(got, msg) {
				t.Error("not what was sent")
			}
		}
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() { roundTrips(must(net.Dial("tcp", "10.9.0.2:80")), uint64(i)) })
		all.Add(1)
		must(0, loop.Go(func() {
			defer all.Done()
			roundTrips(must(s.Dial(background, "tcp", kernel.Addr().String())), uint64(i))
		}))
	}
	all.Wait()

	// The stack leaves the segmentation of large packets to the kernel.
	large := content(1, 0, 4<<20)
	sender := must(s.Listen("tcp", ":81"))
	sending := make(chan error, 1)
	go func() {
		sending <- sender.Serve(background, func(_ context.Context, c net.Conn) { _, _ = c.Write(large) })
	}()
	addrs := []string{"10.9.0.2:81"}
	if _, err := os.Stat("/proc/net/if_inet6"); err == nil {
		addrs = append(addrs, "[fe80::2%braid0]:81")
	}
	for _, addr := range addrs {
		packets := func() uint64 { return s.Stack().NICInfo()[1].Stats.Tx.Packets.Value() }
		before := packets()
		var c net.Conn
		schedtest.Eventually(t, "the kernel has an address", func() bool { c, err = net.Dial("tcp", addr); return !errors.Is(err, syscall.EADDRNOTAVAIL) })
		must(c, err)
		require.True(t, bytes.Equal(must(io.ReadAll(c)), large), "not what was sent")
		must(0, c.Close())
		require.Less(t, packets()-before, uint64(len(large)/1460/2), addr)
	}

	// A packet made of many small Writes has more slices than the kernel accepts in one call.
	lines := must(s.Listen("tcp", ":82"))
	lining, written := make(chan error, 1), make(chan struct{})
	go func() {
		lining <- lines.Serve(background, func(_ context.Context, c net.Conn) {
			for line := range slices.Chunk(large[:1<<19], 16) {
				_, _ = c.Write(line)
			}
			close(written)
		})
	}()
	timeouts := s.Stack().Stats().TCP.Timeouts.Value()
	c := must(net.Dial("tcp", "10.9.0.2:82"))
	<-written // more than the window, so the stack has combined many Writes
	require.True(t, bytes.Equal(must(io.ReadAll(c)), large[:1<<19]), "not what was sent")
	must(0, c.Close())
	require.Equal(t, timeouts, s.Stack().Stats().TCP.Timeouts.Value(), "packets were lost")
	must(0, kernel.Close())
	must(0, s.Close())
	require.ErrorIs(t, <-served, net.ErrClosed)
	require.ErrorIs(t, <-sending, net.ErrClosed)
	require.ErrorIs(t, <-lining, net.ErrClosed)
	schedtest.Eventually(t, "the task that reads ends", func() bool { st := loop.Stats(); return st.Suspended+st.Running == 0 })
	_, err = netstack.TUN(loop, "a name that is too long for a device")
	require.Error(t, err)
}

// leaveTUN creates a device as an earlier program may have left it: with a longer header before each packet.
func leaveTUN(t *testing.T, name string) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(fd)
	ifr := must(unix.NewIfreq(name))
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		t.Skip(err)
	}
	must(0, unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, 12))
	must(0, unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)) // until the namespace ends
}

// up assigns an address to a device of the kernel, and switches it on.
func up(name string, addr [4]byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := errors.Join(ifr.SetInet4Addr(addr[:]), unix.IoctlIfreq(fd, unix.SIOCSIFADDR, ifr)); err != nil {
		return err
	}
	if err := errors.Join(ifr.SetInet4Addr([]byte{255, 255, 255, 0}), unix.IoctlIfreq(fd, unix.SIOCSIFNETMASK, ifr)); err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
