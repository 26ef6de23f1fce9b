//go:build unix

package net

import (
	"io"
	"sync"
	"syscall"
)

// A worldPipe passes what a connection receives to the functions that read it by a RawConn.
type worldPipe struct {
	mu     sync.Mutex
	fds    [2]int // of the reading and the writing end, or 0
	calls  int
	closed bool
}

// read calls f with the reading end, and adds more bytes until f is done.
func (p *worldPipe) read(c Conn, f func(uintptr) bool) error {
	p.mu.Lock()
	if p.fds[0] == 0 && !p.closed {
		if err := p.open(); err != nil {
			p.mu.Unlock()
			return err
		}
	}
	closed := p.closed
	p.calls++
	p.mu.Unlock()
	defer p.leave()
	if closed {
		return ErrClosed
	}
	var buf []byte
	for !f(uintptr(p.fds[0])) {
		if buf == nil {
			buf = make([]byte, 16<<10) // a pipe has room for more
		}
		n, err := c.Read(buf)
		if n > 0 {
			if _, err := syscall.Write(p.fds[1], buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && p.fds[1] >= 0:
			_ = syscall.Close(p.fds[1]) // f reads the end
			p.fds[1] = -1
		case err != nil:
			return err
		}
	}
	return nil
}

func (p *worldPipe) open() error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(p.fds[:]); err != nil {
		return err
	}
	for _, fd := range p.fds {
		syscall.CloseOnExec(fd)
		_ = syscall.SetNonblock(fd, true)
	}
	return nil
}

// rest reads what no call of f has read.
func (p *worldPipe) rest(b []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fds[0] == 0 || p.closed {
		return 0
	}
	n, _ := syscall.Read(p.fds[0], b)
	return max(n, 0)
}

func (p *worldPipe) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
	p.closeUnused()
}

func (p *worldPipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeUnused()
}

// closeUnused closes both ends, when no call uses them.
func (p *worldPipe) closeUnused() {
	if !p.closed || p.calls > 0 || p.fds[0] == 0 {
		return
	}
	_ = syscall.Close(p.fds[0])
	if p.fds[1] >= 0 {
		_ = syscall.Close(p.fds[1])
	}
	p.fds = [2]int{}
}
