package promise

// Following returns the number of followers of p.
func Following[T any](p *Promise[T]) (n int) {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.follow != nil {
		n = p.follow.len
	}
	return n
}
