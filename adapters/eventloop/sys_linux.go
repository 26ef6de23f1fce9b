//go:build !braid_portable

package eventloop

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// soon is a number of bytes. A read or write of at most this many bytes of a socket takes so little time that it is a
// raw system call, without the runtime's bookkeeping. MSG_DONTWAIT is set because another process that shares the
// non-blocking descriptor could make it blocking.
const soon = 64 << 10

// A descriptor is a file descriptor with methods that make its system calls.
type descriptor struct {
	sys    int
	socket bool
}

func (d *descriptor) sysClose() { unix.Close(d.sys) }

func (d *descriptor) sysRead(p []byte) (int, error) {
	if !d.socket || len(p) > soon {
		return unix.Read(d.sys, p)
	}
	return d.transfer(unix.SYS_RECVFROM, p, unix.MSG_DONTWAIT)
}

func (d *descriptor) sysWrite(p []byte) (int, error) {
	if !d.socket || len(p) > soon {
		return unix.Write(d.sys, p)
	}
	return d.transfer(unix.SYS_SENDTO, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func (d *descriptor) transfer(call uintptr, p []byte, flags uintptr) (int, error) {
	n, _, errno := unix.RawSyscall6(call, uintptr(d.sys), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
