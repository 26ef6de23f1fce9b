//go:build explore

package workstealing

import (
	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/suspend"
)

// What follows is for the model checker: parts of a pool without its goroutines.

// A Deque is that of a worker, for numbers.
type Deque struct {
	d     deque
	forks []*fork
}

// NewDeque returns one whose ring has this size, a power of two, and whose first index is at.
func NewDeque(size int, at uint64) *Deque {
	d := new(Deque)
	d.d.init(at)
	r := make(ring, size)
	d.d.ring.Store(&r)
	return d
}

// Make makes the numbers below n, which are to be made before they are used.
func (d *Deque) Make(n int) {
	for range n {
		d.forks = append(d.forks, new(fork))
	}
}

func (d *Deque) number(f *fork) int {
	for i, x := range d.forks {
		if x == f {
			return i
		}
	}
	return -1
}

// Push, Pop, PopIf and Steal are those of a deque; -1 is no number.
func (d *Deque) Push(n int) { d.d.push(d.forks[n]) }

// Pop is for the owner.
func (d *Deque) Pop() int { return d.number(d.d.pop()) }

// PopIf is for the owner.
func (d *Deque) PopIf(n int) bool { return d.d.popIf(d.forks[n]) }

// Steal is for everybody.
func (d *Deque) Steal() (n int, retry bool) {
	f, retry := d.d.steal()
	return d.number(f), retry
}

// A Parking is a pool whose workers are the caller's.
type Parking struct{ p *Pool }

// NewParking returns one for so many workers.
func NewParking(workers int) Parking {
	p := &Pool{workers: make([]*worker, workers)}
	p.goroutines.Store(int64(workers) + 1)
	p.blocking = blocking.New(1, p.exit)
	for i := range p.workers {
		p.workers[i] = newWorker(p, i)
	}
	return Parking{p}
}

// Pool returns it.
func (k Parking) Pool() *Pool { return k.p }

// Worker is the i'th, until the pool is over.
func (k Parking) Worker(i int) {
	w := k.p.workers[i]
	defer k.p.exit()
	w.thread = suspend.Self()
	for {
		var e entry
		var ok bool
		if !w.searching {
			e, ok = w.pick()
		}
		if !ok {
			e, ok = w.search()
		}
		if ok {
			e.f()
			k.p.ended()
		} else if !w.sleep() {
			return
		}
	}
}
