package stage

// IdleWorkers counts the idle workers of the pool of s.
func IdleWorkers[In, Out any](s *Stage[In, Out]) int { return s.pool.Stats().Idle }

// Ticking reports whether the pool of s has a timer.
func Ticking[In, Out any](s *Stage[In, Out]) bool {
	s.pool.guard.Lock()
	defer s.pool.guard.Unlock()
	return s.pool.ticking
}

// HistogramOf returns the histogram of durations.
func HistogramOf(ds []int64) (h Histogram) {
	for _, d := range ds {
		h.add(d)
	}
	return h
}

// Loaded counts the stages at which the pool looks.
func Loaded(p *Pool) int {
	p.guard.Lock()
	defer p.guard.Unlock()
	return len(p.loaded)
}

// Waiting counts the queued tasks of all stages of p.
func Waiting(p *Pool) int {
	p.guard.Lock()
	defer p.guard.Unlock()
	return p.waiting
}
