// A draw that changes something is a switch. Its key has the top 24 bits of the id, the kind of the draw, and the goroutine's count. Without any
// switch, the order is that of an unchanged runtime with one P.

package runtime

import "unsafe"

// Kinds of draws.
const (
	orderKindPoint  = 'p'
	orderKindWake   = 'w'
	orderKindSelect = 's'
	orderKindLevel  = 'l' // the first priority of a goroutine
	orderKindStall  = 't'
)

var (
	orderKeys   string // the switches that are on, if orderMasked, or @ and the name of a file that has them
	orderMask   []uint64
	orderMasked bool
)

// orderActive reports whether a switch is on. BRAID_ORDER lists the keys in ascending order.
func orderActive(gp *g, kind uint64, n uint32) bool {
	if !orderMasked {
		return true
	}
	key := gp.order.id>>40<<40 | kind<<32 | uint64(n)
	lo, hi := 0, len(orderMask)
	for lo < hi {
		if mid := (lo + hi) / 2; orderMask[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(orderMask) && orderMask[lo] == key
}

// orderParse parses orderKeys: 6 digits of the id in base 16, the kind, the count, a comma or the end of a line.
func orderParse() {
	s := orderKeys
	if s[0] == '@' {
		s = orderReadFile(s[1:])
	}
	for len(s) > 7 {
		var id, n uint64
		for i := range 6 {
			c := uint64(s[i] - '0')
			if c > 9 {
				c -= 'a' - '0' - 10
			}
			id = id<<4 | c
		}
		kind := uint64(s[6])
		n, s = orderNumber(s[7:])
		orderMask = append(orderMask, id<<40|kind<<32|n)
		if s != "" {
			s = s[1:]
		}
	}
	orderKeys = ""
}

// orderReadFile returns the text of a file. The name is at the end of a variable of the environment, so a 0 follows.
func orderReadFile(name string) string {
	fd := open(unsafe.StringData(name), 0, 0)
	if fd < 0 {
		throw("the file of switches in BRAID_ORDER cannot be read")
	}
	var text []byte
	var block [4096]byte
	for {
		n := read(fd, noescape(unsafe.Pointer(&block)), int32(len(block)))
		if n <= 0 {
			break
		}
		text = append(text, block[:n]...)
	}
	closefd(fd)
	return string(text)
}
