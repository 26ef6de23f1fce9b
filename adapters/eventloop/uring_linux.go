//go:build !braid_portable

package eventloop

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A uring is an instance of io_uring, which consists of two rings in memory that is shared with the system. A call of
// enter makes the system take entries from the submission ring. The system adds completions to the completion ring at
// any time. A uring must not be used by two goroutines concurrently. The types follow linux/io_uring.h, because
// golang.org/x/sys has none for io_uring.
type uring struct {
	fd             int
	features       uint32
	rings, entries []byte // mapped memory
	sqHead, sqTail *uint32
	cqHead, cqTail *uint32
	sqes           []sqe
	cqes           []cqe
}

// An sqe is an entry of the submission ring.
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	userData      uint64
	_             [3]uint64
}

// A cqe is an entry of the completion ring.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

const opAsyncCancel = 14

// uringParams are the parameters of io_uring_setup.
type uringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFd uint32
	_                                                                      [3]uint32
	sq                                                                     struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }
	cq                                                                     struct{ head, tail, mask, entries, overflow, cqes, flags, _, _, _ uint32 }
}

// needed is a set of features of Linux 5.6: a single mapping for the rings, no dropped completions, and the feature
// that was introduced together with opRead and opWrite.
const needed = 1<<0 | 1<<1 | 1<<3

// opensAtOnce is a feature of Linux 5.12: the system tries an open in the submitting call. In earlier versions a kernel
// thread performs each open, and in that thread /proc/self and /dev/tty mean different files.
const opensAtOnce = 1 << 9

const offEntries = 0x10000000 // mmap offset of the submission entries

// newURing creates a uring with n entries. The number must be a power of two. The error is not wrapped, and is ENOSYS
// if the system is too old.
func newURing(n uint32) (*uring, error) {
	var p uringParams
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(n), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, errno
	}
	u := &uring{fd: int(fd), features: p.features}
	err := error(unix.ENOSYS)
	if p.features&needed == needed {
		err = u.mapMemory(&p)
	}
	if err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

func (u *uring) mapMemory(p *uringParams) (err error) {
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(cqe{})))
	const access, how = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if u.rings, err = unix.Mmap(u.fd, 0, int(size), access, how); err != nil {
		return err
	}
	if u.entries, err = unix.Mmap(u.fd, offEntries, int(p.sqEntries*uint32(unsafe.Sizeof(sqe{}))), access, how); err != nil {
		return err
	}
	at := func(offset uint32) unsafe.Pointer { return unsafe.Pointer(&u.rings[offset]) }
	u.sqHead, u.sqTail = (*uint32)(at(p.sq.head)), (*uint32)(at(p.sq.tail))
	u.cqHead, u.cqTail = (*uint32)(at(p.cq.head)), (*uint32)(at(p.cq.tail))
	u.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&u.entries[0])), p.sqEntries)
	u.cqes = unsafe.Slice((*cqe)(at(p.cq.cqes)), p.cqEntries)
	for i, array := uint32(0), unsafe.Slice((*uint32)(at(p.sq.array)), p.sqEntries); i < p.sqEntries; i++ {
		array[i] = i
	}
	return nil
}

func (u *uring) close() {
	if u.rings != nil {
		_ = unix.Munmap(u.rings)
	}
	if u.entries != nil {
		_ = unix.Munmap(u.entries)
	}
	unix.Close(u.fd)
}

// unsubmitted returns the number of entries that the system has not taken yet.
func (u *uring) unsubmitted() uint32 { return *u.sqTail - atomic.LoadUint32(u.sqHead) }

// room reports whether an entry can be added.
func (u *uring) room() bool { return int(u.unsubmitted()) < len(u.sqes) }

// add adds an entry, which the next enter submits. The caller must first check with the method room that there is room.
// The garbage collector does not see the address in the entry, so the caller must keep the memory alive until the
// completion. The memory must not be on a stack.
func (u *uring) add(e sqe) {
	tail := *u.sqTail
	u.sqes[tail%uint32(len(u.sqes))] = e
	atomic.StoreUint32(u.sqTail, tail+1)
}

// pointTo makes p the buffer of the entry.
func (e *sqe) pointTo(p []byte) {
	e.addr, e.len = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), uint32(len(p))
}

// takeBack removes the entry that was added last, and returns its userData.
func (u *uring) takeBack() uint64 {
	tail := *u.sqTail - 1
	atomic.StoreUint32(u.sqTail, tail)
	return u.sqes[tail%uint32(len(u.sqes))].userData
}

// enter makes the system take the entries that were added, and waits until there are n completions.
func (u *uring) enter(n uint32) error {
	const getEvents = 1
	entries, flags := u.unsubmitted(), uintptr(0)
	if n > 0 {
		flags = getEvents
	}
	taken, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(u.fd), uintptr(entries), uintptr(n), flags, 0, 0)
	if errno != 0 {
		return errno
	}
	if entries > 0 && taken == 0 {
		return unix.EAGAIN
	}
	return nil
}

// popCompletion removes the next completion from its ring, and returns it. The result ok is false if the ring is empty.
func (u *uring) popCompletion() (c cqe, ok bool) {
	head := *u.cqHead
	if head == atomic.LoadUint32(u.cqTail) {
		return c, false
	}
	c = u.cqes[head%uint32(len(u.cqes))]
	atomic.StoreUint32(u.cqHead, head+1)
	return c, true
}
