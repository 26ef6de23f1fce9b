// A draw that changes something is a switch. Its key has the top 24 bits of the id, the kind of the draw, and the goroutine's count. Without any
// switch, the order is that of an unchanged runtime with one P.

package runtime

// Kinds of draws.
const (
	orderKindPoint  = 'p'
	orderKindWake   = 'w'
	orderKindSelect = 's'
	orderKindLevel  = 'l' // the first priority of a goroutine
	orderKindStall  = 't'
)

var (
	orderKeys   string // the switches that are on, if orderMasked
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

// orderParse parses orderKeys: 6 digits of the id in base 16, the kind, the count, a comma.
func orderParse() {
	for s := orderKeys; len(s) > 7; {
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
