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

// A poller wraps an epoll instance. Each descriptor is registered once for reads and writes, edge-triggered. An event
// carries the descriptor's slot and the slot's generation. So an event that was harvested for a closed descriptor does
// not reach the next descriptor in the slot.
type poller struct {
	epfd   int
	wakefd int // an eventfd, edge-triggered and never read, so each write is an event

	// refs counts the references to wakefd. Only a holder of a reference may write to wakefd. The reactor holds a
	// reference. A push or poke that takes the mark "asleep" out of the inbox holds another reference until it has
	// written. The last dropRef closes wakefd. Without references, a write could reach another descriptor that has the
	// same number.
	refs atomicx.Int64

	mu     atomicx.Mutex
	slots  []slot
	free   []int32
	closed bool // calls of add fail, and epfd may be closed
	deaf   bool // calls of add fail for the descriptor of a Listener

	// The fields below belong to the reactor's goroutine.
	events    [128]unix.EpollEvent
	targets   [128]*fd
	harvested int
}

type slot struct {
	fd         *fd // a free slot holds nil
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
	if err := p.wakeOn(wakefd); err != nil {
		p.close()
		p.dropRef()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return p, nil
}

// hold acquires a reference, which a later call of wake or dropRef drops.
func (p *poller) hold() { p.refs.Add(1) }

func (p *poller) dropRef() {
	if p.refs.Add(-1) == 0 {
		unix.Close(p.wakefd)
	}
}

// wake ends a wait of the reactor, and releases a reference. Any goroutine may call wake.
func (p *poller) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	for {
		if _, err := unix.Write(p.wakefd, one[:]); err != unix.EINTR {
			break
		}
	}
	p.dropRef()
}

// poll harvests the pending events without waiting, and reports whether there were any.
func (p *poller) poll() bool {
	p.harvest(0)
	return p.harvested > 0
}

// wait waits for events and harvests them. It waits for at most d, or without a limit if d is negative. The wait
// blocks the thread, and the runtime gives the thread's processor to another thread. A variant that waited in the
// runtime's poller was measured: echoes were faster if the clients were goroutines of the same process, and slower
// otherwise.
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
		if err != unix.EINTR { // after EINTR the reactor polls again
			panic("eventloop: epoll_wait: " + err.Error())
		}
		n = 0
	}
	p.harvested = n
}

// epollNow calls epoll_wait with a timeout of zero. The call does not wait, so it is a raw system call, without the
// runtime's bookkeeping.
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

// add registers d. add holds p.mu during the system call, so that the epoll instance cannot be closed during the call.
func (p *poller) add(d *fd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.deaf && d.over != nil {
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

// wakeOn makes p.wait return when the descriptor sys becomes readable. No event is dispatched for sys.
func (p *poller) wakeOn(sys int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&0xffffffff, Fd: wakeSlot}
	return unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, sys, &ev)
}

// remove frees the slot of d. The caller is about to close d, which removes d from the epoll instance.
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

// closeAll closes every descriptor. Later calls of add fail.
func (p *poller) closeAll() {
	p.mu.Lock()
	p.closed = true
	p.closeThose(func(*fd) bool { return true })
}

// closeListeners closes the descriptors of Listeners. Later calls of add fail for such a descriptor.
func (p *poller) closeListeners() {
	p.mu.Lock()
	p.deaf = true
	p.closeThose(func(d *fd) bool { return d.over != nil })
}

// closeThose closes the descriptors for which match returns true, and unlocks p.mu. The caller must hold p.mu.
func (p *poller) closeThose(match func(d *fd) bool) {
	var open []*fd
	for _, s := range p.slots {
		if s.fd != nil && match(s.fd) {
			open = append(open, s.fd)
		}
	}
	p.mu.Unlock()
	for _, d := range open {
		_ = d.close()
	}
}

// close closes the epoll instance after the reactor has ended. The call also sets the field closed, because closeAll
// might not have been called yet.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	unix.Close(p.epfd)
}
