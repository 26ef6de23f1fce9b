//go:build !linux

package main

import (
	"errors"
	"net"
	"os"
	"time"
)

// The published figures come from Linux. Other systems have restrictions: openDirect has no effect, the limit of descriptors is assumed to
// be 10,000, the client uses a goroutine for each connection, and the rows and curves for pipes and web servers cannot be measured.

const openDirect = 0

func allowDescriptors(int) (limit int) { return 10_000 }

func driveTCP(addr string, conns int, d time.Duration, ask, begin string, size int) float64 {
	return driveConns(conns, d, 0, ask, begin, size, func() net.Conn { return must(net.Dial("tcp", addr)) })
}

func webCurves() []curve  { return nil }
func idleCurves() []curve { return nil }

func helloHere([]string) any { return nil }

var errPipe = errors.New("pipes of a block need Linux")

func openFIFO() *os.File        { return must[*os.File](nil, errPipe) }
func openPipe() (r, w *os.File) { return must[*os.File](nil, errPipe), nil }
