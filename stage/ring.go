package stage

// A ring is a double-ended queue. The zero ring is empty. The capacity doubles when the ring is full.
type ring[T any] struct {
	at   []T // the length of this slice is a power of two, or 0
	head int // the index of the first element
	len  int
}

// of returns the address of the i'th element; i may be from -1 to r.len.
func (r *ring[T]) of(i int) *T { return &r.at[(r.head+i)&(len(r.at)-1)] }

func (r *ring[T]) grow() {
	if r.len == len(r.at) {
		r.double()
	}
}

func (r *ring[T]) double() {
	larger := make([]T, max(8, 2*len(r.at)))
	for i := range r.len {
		larger[i] = *r.of(i)
	}
	r.at, r.head = larger, 0
}

func (r *ring[T]) pushBack(v T) { *r.back() = v }

// back appends an element and returns its address, for the caller to fill.
func (r *ring[T]) back() *T {
	r.grow()
	r.len++
	return r.of(r.len - 1)
}

func (r *ring[T]) pushFront(v T) {
	r.grow()
	*r.of(-1) = v
	r.head = (r.head - 1) & (len(r.at) - 1)
	r.len++
}

// popFront removes the first element and stores it in v. popFront and popBack clear the element, so that the ring keeps nothing
// alive.
func (r *ring[T]) popFront(v *T) {
	var zero T
	at := r.of(0)
	*v, *at = *at, zero
	r.head = (r.head + 1) & (len(r.at) - 1)
	r.len--
}

func (r *ring[T]) popBack(v *T) {
	var zero T
	at := r.of(r.len - 1)
	*v, *at = *at, zero
	r.len--
}

// sweep removes the elements for which the function out returns true, and returns them in order.
func (r *ring[T]) sweep(out func(*T) bool) (removed []T) {
	var zero T
	kept := 0
	for i := range r.len {
		at := r.of(i)
		if out(at) {
			removed = append(removed, *at)
			continue
		}
		*r.of(kept) = *at
		kept++
	}
	for i := kept; i < r.len; i++ {
		*r.of(i) = zero
	}
	r.len = kept
	return removed
}
