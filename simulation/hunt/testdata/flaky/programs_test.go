// Package flaky has programs that rarely fail natively: at most two of 20,000 runs.
package flaky

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// lostUpdate has two critical sections that should be one.
func lostUpdate() error {
	var mu sync.Mutex
	var all sync.WaitGroup
	n := 0
	for range 3 {
		all.Go(func() {
			mu.Lock()
			v := n
			mu.Unlock()
			mu.Lock()
			n = v + 1
			mu.Unlock()
		})
	}
	all.Wait()
	if n != 3 {
		return fmt.Errorf("3 were added, and the counter is %d", n)
	}
	return nil
}

// lostAtomic reads and writes an atomic counter separately.
func lostAtomic() error {
	var n atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { n.Store(n.Load() + 1) })
	}
	all.Wait()
	if got := n.Load(); got != 3 {
		return fmt.Errorf("3 were added, and the counter is %d", got)
	}
	return nil
}

func closeRace() error {
	p := &pool{jobs: make(chan func(), 10)}
	errs := make(chan error)
	for range 3 {
		go func() {
			defer func() {
				if v := recover(); v != nil {
					errs <- fmt.Errorf("submit: %v", v)
				}
			}()
			p.submit(func() {})
			errs <- nil
		}()
	}
	p.close()
	var err error
	for range 3 {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}

// lateCancel expects that a goroutine sees the cancel of a context if it looks at the context five times.
func lateCancel() error {
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan bool)
	var result atomic.Value
	go func() {
		close(started)
		for range 5 {
			if ctx.Err() != nil {
				return
			}
		}
		result.Store("done")
	}()
	<-started
	cancel()
	if result.Load() != nil {
		return fmt.Errorf("the work has ended before the cancel")
	}
	return nil
}

// lateSend sends to a channel that another goroutine may have closed.
func lateSend() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	c, done := make(chan int, 4), make(chan bool)
	go func() {
		close(c)
		close(done)
	}()
	select {
	case c <- 1:
	case <-done:
	}
	<-done
	return nil
}

// startOrder expects that the goroutine that was started last runs first, as it does with one processor.
func startOrder() error {
	var mu sync.Mutex
	var got []int
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			mu.Lock()
			got = append(got, i)
			mu.Unlock()
		})
	}
	all.Wait()
	if got[0] != 1 {
		return fmt.Errorf("the order is %v", got)
	}
	return nil
}

// sameMoment expects that functions of two timers of one moment run in the order in which the timers were made.
func sameMoment() error {
	c := make(chan int, 2)
	for i := range 2 {
		time.AfterFunc(time.Millisecond, func() { c <- i })
	}
	if <-c != 0 {
		return fmt.Errorf("the second timer came first")
	}
	return nil
}

// lockOrder takes two locks in both orders.
func lockOrder() error {
	var a, b sync.Mutex
	var all sync.WaitGroup
	both := func(first, second *sync.Mutex) func() {
		return func() {
			first.Lock()
			second.Lock()
			second.Unlock()
			first.Unlock()
		}
	}
	all.Go(both(&a, &b))
	all.Go(both(&b, &a))
	all.Wait()
	return nil
}

// unlocked assigns outside of the critical section, which is a data race.
func unlocked() error {
	var mu sync.Mutex
	var all sync.WaitGroup
	n, last := 0, 0
	for i := range 3 {
		all.Go(func() {
			mu.Lock()
			n++
			mu.Unlock()
			last = i
		})
	}
	all.Wait()
	if last != 2 {
		return fmt.Errorf("the last one of %d is %d", n, last)
	}
	return nil
}
