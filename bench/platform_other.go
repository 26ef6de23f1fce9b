//go:build !linux

package main

import (
	"net"
	"time"
)

// The figures are those of Linux. Elsewhere the rows run, and some know less: openDirect has no effect, the limit of descriptors is taken to
// be 10,000, and the client has a goroutine for each connection.

const openDirect = 0

func allowDescriptors(int) (limit int) { return 10_000 }

func driveTCP(addr string, conns int, d time.Duration, ask, begin string, size int) float64 {
	return driveConns(conns, d, ask, begin, size, func() net.Conn { return must(net.Dial("tcp", addr)) })
}
