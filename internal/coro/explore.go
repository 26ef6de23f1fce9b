//go:build explore

package coro

// Len is for the model checker: the number of Items in a list that was taken.
func (it *Item) Len() (n int) {
	for ; it != nil; it = it.next {
		n++
	}
	return n
}
