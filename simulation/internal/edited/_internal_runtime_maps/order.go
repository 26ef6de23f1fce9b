// Package maps hashes pointers without their addresses: the overlay adds this file to it.
package maps

import (
	"internal/abi"
	"unsafe"
)

// orderHash returns the hash of a key. If a key has pointers, it is the hash that the runtime makes of the key's type.
func orderHash(typ *abi.MapType, key unsafe.Pointer, seed uintptr) uintptr {
	if typ.Key.PtrBytes != 0 && typ.Key.Kind() != abi.String {
		return orderTypeHash(typ.Key, key, seed)
	}
	return typ.Hasher(key, seed)
}

// orderHash64 returns the hash of a key of 64 bits, whose hash by its bits is given.
func orderHash64[K uint64 | unsafe.Pointer](typ *abi.MapType, key K, seed, hash uintptr) uintptr {
	if typ.Key.PtrBytes != 0 {
		return orderTypeHash(typ.Key, abi.NoEscape(unsafe.Pointer(&key)), seed)
	}
	return hash
}

//go:linkname orderTypeHash
func orderTypeHash(t *abi.Type, key unsafe.Pointer, seed uintptr) uintptr
