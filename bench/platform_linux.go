package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// openDirect is the flag for reads that bypass the system's cache.
const openDirect = syscall.O_DIRECT

// allowDescriptors raises the limit of file descriptors to n, for this process and its children, and returns n. If this is not permitted,
// it raises the limit as far as possible, and returns the new limit.
func allowDescriptors(n int) (limit int) {
	var l syscall.Rlimit
	ok(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	enough := syscall.Rlimit{Cur: uint64(n), Max: max(uint64(n), l.Max)}
	if l.Cur >= enough.Cur || syscall.Setrlimit(syscall.RLIMIT_NOFILE, &enough) == nil {
		return n
	}
	l.Cur = l.Max
	ok(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l))
	return int(l.Cur)
}

// driveTCP is like driveConns, but uses one thread with epoll instead of goroutines.
func driveTCP(addr string, conns int, d time.Duration, ask, begin string, size int) float64 {
	to := must(net.ResolveTCPAddr("tcp4", addr))
	sa := &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	request, prefix := []byte(ask), []byte(begin)
	ep := must(syscall.EpollCreate1(0))
	got := make(map[int32]int, conns) // the bytes received so far of the current answer
	for range conns {
		fd := must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))
		event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
		ok(errors.Join(syscall.Connect(fd, sa), syscall.SetNonblock(fd, true),
			syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
			syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &event)))
		got[int32(fd)] = 0
	}
	for fd := range got {
		must(syscall.Write(int(fd), request))
	}
	events, buf := make([]syscall.EpollEvent, 256), make([]byte, 4096)
	answers, counting := 0, false
	start := time.Now()
	for {
		switch took := time.Since(start); {
		case !counting && took >= d/5:
			counting, answers, start = true, 0, time.Now()
		case counting && took >= d:
			if answers == 0 {
				ok(errors.New("no answers"))
			}
			return float64(took) / float64(answers)
		}
		n, err := syscall.EpollWait(ep, events, 100)
		if err != syscall.EINTR {
			ok(err)
		}
		for _, e := range events[:max(n, 0)] {
			m, err := syscall.Read(int(e.Fd), buf)
			if err == syscall.EAGAIN {
				continue
			}
			if ok(err); m == 0 || got[e.Fd] == 0 && !bytes.HasPrefix(buf[:m], prefix) || got[e.Fd]+m > size {
				ok(fmt.Errorf("the server said %q, after %d bytes", buf[:m], got[e.Fd]))
			}
			if got[e.Fd] += m; got[e.Fd] < size {
				continue
			}
			got[e.Fd] = 0
			answers++
			must(syscall.Write(int(e.Fd), request))
		}
	}
}

// openFIFO creates a FIFO with a buffer of one block, which is open for both reading and writing. The FIFO loses its name when it is open.
func openFIFO() *os.File {
	name := filepath.Join(os.TempDir(), fmt.Sprint("bench-fifo-", os.Getpid()))
	ok(syscall.Mkfifo(name, 0o600))
	defer os.Remove(name)
	return resized(must(os.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK, 0)))
}

// openPipe creates a pipe with a buffer of one block.
func openPipe() (r, w *os.File) {
	r, w, err := os.Pipe()
	ok(err)
	return resized(r), w
}

func resized(pipe *os.File) *os.File {
	ok(must(pipe.SyscallConn()).Control(func(fd uintptr) {
		const setPipeSize = 1031
		if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, block); errno != 0 {
			ok(errno)
		}
	}))
	return pipe
}
