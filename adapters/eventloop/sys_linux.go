//go:build !braid_portable

package eventloop

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// soon is a number of bytes. A read or write of at most this many bytes takes so little time that it is a raw system
// call, without the runtime's bookkeeping, if a flag of the call ensures that it does not wait: MSG_DONTWAIT for a
// socket, and RWF_NOWAIT for a pipe. O_NONBLOCK is not sufficient, because another process that shares the open file
// could clear it, and a raw call that waited would stop the whole program.
const soon = 64 << 10

// A descriptor is a file descriptor with methods that make its system calls.
type descriptor struct {
	sys     int
	socket  bool
	mayWait struct{ read, write bool } // RWF_NOWAIT was refused; the owner of a turn sets the field of its direction
}

func (d *descriptor) sysClose() { unix.Close(d.sys) }

func (d *descriptor) sysRead(p []byte) (n int, err error) {
	if n, err = d.readNow(p); racing && err == nil {
		raceRead(p[:n])
	}
	return n, err
}

func (d *descriptor) sysWrite(p []byte) (int, error) {
	if racing {
		raceWrite(p)
	}
	return d.writeNow(p)
}

func (d *descriptor) readNow(p []byte) (int, error) {
	switch {
	case d.socket && len(p) <= soon:
		return d.transfer(unix.SYS_RECVFROM, p, unix.MSG_DONTWAIT)
	case !d.socket && !d.mayWait.read:
		n, err := d.withoutWaiting(unix.SYS_PREADV2, p)
		if d.mayWait.read = refused(err); !d.mayWait.read {
			return n, err
		}
	}
	return unix.Read(d.sys, p)
}

func (d *descriptor) writeNow(p []byte) (int, error) {
	switch {
	case d.socket && len(p) <= soon:
		return d.transfer(unix.SYS_SENDTO, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	case !d.socket && !d.mayWait.write:
		n, err := d.withoutWaiting(unix.SYS_PWRITEV2, p)
		if d.mayWait.write = refused(err); !d.mayWait.write {
			return n, err
		}
	}
	return unix.Write(d.sys, p)
}

func (d *descriptor) transfer(call uintptr, p []byte, flags uintptr) (int, error) {
	n, _, errno := unix.RawSyscall6(call, uintptr(d.sys), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
	return result(n, errno)
}

// withoutWaiting calls preadv2 or pwritev2 with RWF_NOWAIT at the file's own position, for which the offset -1 stands.
func (d *descriptor) withoutWaiting(call uintptr, p []byte) (int, error) {
	const own = ^uintptr(0)
	v := unix.Iovec{Base: unsafe.SliceData(p)}
	v.SetLen(len(p))
	if len(p) > soon {
		n, _, errno := unix.Syscall6(call, uintptr(d.sys), uintptr(unsafe.Pointer(&v)), 1, own, own, unix.RWF_NOWAIT)
		return result(n, errno)
	}
	n, _, errno := unix.RawSyscall6(call, uintptr(d.sys), uintptr(unsafe.Pointer(&v)), 1, own, own, unix.RWF_NOWAIT)
	return result(n, errno)
}

func result(n uintptr, errno unix.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// refused reports whether err means that the call with RWF_NOWAIT is not possible: by the file (a FIFO or a terminal),
// by an old kernel, or by a container.
func refused(err error) bool {
	return err == unix.EOPNOTSUPP || err == unix.ENOSYS || err == unix.EINVAL || err == unix.EPERM
}
