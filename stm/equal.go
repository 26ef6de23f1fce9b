package stm

// Change is Set for a value that may be the same: it reports whether v holds another value in tx, and only then sets it. So a
// transaction that waits for v is not run again for nothing. Unlike a Set, a Change reads v.
func Change[T comparable](tx *Tx, v *Var[T], x T) bool {
	if v.Get(tx) == x {
		return false
	}
	v.Set(tx, x)
	return true
}
