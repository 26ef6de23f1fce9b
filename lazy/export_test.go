package lazy

// Waiting returns the number of tasks that wait in Force.
func (l *Lazy[T]) Waiting() int {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.forcers.Len()
}
