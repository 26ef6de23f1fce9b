package stocktest

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
)

// An env is a scheduler with its network, as the code of a row sees it.
type env struct {
	spawn  func(f func()) error
	dial   Dial
	listen func(network, address string) (net.Listener, error)
	end    func() error
	server string // the address of the server that the row needs

	took time.Duration // the total time of the tasks
	mu   sync.Mutex
	open []func() error
}

// A task of the pool that waits on a connection of package net blocks its worker.
var schedulers = []struct {
	name string
	make func(stalled func(report []byte)) (*env, error)
}{
	{"reactor", reactor(0)},
	{"held", reactor(-1)},
	{"pool", func(stalled func([]byte)) (*env, error) {
		p := workstealing.New(workstealing.Options{Workers: 1, GrowAfter: 10 * time.Millisecond, OnStall: stalled})
		return &env{spawn: p.Go, dial: new(net.Dialer).DialContext, listen: net.Listen, end: p.Close}, nil
	}},
	{"goroutines", func(func([]byte)) (*env, error) {
		spawn := func(f func()) error { go f(); return nil }
		return &env{spawn: spawn, dial: new(net.Dialer).DialContext, listen: net.Listen, end: func() error { return nil }}, nil
	}},
}

// reactor makes an env of one reactor. If handOver is negative, there are no hand-overs.
func reactor(handOver time.Duration) func(stalled func([]byte)) (*env, error) {
	return func(stalled func([]byte)) (*env, error) {
		loop, err := eventloop.New(eventloop.Options{Loops: 1, HandOver: handOver, OnStall: stalled})
		listen := func(network, address string) (net.Listener, error) { return loop.Listen(network, address) }
		return &env{spawn: loop.Go, dial: Over(loop), listen: listen, end: loop.Close}, err
	}
}

// tasks runs f in n tasks, several times in each, and returns the first error when all have ended. It must not be called from a
// task.
func (e *env) tasks(n, times int, f func(task int) error) error {
	begin := time.Now()
	defer func() { e.took += time.Since(begin) }()
	errs := make(chan error, n)
	for i := range n {
		if err := e.spawn(func() {
			for range times {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}); err != nil {
			return err
		}
	}
	var first error
	for range n {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// serve accepts connections in a task, runs handle in a task for each of them, and returns the address.
func (e *env) serve(handle func(c net.Conn)) (address string, err error) {
	ln, err := e.listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	e.atEnd(ln.Close)
	return ln.Addr().String(), e.spawn(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // the listener is closed
			}
			e.atEnd(c.Close)
			if e.spawn(func() { defer c.Close(); handle(c) }) != nil {
				_ = c.Close()
			}
		}
	})
}

// beside returns an env of goroutines and package net, for the other side of a client or a server.
func (e *env) beside() *env {
	other, _ := schedulers[len(schedulers)-1].make(nil)
	e.atEnd(other.close)
	return other
}

func (e *env) atEnd(f func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, f)
}

// close closes what serve has opened, and ends the scheduler after its tasks.
func (e *env) close() error {
	e.mu.Lock()
	open := e.open
	e.mu.Unlock()
	for _, f := range open {
		_ = f()
	}
	return e.end()
}

// A sibling is a task that only sleeps, and measures how late it is woken.
type sibling struct {
	mu   sync.Mutex
	due  time.Time
	late []time.Duration
}

func (s *sibling) run(ctx context.Context) {
	const nap = 5 * time.Millisecond
	for ctx.Err() == nil {
		s.mu.Lock()
		s.due = time.Now().Add(nap)
		s.mu.Unlock()
		if suspend.Sleep(ctx, nap) != nil {
			return
		}
		s.mu.Lock()
		s.late = append(s.late, time.Since(s.due))
		s.mu.Unlock()
	}
}

// delays returns the longest delay so far, including that of the current sleep, and the 99th percentile.
func (s *sibling) delays() (longest, p99 time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(slices.Clone(s.late), max(0, time.Since(s.due)))
	slices.Sort(all)
	return all[len(all)-1], all[(len(all)-1)*99/100]
}
