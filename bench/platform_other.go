//go:build !linux

package main

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// The published figures come from Linux. Other systems have restrictions: openDirect has no effect, the limit of descriptors is assumed to
// be 10,000, and the client uses a goroutine for each connection.

const openDirect = 0

func allowDescriptors(int) (limit int) { return 10_000 }

func driveTCP(addr string, conns int, d time.Duration, ask, begin string, size int) float64 {
	return driveConns(conns, d, ask, begin, size, func() net.Conn { return must(net.Dial("tcp", addr)) })
}

// On these systems, the processor time and the memory of the web servers are unknown.

var ownGroup *syscall.SysProcAttr

func flush() {}

func killGroup(id int) {
	if p, err := os.FindProcess(id); err == nil {
		_ = p.Kill()
	}
}

func processorTime(int) time.Duration { return 0 }
func memoryOf(int) float64            { return 0 }

func limitedGroup(int) string {
	ok(errors.New("limiting the memory of a server needs Linux"))
	return ""
}

var errPipe = errors.New("pipes of a block need Linux")

func openFIFO() *os.File        { return must[*os.File](nil, errPipe) }
func openPipe() (r, w *os.File) { return must[*os.File](nil, errPipe), nil }
