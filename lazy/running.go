package lazy

import "sync"

// running holds the innermost forcing of each goroutine that runs a function. It is divided, so that two goroutines rarely
// share a lock. A goroutine finds its own entry only, so a checker need not see the locks, which differ with the id.
var running [64]struct {
	sync.Mutex
	innermost map[int64]*forcing
	_         [48]byte // a cache line each
}

func innermost(gid int64) *forcing {
	s := &running[uint64(gid)%uint64(len(running))]
	s.Lock()
	defer s.Unlock()
	return s.innermost[gid]
}

// begin makes f the innermost forcing of its goroutine.
func (f *forcing) begin() {
	s := &running[uint64(f.gid)%uint64(len(running))]
	s.Lock()
	defer s.Unlock()
	if s.innermost == nil {
		s.innermost = map[int64]*forcing{}
	}
	f.outer = s.innermost[f.gid]
	s.innermost[f.gid] = f
}

// end undoes begin.
func (f *forcing) end() {
	s := &running[uint64(f.gid)%uint64(len(running))]
	s.Lock()
	defer s.Unlock()
	if f.outer != nil {
		s.innermost[f.gid] = f.outer
		f.outer = nil
	} else {
		delete(s.innermost, f.gid)
	}
}
