package flaky

import (
	"sync"
	"testing"
	"time"
)

func TestCounter(t *testing.T) {
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
		t.Fatalf("the counter is %d", n)
	}
}

// A pool checks whether it is closed before it sends to a channel that close closes.
type pool struct {
	mu     sync.Mutex
	closed bool
	jobs   chan func()
}

func (p *pool) submit(f func()) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if !closed {
		p.jobs <- f
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.jobs)
}

func TestSubmit(t *testing.T) {
	p := &pool{jobs: make(chan func(), 10)}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { p.submit(func() {}) })
	}
	p.close()
	all.Wait()
}

// TestWork sleeps for longer than the work takes, and hopes that this is enough.
func TestWork(t *testing.T) {
	done := make(chan bool, 1)
	go func() {
		time.Sleep(10 * time.Millisecond) // the work
		done <- true
	}()
	time.Sleep(20 * time.Millisecond)
	select {
	case <-done:
	default:
		t.Error("the work has not ended")
	}
}
