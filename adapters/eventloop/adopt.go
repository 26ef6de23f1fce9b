package eventloop

import (
	"errors"
	"net"
	"os"
)

// Adopt returns a Conn for an open file that the system can wait for, such as a pipe, a FIFO, a terminal, an inherited
// socket or an event descriptor. Adopt closes f, and the Conn owns a duplicate of its descriptor. If Adopt fails, f is
// unchanged. For a regular file, Adopt fails with errors.ErrUnsupported, because the system cannot wait for it.
func (l *Loop) Adopt(f *os.File) (*Conn, error) {
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if m := info.Mode(); m.IsRegular() || m.IsDir() {
		return nil, &os.PathError{Op: "adopt", Path: f.Name(), Err: errors.ErrUnsupported}
	}
	local, remote := net.Addr(fileAddr(f.Name())), net.Addr(fileAddr(f.Name()))
	network := "file"
	if s, err := net.FileConn(f); err == nil { // s duplicates f's descriptor, and provides the addresses
		network, local, remote = s.LocalAddr().Network(), s.LocalAddr(), s.RemoteAddr()
		_ = s.Close()
	}
	d, err := adopt(l.pick(), f)
	if err != nil {
		return nil, &os.PathError{Op: "adopt", Path: f.Name(), Err: err}
	}
	return &Conn{fd: d, network: network, local: local, remote: remote}, nil
}

// A fileAddr is the name of an adopted file, used as the local and the remote address.
type fileAddr string

func (fileAddr) Network() string  { return "file" }
func (a fileAddr) String() string { return string(a) }
