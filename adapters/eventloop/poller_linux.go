//go:build !braid_portable

package eventloop

import (
	"encoding/binary"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/internal/atomicx"
)

// A poller is one epoll instance. A descriptor is registered once, for both directions, edge-triggered; an event
// carries the slot of its descriptor and the slot's generation. So an event that was harvested before its descriptor
// was closed does not reach the next descriptor in the slot.
type poller struct {
	epfd   int
	wakefd int // an eventfd, edge-triggered and never read: each write is an event

	// refs counts the rights to write to wakefd. The reactor has one while it lives, and so has each push or poke that
	// has taken the word "asleep" out of its inbox, until it has written. The last release closes wakefd. Otherwise a
	// write could reach a number that means something else by then.
	refs atomicx.Int64

	mu     atomicx.Mutex
	slots  []slot
	free   []int32
	closed bool // no descriptor is registered any more; epfd may be closed

	// The rest belongs to the reactor's goroutine.
	events    [128]unix.EpollEvent
	targets   [128]*fd
	harvested int
}

type slot struct {
	fd         *fd // nil means that the place is free
	generation int32
}

const wakeSlot = -1

const interest = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET&0xffffffff

func newPoller() (*poller, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epfd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &poller{epfd: epfd, wakefd: wakefd}
	p.refs.Store(1)
	if err := p.watch(wakefd); err != nil {
		p.close()
		p.release()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return p, nil
}

// hold takes a reference for the wake to come.
func (p *poller) hold() { p.refs.Add(1) }

func (p *poller) release() {
	if p.refs.Add(-1) == 0 {
		unix.Close(p.wakefd)
	}
}

// wake ends a wait, from any goroutine. It uses up one reference.
func (p *poller) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	for {
		if _, err := unix.Write(p.wakefd, one[:]); err != unix.EINTR {
			break
		}
	}
	p.release()
}

// poll harvests the events that are there, without waiting.
func (p *poller) poll() bool {
	p.harvest(0)
	return p.harvested > 0
}

// wait waits for events for d at most, or without a limit if d is negative, and harvests them. The thread waits with
// it, and the runtime gives its processor to others. Waiting in the runtime's poller instead, for the epoll instance to
// become readable, was tried: an echo got faster when the clients were goroutines of the same process, and slower when
// they were not.
func (p *poller) wait(d time.Duration) {
	ms := -1
	if d >= 0 {
		ms = int(min((d+time.Millisecond-1)/time.Millisecond, 1<<30))
	}
	p.harvest(ms)
}

func (p *poller) harvest(ms int) {
	n, err := 0, error(nil)
	if ms == 0 {
		n, err = epollNow(p.epfd, p.events[:])
	} else {
		n, err = unix.EpollWait(p.epfd, p.events[:], ms)
	}
	if err != nil {
		if err != unix.EINTR { // the reactor polls again
			panic("eventloop: epoll_wait: " + err.Error())
		}
		n = 0
	}
	p.harvested = n
}

// epollNow is epoll_wait without waiting, so it is a raw system call, without the runtime's bookkeeping.
func epollNow(epfd int, events []unix.EpollEvent) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// dispatch delivers the harvested events.
func (p *poller) dispatch() {
	n := p.harvested
	if n == 0 {
		return
	}
	p.harvested = 0
	p.mu.Lock()
	for i, ev := range p.events[:n] {
		if ev.Fd >= 0 {
			if s := &p.slots[ev.Fd]; s.generation == ev.Pad {
				p.targets[i] = s.fd
			}
		}
	}
	p.mu.Unlock()
	for i, d := range p.targets[:n] {
		if d != nil {
			p.targets[i] = nil
			d.event(p.events[i].Events)
		}
	}
}

// add registers d. It takes the lock across the system call, so that the epoll instance is still there.
func (p *poller) add(d *fd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	if n := len(p.free); n > 0 {
		d.slot, p.free = p.free[n-1], p.free[:n-1]
	} else {
		d.slot = int32(len(p.slots))
		p.slots = append(p.slots, slot{})
	}
	s := &p.slots[d.slot]
	s.fd = d
	ev := unix.EpollEvent{Events: interest, Fd: d.slot, Pad: s.generation}
	if err := unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, d.sys, &ev); err != nil {
		p.vacate(d)
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// watch lets a descriptor that becomes readable end a wait. Nothing is dispatched for it.
func (p *poller) watch(sys int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&0xffffffff, Fd: wakeSlot}
	return unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, sys, &ev)
}

// remove forgets d, which is about to be closed and thereby leaves the epoll instance.
func (p *poller) remove(d *fd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots[d.slot].fd == d {
		p.vacate(d)
	}
}

func (p *poller) vacate(d *fd) {
	s := &p.slots[d.slot]
	s.fd = nil
	s.generation++
	p.free = append(p.free, d.slot)
}

// closeAll closes every descriptor, and makes add refuse.
func (p *poller) closeAll() {
	p.mu.Lock()
	p.closed = true
	var open []*fd
	for _, s := range p.slots {
		if s.fd != nil {
			open = append(open, s.fd)
		}
	}
	p.mu.Unlock()
	for _, d := range open {
		_ = d.close()
	}
}

// close gives the epoll instance back, when the reactor has ended. The Close that ended it may still be before
// closeAll.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	unix.Close(p.epfd)
}
