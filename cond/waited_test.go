package cond

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

// A Signal without waiters takes no lock, neither at first nor after the last waiter has left, however it left.
func TestSignalThatMeetsNobodyTakesNoLock(t *testing.T) {
	defer time.AfterFunc(10*time.Second, func() { panic("cond: the guard was taken") }).Stop()
	var mu sync.Mutex
	c := New(&mu)
	meetNobody := func() {
		c.guard.Lock()
		defer c.guard.Unlock()
		c.Signal()
		c.Broadcast()
	}
	meetNobody()
	ctx, cancel := context.WithCancel(context.Background())
	for _, leave := range []func(){c.Signal, c.Broadcast, cancel} {
		var left sync.WaitGroup
		left.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			if err := c.Wait(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for !c.waited.Load() {
			runtime.Gosched()
		}
		leave()
		left.Wait()
		meetNobody()
	}
}
