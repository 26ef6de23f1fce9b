package eventloop

import (
	"errors"
	"net"
	"os"
)

// Adopt makes a Conn of an open file that the system can wait for: a pipe, a FIFO, a terminal, a socket that was
// inherited, an event descriptor. Adopt takes f over: it is closed, and the Conn has the descriptor. If Adopt fails, f
// is unchanged; the system cannot wait for a regular file, so Adopt fails with errors.ErrUnsupported.
func (l *Loop) Adopt(f *os.File) (*Conn, error) {
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if m := info.Mode(); m.IsRegular() || m.IsDir() {
		return nil, &os.PathError{Op: "adopt", Path: f.Name(), Err: errors.ErrUnsupported}
	}
	local, remote := net.Addr(fileAddr(f.Name())), net.Addr(fileAddr(f.Name()))
	network := "file"
	if s, err := net.FileConn(f); err == nil { // a copy that has the addresses
		network, local, remote = s.LocalAddr().Network(), s.LocalAddr(), s.RemoteAddr()
		_ = s.Close()
	}
	d, err := adopt(l.pick(), f)
	if err != nil {
		return nil, &os.PathError{Op: "adopt", Path: f.Name(), Err: err}
	}
	return &Conn{fd: d, network: network, local: local, remote: remote}, nil
}

// A fileAddr is the address of both ends of a file, which is its name.
type fileAddr string

func (fileAddr) Network() string  { return "file" }
func (a fileAddr) String() string { return string(a) }
