package native

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

type cache struct {
	sync.Mutex
	mu   sync.RWMutex
	line *mvar.MVar[int]
}

func wrong(ctx context.Context, s *fifo.Scheduler, l *callback.Loop, ch chan int, wg *sync.WaitGroup, c *cache) {
	_ = s.Go(func() {
		ch <- 1  // want `a send to a channel blocks all tasks of the fifo.Scheduler: call it in suspend.Blocking`
		select { // want `a select blocks all`
		case <-ch:
		case <-ctx.Done():
			time.Sleep(1) // want `time.Sleep blocks all`
		}
	})
	_ = fifo.Run(ctx, func(ctx context.Context) error {
		for range ch { // want `a range over a channel blocks all`
		}
		func() { wg.Wait() }() // want `sync.WaitGroup.Wait blocks all`
		helper(ch)             // want `a receive from a channel blocks all`
		return nil
	})
	_ = l.Go(c.locked)
	_ = l.Go(func() {
		wait := func() { <-ch } // want `a receive from a channel blocks all`
		wait()
		switch {
		case ch != nil:
			c.Lock() // want `c is held while mvar.MVar.Take suspends`
			_, _ = c.line.Take(ctx)
			c.Unlock()
		}
	})
	_ = promise.Go(ctx, l, func(ctx context.Context) (int, error) { return <-ch, nil }) // want `a receive from a channel blocks all tasks of the callback.Loop`
}

func helper(ch chan int) int { return deeper(ch) }
func deeper(ch chan int) int { return <-ch }

func (c *cache) locked() {
	c.mu.RLock() // want `c.mu is held while mvar.MVar.Take suspends: a task of the callback.Loop that locks it then blocks all`
	defer c.mu.RUnlock()
	_, _ = c.line.Take(context.Background())
}

func hand(f func()) { f() }

func right(ctx context.Context, s *fifo.Scheduler, p *workstealing.Pool, ch chan int, c *cache) {
	done := make(chan int, 1)
	_ = s.Go(func() {
		done <- 1
		select {
		case <-ch:
		default:
		}
		go func() { ch <- 1 }()
		go hand(func() { <-ch })
		c.mu.Lock()
		if c.line != nil {
			c.mu.Unlock()
			_, _ = c.line.Take(ctx)
			return
		}
		c.mu.Unlock()
		c.Lock()
		c.Unlock()
		_, _ = c.line.Take(ctx)
		_ = suspend.Blocking(ctx, func() { <-ch })
	})
	_ = p.Go(func() { <-ch })                                       // the pool takes another thread
	input := func(yield func(int, error) bool) { yield(<-ch, nil) } // on the reader
	for range scope.Stream(ctx, s, 2, input, func(context.Context, int) (int, error) { return 1, nil }) {
	}
	_ = scope.Run(ctx, func(ctx context.Context, sc *scope.Scope) error {
		<-ch // on the caller
		return nil
	})
}
