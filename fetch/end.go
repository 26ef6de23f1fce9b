package fetch

import (
	"context"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// close ends the driver's Run. It cancels the batches without waiters, and waits for all batches.
func (d *driver) close() {
	s := d.s
	s.guard.Lock()
	d.ended = true
	d.releaseLocked()
	var cancelled []*batch
	for n := d.batches.First(); n != nil; {
		b := n.Value
		n = n.Next() // cancelLocked removes b from the list if b has not started
		if b.needed == 0 && !b.kept && !b.cancelled {
			b.cancelLocked()
			cancelled = append(cancelled, b)
		}
	}
	s.guard.Unlock()
	cancelAll(cancelled, nil)
	defer func() { // a Close cancels the driver's batches until d is removed
		s.guard.Lock()
		s.drivers.Remove(&d.node)
		s.guard.Unlock()
	}()
	_, _ = suspend.Wait[struct{}](context.Background(), (*driverEnd)(d))
}

// releaseLocked removes the pending requests of a driver whose Run or session has ended. Unless the session has ended, the
// settled driver takes the requests over, because tasks of other Runs may wait for them.
func (d *driver) releaseLocked() {
	for _, list := range []*dlist.List[*request]{&d.reads, &d.writes} {
		for n := list.First(); n != nil; n = list.First() {
			q := n.Value
			if !d.s.ended {
				d.s.settled.addLocked(q)
				continue
			}
			list.Pop()
			q.state, q.err = gone, errEnded
			q.resumeLocked(false)
		}
	}
}

// A driverEnd is the suspend.Source on which an ending Run waits until none of its batches is open.
type driverEnd driver

func (d *driverEnd) Guard() *suspend.Guard { return &d.s.guard }

func (d *driverEnd) Try() (v struct{}, ok bool, err error) { return v, d.batches.First() == nil, nil }

func (d *driverEnd) Enqueue(r suspend.Resumer[struct{}]) { d.ender = r }

func (d *driverEnd) Remove(suspend.Resumer[struct{}]) {}
