package stm

// Linked returns how many invariants and waiting transactions are linked to v.
func (v *Var[T]) Linked() (n int) {
	guard.Lock()
	defer guard.Unlock()
	for x := v.watched.first; x != nil; x = x.next {
		n++
	}
	return n
}

// Patience is how often a transaction fails before it is the elder.
const Patience = patience

// Few is how many writes are searched.
const Few = few
