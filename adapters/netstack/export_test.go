package netstack

// Open is how many endpoints a Close would close.
func (s *Stack) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
