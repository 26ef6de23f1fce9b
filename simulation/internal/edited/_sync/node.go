package sync

import "unsafe"

//go:linkname nodeWaits
func nodeWaits(mutex unsafe.Pointer)
