package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// openDirect is the flag for reads that bypass the system's cache.
const openDirect = syscall.O_DIRECT

// allowDescriptors raises the limit of file descriptors to n, and returns 0. If this is not permitted, it raises the limit as far as
// possible, and returns the new limit.
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

// ownGroup starts a process in a new process group, so that killGroup also kills the children of the process.
var ownGroup = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

func killGroup(id int) { _ = syscall.Kill(-id, syscall.SIGKILL) }

func flush() { syscall.Sync() }

// ofGroup adds up a figure over all processes of a group.
func ofGroup(id int, figure func(proc string, stat []string) float64) (sum float64) {
	for _, proc := range must(filepath.Glob("/proc/[0-9]*")) {
		text, err := os.ReadFile(proc + "/stat")
		if _, rest, found := strings.Cut(string(text), ") "); err == nil && found { // skips processes that have ended
			if stat := strings.Fields(rest); stat[2] == strconv.Itoa(id) {
				sum += figure(proc, stat)
			}
		}
	}
	return sum
}

// processorTime returns the processor time of a group, including children that have ended.
func processorTime(id int) time.Duration {
	const tick = 10 * time.Millisecond
	return time.Duration(ofGroup(id, func(_ string, stat []string) (ticks float64) {
		for _, s := range stat[11:15] { // the user and system times of the process and its children
			ticks += must(strconv.ParseFloat(s, 64))
		}
		return ticks
	})) * tick
}

// memoryOf returns the memory of a group in bytes. Shared memory is counted once.
func memoryOf(id int) float64 {
	return ofGroup(id, func(proc string, _ []string) (kilobytes float64) {
		_, _ = fmt.Sscanf(field(proc+"/smaps_rollup", "Pss"), "%f kB", &kilobytes)
		return kilobytes
	}) * 1024
}

// limitedGroup creates a control group with a memory limit. The page cache for the group's files counts against the limit.
func limitedGroup(bytes int) string {
	const dir = "/sys/fs/cgroup/memory/braid-bench"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		ok(fmt.Errorf("limiting the memory of a server is not permitted here: %w", err))
	}
	ok(os.WriteFile(dir+"/memory.limit_in_bytes", []byte(strconv.Itoa(bytes)), 0))
	return dir
}

// openFIFO creates a FIFO with a buffer of one block, which is open for both reading and writing.
func openFIFO() *os.File {
	name := filepath.Join(pipeDir(), strconv.Itoa(int(pipeNumber.Add(1))))
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

var pipeNumber atomic.Int64

// pipeDir returns the directory in which FIFOs are created. Each FIFO is removed from the directory when it is open.
var pipeDir = sync.OnceValue(func() string { return leftover(must(os.MkdirTemp("", "bench-pipes"))) })
