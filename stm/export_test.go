package stm

// Linked returns how many waiting transactions are linked to v.
func (v *Var[T]) Linked() (n int) {
	guard.Lock()
	defer guard.Unlock()
	for x := v.watched.First(); x != nil; x = x.Next() {
		n++
	}
	return n
}

// Younger returns how many transactions wait behind the elder.
func Younger() (n int) {
	guard.Lock()
	defer guard.Unlock()
	for x := younger.First(); x != nil; x = x.Next() {
		n++
	}
	return n
}

// Log returns how many reads and writes the logs of tx have.
func (tx *Tx) Log() (reads, writes int) { return len(tx.reads), len(tx.writes) }

// Portion is how many waiters are resumed in one critical section.
const Portion = portion

// Patience is how often a transaction fails before it is the elder.
const Patience = patience

// Few is how many writes are searched.
const Few = few
