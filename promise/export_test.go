package promise

// Following returns the number of followers of p.
func Following[T any](p *Promise[T]) (n int) {
	p.guard.Lock()
	defer p.guard.Unlock()
	for t := p.followers.First(); t != nil; t = t.Next() {
		n++
	}
	return n
}
