package httppark

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A poller reports once that the descriptor of a parked connection has bytes, or has been closed by its peer. It is an epoll
// instance, which the runtime's own poller waits for: so no thread waits.
type poller struct {
	file   *os.File
	raw    syscall.RawConn
	events [128]unix.EpollEvent
	found  []event
}

// An event is about the connection in a place, when it was parked for the serial-th time.
type event struct{ place, serial int32 }

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // tells package os that the runtime can wait for it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &poller{file: os.NewFile(uintptr(fd), "epoll")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	return p, nil
}

// watch asks for one event about the descriptor of c. The argument again means that the descriptor was watched before.
func (p *poller) watch(c syscall.RawConn, e event, again bool) (err error) {
	op := unix.EPOLL_CTL_ADD
	if again {
		op = unix.EPOLL_CTL_MOD
	}
	add := func(fd uintptr) {
		failed := p.raw.Control(func(epoll uintptr) {
			ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: e.place, Pad: e.serial}
			err = unix.EpollCtl(int(epoll), op, int(fd), &ev)
		})
		if failed != nil {
			err = failed
		}
	}
	if failed := c.Control(add); failed != nil {
		return failed
	}
	return err
}

// wait returns the next events. It fails after close.
func (p *poller) wait() ([]event, error) {
	var n int
	var failed error
	err := p.raw.Read(func(epoll uintptr) bool {
		for {
			n, failed = unix.EpollWait(int(epoll), p.events[:], 0)
			if failed != unix.EINTR {
				return n != 0
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, os.NewSyscallError("epoll_wait", failed)
	}
	p.found = p.found[:0]
	for _, e := range p.events[:n] {
		p.found = append(p.found, event{e.Fd, e.Pad})
	}
	return p.found, nil
}

func (p *poller) close() { p.file.Close() }
