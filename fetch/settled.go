package fetch

import "runtime"

// defaultSettle is how many turns others get. Fewer make more batches of a crowd; many more bring nothing.
const defaultSettle = 10

// settle sends what goroutines that are no tasks have asked for. Nobody can know whether more of them are coming. It lets others
// run, and when for a few turns none has asked, the requests go out.
func (d *driver) settle() {
	s := d.s
	turns := s.opts.Settle
	if turns == 0 {
		turns = defaultSettle
	}
	seen := 0
	for quiet, all := 0, 0; quiet < turns && all < 100*turns; all++ {
		runtime.Gosched()
		s.guard.Lock()
		n := s.stats.Gets
		s.guard.Unlock()
		if quiet++; n != seen {
			quiet, seen = 0, n
		}
	}
	d.idle()
}
