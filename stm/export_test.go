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

// Portion is the number of waiters that are resumed in one critical section.
const Portion = portion

// Patience is the number of failed runs after which a transaction becomes the elder.
const Patience = patience

// Few is the number of writes up to which the log is searched linearly.
const Few = few

// A count is a waiter that counts how often it is resumed.
type count int

func (n *count) resumeLocked() { *n++ }

// WaitFor begins a wait for a change of any of vars. It returns the number of reads that the last critical section has linked,
// the number of nodes that are left after a commit to the first Var, and how often commits to all Vars have resumed the waiter.
func WaitFor(vars []Var[int]) (last, left, resumed int) {
	tx, w := idle.Get().(*Tx), new(count)
	tx.now = clock.Load()
	for i := range vars {
		vars[i].Get(tx)
	}
	tx.prepareWait()
	last = len(tx.reads) - tx.linked
	guard.Lock()
	tx.waitLocked(w)
	guard.Unlock()
	set := func(v *Var[int]) {
		_, _ = Try(func(tx *Tx) error { v.Set(tx, 1); return nil })
	}
	set(&vars[0])
	for i := range vars {
		left += vars[i].Linked()
	}
	for i := range vars {
		set(&vars[i])
	}
	tx.recycle()
	return last, left, int(*w)
}
