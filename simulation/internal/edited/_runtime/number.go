// The place of a key in a map follows from its hash, and so does the order of a range over a map. The hash of a pointer is the hash of a number, so
// that it is the same in each process. An object gets its number when a pointer to it is hashed for the first time, and has it until the object is
// freed.

package runtime

import (
	"internal/abi"
	"internal/runtime/sys"
	"unsafe"
)

const orderKindNumber = 200 // the kind of an orderSpecial

// An orderSpecial has the number of an object.
type orderSpecial struct {
	_       sys.NotInHeap
	special special
	number  uint64
}

var orderSpecials struct { // guarded by mheap_.speciallock
	alloc   fixalloc
	ready   bool
	unkeyed uint64 // the number of objects that goroutines with the id 0 have hashed first
}

//go:linkname maps_orderTypeHash internal/runtime/maps.orderTypeHash
func maps_orderTypeHash(t *abi.Type, key unsafe.Pointer, seed uintptr) uintptr {
	return typehash(t, key, seed)
}

// orderHashPointer returns the hash of the pointer at p. A pointer to a variable of a package, or to a type, has the same address in each process.
func orderHashPointer(p unsafe.Pointer, seed uintptr) uintptr {
	to := *(*unsafe.Pointer)(p)
	x := uint64(uintptr(to))
	if span := spanOfHeap(uintptr(to)); span != nil {
		x = orderNumberOf(span, to)
	}
	return memhash64(noescape(unsafe.Pointer(&x)), seed)
}

func orderNumberOf(span *mspan, p unsafe.Pointer) uint64 {
	mp := acquirem()
	span.ensureSwept()
	lock(&span.speciallock)
	at, exists := span.specialFindSplicePoint(uintptr(p)-span.base(), orderKindNumber)
	n := uint64(0)
	if exists {
		n = (*orderSpecial)(unsafe.Pointer(*at)).number
	}
	unlock(&span.speciallock)
	if !exists {
		lock(&mheap_.speciallock)
		if !orderSpecials.ready {
			orderSpecials.ready = true
			orderSpecials.alloc.init(unsafe.Sizeof(orderSpecial{}), nil, nil, &memstats.other_sys)
		}
		s := (*orderSpecial)(orderSpecials.alloc.alloc())
		if gp := mp.curg; gp != nil && gp.order.id != 0 {
			gp.order.keyed++
			n = orderMix(gp.order.id, uint64(gp.order.keyed))
		} else {
			orderSpecials.unkeyed++
			n = orderMix(0, orderSpecials.unkeyed)
		}
		unlock(&mheap_.speciallock)
		s.special.kind, s.number = orderKindNumber, n
		addspecial(p, &s.special, true)
	}
	releasem(mp)
	KeepAlive(p)
	return n
}

// orderForget frees the number of an object that is freed.
func orderForget(s *special) {
	lock(&mheap_.speciallock)
	orderSpecials.alloc.free(unsafe.Pointer(s))
	unlock(&mheap_.speciallock)
}
