// Package sync tells the runtime which mutexes goroutines lock and wait for: the overlay adds this file to it.
package sync

import "unsafe"

//go:linkname nodeWaits
func nodeWaits(mutex unsafe.Pointer)

//go:linkname orderHold
func orderHold()

//go:linkname orderRelease
func orderRelease()
