// Package os gives each program of a simulated node the same process id: the overlay adds this file to it.
package os

import _ "unsafe"

//go:linkname nodeHere
func nodeHere() uint32

// nodePID is above all process ids of Linux, so nobody signals a process of the machine.
const nodePID = 1<<22 + 1
