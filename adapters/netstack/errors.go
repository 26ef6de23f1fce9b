package netstack

import (
	"io"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// errno converts err to the error number that a kernel socket would return. The end of the stream becomes io.EOF.
func errno(err tcpip.Error) error {
	switch err.(type) {
	case nil:
		return nil
	case *tcpip.ErrClosedForReceive:
		return io.EOF
	case *tcpip.ErrClosedForSend:
		return syscall.EPIPE
	case *tcpip.ErrConnectionReset:
		return syscall.ECONNRESET
	case *tcpip.ErrConnectionRefused:
		return syscall.ECONNREFUSED
	case *tcpip.ErrConnectionAborted, *tcpip.ErrAborted:
		return syscall.ECONNABORTED
	case *tcpip.ErrTimeout:
		return syscall.ETIMEDOUT
	case *tcpip.ErrHostUnreachable, *tcpip.ErrHostDown:
		return syscall.EHOSTUNREACH
	case *tcpip.ErrNetworkUnreachable, *tcpip.ErrNoNet:
		return syscall.ENETUNREACH
	case *tcpip.ErrNotConnected:
		return syscall.ENOTCONN
	case *tcpip.ErrPortInUse:
		return syscall.EADDRINUSE
	case *tcpip.ErrBadLocalAddress, *tcpip.ErrNoPortAvailable, *tcpip.ErrBadAddress:
		return syscall.EADDRNOTAVAIL
	case *tcpip.ErrAddressFamilyNotSupported:
		return syscall.EAFNOSUPPORT
	case *tcpip.ErrNoBufferSpace:
		return syscall.ENOBUFS
	case *tcpip.ErrDuplicateAddress:
		return syscall.EEXIST
	case *tcpip.ErrNotSupported, *tcpip.ErrUnknownProtocolOption:
		return syscall.ENOTSUP
	}
	return invalid{err}
}

// An invalid is the error EINVAL with the text of gVisor's error.
type invalid struct{ err tcpip.Error }

func (e invalid) Error() string { return e.err.String() }
func (e invalid) Unwrap() error { return syscall.EINVAL }
