package sync

import "unsafe"

//go:linkname nodeWaits
func nodeWaits(mutex unsafe.Pointer)

//go:linkname nodeLocks
func nodeLocks(mutex unsafe.Pointer)
