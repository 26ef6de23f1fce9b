// Package maphash hashes pointers without their addresses: the overlay adds this file to it.
package maphash

import (
	"internal/abi"
	"unsafe"
)

// orderComparable returns the hash of v. If v has pointers, it is the hash that the runtime makes of the type.
func orderComparable[T comparable](v T, seed Seed) uint64 {
	if t := abi.TypeFor[T](); t.PtrBytes != 0 && t.Kind() != abi.String {
		return uint64(orderTypeHash(t, abi.NoEscape(unsafe.Pointer(&v)), uintptr(seed.s)))
	}
	return comparableHash(v, seed)
}

//go:linkname orderTypeHash
func orderTypeHash(t *abi.Type, key unsafe.Pointer, seed uintptr) uintptr
