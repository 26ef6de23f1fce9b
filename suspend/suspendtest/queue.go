package suspendtest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// queueStorm moves values through the smallest primitive that there is: takers wait in a Queue, and a put serves
// the first that is not cancelled, or else keeps the value.
func queueStorm(e *env) {
	const takers, perTaker = 20, 30
	var guard suspend.Guard
	var queue suspend.Queue[*box, int]
	var stock []*box
	take := func(ctx context.Context) (*box, error) {
		var self suspend.Resumer[*box]
		v, err := suspend.Suspend(ctx, func(r suspend.Resumer[*box]) (*box, bool) {
			guard.Lock()
			defer guard.Unlock()
			if n := len(stock); n > 0 {
				v := stock[n-1]
				stock = stock[:n-1]
				return v, true
			}
			self = r
			queue.Push(r, 0)
			return nil, false
		})
		if err != nil {
			guard.Lock()
			queue.Remove(self)
			guard.Unlock()
		}
		return v, err
	}
	put := func(v *box) {
		guard.Lock()
		defer guard.Unlock()
		if _, ok := queue.Resume(v, nil); !ok {
			stock = append(stock, v)
		}
	}
	var taken [takers * perTaker]atomic.Int32
	var cancelled, got atomic.Int32
	var ended []chan struct{}
	cancels := make(chan func(), takers)
	for k := range takers {
		ended = append(ended, e.task(func() {
			for i := 0; i < perTaker && !e.over.Load(); {
				ctx, cancel := contextKinds[(k+i)%7].make()
				if (k+i)%2 == 0 || i == 0 {
					select {
					case cancels <- cancel:
					default:
					}
				}
				v, err := take(ctx)
				if err != nil {
					cancelled.Add(1)
					i++ // its value is somebody else's
					continue
				}
				taken[v.n].Add(1)
				got.Add(1)
				i++
			}
		}))
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case cancel := <-cancels:
				cancel()
			case <-stop:
				return
			}
		}
	})
	e.expect("a Resume in a storm blocks")
	for i := range taken {
		put(&box{n: i})
		if i%8 == 0 {
			runtime.Gosched()
		}
	}
	for _, ended := range ended {
		recv(e, ended, "a task in a storm of cancellations did not go on: a wake-up or a cancellation was lost")
	}
	close(stop)
	wg.Wait()
	left := len(stock)
	for _, v := range stock {
		taken[v.n].Add(1)
	}
	for i := range taken {
		if n := taken[i].Load(); n != 1 {
			e.fatalf("value %d was taken %d times", i, n)
		}
	}
	if queue.Len() != 0 || int(got.Load())+left != len(taken) {
		e.errorf("%d values taken and %d left of %d, and %d waiters", got.Load(), left, len(taken), queue.Len())
	}
	if got.Load() == 0 || cancelled.Load() == 0 {
		e.errorf("uncovered: %d taken, %d cancelled", got.Load(), cancelled.Load())
	}
}
