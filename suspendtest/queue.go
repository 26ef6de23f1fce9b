package suspendtest

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// A store is a minimal primitive: takers wait in a Queue, and the method put gives the value to the first taker that is not
// cancelled. Without such a taker, the store keeps the value.
type store struct {
	guard   suspend.Guard
	waiters suspend.Queue[*box, int]
	stock   []*box
}

func (s *store) Guard() *suspend.Guard           { return &s.guard }
func (s *store) Enqueue(r suspend.Resumer[*box]) { s.waiters.Push(r, 0) }
func (s *store) Remove(r suspend.Resumer[*box])  { s.waiters.Remove(r) }

func (s *store) Try() (v *box, ok bool, _ error) {
	n := len(s.stock)
	if n == 0 {
		return nil, false, nil
	}
	v, s.stock = s.stock[n-1], s.stock[:n-1]
	return v, true, nil
}

// get takes a value by means of suspend.Suspend.
func (s *store) get(ctx context.Context) (*box, error) {
	var self suspend.Resumer[*box]
	v, err := suspend.Suspend(ctx, func(r suspend.Resumer[*box]) (*box, bool) {
		s.guard.Lock()
		defer s.guard.Unlock()
		if v, ok, _ := s.Try(); ok {
			return v, true
		}
		self = r
		s.waiters.Push(r, 0)
		return nil, false
	})
	if err != nil {
		s.guard.Lock()
		s.waiters.Remove(self)
		s.guard.Unlock()
	}
	return v, err
}

// wait takes a value by means of suspend.Wait.
func (s *store) wait(ctx context.Context) (*box, error) {
	return suspend.Wait[*box](ctx, s)
}

func (s *store) put(v *box) {
	s.guard.Lock()
	defer s.guard.Unlock()
	if _, ok := s.waiters.Resume(v, nil); !ok {
		s.stock = append(s.stock, v)
	}
}

// storeOps are the operations of a store, for queueStorm.
type storeOps struct {
	Take, Wait func(s *store, ctx context.Context) (*box, error)
	Put        func(s *store, v *box)
}

var rightStore = storeOps{(*store).get, (*store).wait, (*store).put}

// queueStorm cancels every second wait, at an arbitrary time, while values are put into a store.
func queueStorm(e *env) {
	const takers, each = 20, 30
	var s store
	var taken [takers * each]atomic.Int32
	var cancelled, got atomic.Int32
	var ended []chan struct{}
	cancels := make(chan func(), takers*each)
	for k := range takers {
		ended = append(ended, e.task(func() {
			for i := range each {
				e.progress()
				ctx, cancel := contextKinds[(k+i)%len(contextKinds)].make()
				if (k+i/2)%2 == 0 {
					cancels <- cancel
				}
				take := e.opts.store.Take
				if i%3 > 0 {
					take = e.opts.store.Wait
				}
				if v, err := take(&s, ctx); err == nil {
					taken[v.n].Add(1)
					got.Add(1)
				} else { // another taker gets the value
					e.isCancellation(ctx, err)
					cancelled.Add(1)
				}
			}
		}))
	}
	recv(e, cancels, "no task took a value")()
	e.expect("a cancellation was lost")
	for cancelled.Load() == 0 && !e.over.Load() {
		runtime.Gosched()
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case cancel := <-cancels:
				cancel()
			case <-stop:
				return
			}
		}
	}()
	e.expect("a Resume in the storm does not return")
	for i := range taken {
		e.progress()
		e.opts.store.Put(&s, &box{n: i})
		if i%8 == 0 {
			runtime.Gosched()
		}
	}
	for _, ended := range ended {
		recv(e, ended, "a task in a storm of cancellations did not continue: a wake-up or a cancellation was lost")
	}
	close(stop)
	recv(e, stopped, "a cancellation blocks")
	for _, v := range s.stock {
		taken[v.n].Add(1)
	}
	for i := range taken {
		if n := taken[i].Load(); n != 1 {
			e.fatalf("value %d was taken %d times", i, n)
		}
	}
	if n := s.waiters.Len(); n != 0 {
		e.errorf("%d waiters are left in the queue", n)
	}
	if got.Load() == 0 || cancelled.Load() == 0 {
		e.errorf("uncovered: %d taken, %d cancelled", got.Load(), cancelled.Load())
	}
}
