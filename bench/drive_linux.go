package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// driveTCP has one request under way on each connection, on one thread and one epoll. It checks how each answer
// begins and how long it is.
func driveTCP(addr string, conns int, d time.Duration, ask, begin string, size int) (float64, error) {
	to, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return 0, err
	}
	sa := &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	request, prefix := []byte(ask), []byte(begin)
	ep, err := syscall.EpollCreate1(0)
	if err != nil {
		return 0, err
	}
	got := make(map[int32]int, conns) // of the answer under way
	for range conns {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			return 0, err
		}
		if err := syscall.Connect(fd, sa); err != nil {
			return 0, err
		}
		event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
		if err := errors.Join(syscall.SetNonblock(fd, true), syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
			syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &event)); err != nil {
			return 0, err
		}
		got[int32(fd)] = 0
	}
	for fd := range got {
		if _, err := syscall.Write(int(fd), request); err != nil {
			return 0, err
		}
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
				return 0, errors.New("no answers")
			}
			return float64(took) / float64(answers), nil
		}
		n, err := syscall.EpollWait(ep, events, 100)
		if err != nil && err != syscall.EINTR {
			return 0, err
		}
		for _, e := range events[:max(n, 0)] {
			m, err := syscall.Read(int(e.Fd), buf)
			if err == syscall.EAGAIN {
				continue
			}
			if err != nil || m == 0 {
				return 0, fmt.Errorf("the server closed: %v", err)
			}
			if got[e.Fd] == 0 && !bytes.HasPrefix(buf[:m], prefix) {
				return 0, fmt.Errorf("the server said %q", buf[:m])
			}
			got[e.Fd] += m
			if got[e.Fd] < size {
				continue
			}
			if got[e.Fd] > size {
				return 0, errors.New("the answer is too long")
			}
			got[e.Fd] = 0
			answers++
			if _, err := syscall.Write(int(e.Fd), request); err != nil {
				return 0, err
			}
		}
	}
}
