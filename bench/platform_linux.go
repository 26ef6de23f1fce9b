package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// openDirect lets reads of a file bypass the cache of the system.
const openDirect = syscall.O_DIRECT

// allowDescriptors raises the limit to n. Where that is not allowed it returns the limit, otherwise 0.
func allowDescriptors(n int) (limit int) {
	var l syscall.Rlimit
	ok(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	if l.Cur >= uint64(n) {
		return 0
	}
	was := l
	l.Cur, l.Max = uint64(n), max(uint64(n), l.Max)
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		return 0
	}
	was.Cur = was.Max
	ok(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
	return int(was.Cur)
}

// driveTCP does the same as driveConns, on one thread and one epoll.
func driveTCP(addr string, conns int, d time.Duration, ask, begin string, size int) float64 {
	to := must(net.ResolveTCPAddr("tcp4", addr))
	sa := &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	request, prefix := []byte(ask), []byte(begin)
	ep := must(syscall.EpollCreate1(0))
	got := make(map[int32]int, conns) // of the answer under way
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
