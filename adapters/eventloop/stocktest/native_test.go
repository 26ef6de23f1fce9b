package stocktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/braidgo/braid/suspend"
)

// The code of these rows blocks natively, while it, or the tasks for which it waits, may suspend.
var nativeRows = []row{
	{name: "a channel between two tasks", held: deadlock, run: func(ctx context.Context, e *env) error {
		ping, pong := make(chan int), make(chan int)
		return e.tasks(2, 1, func(task int) error {
			for i := range 20 {
				if task == 0 {
					ping <- i
					<-pong
				} else {
					pong <- <-ping
				}
			}
			return nil
		})
	}},
	{name: "sync.Mutex held across a wait", held: deadlock, run: func(ctx context.Context, e *env) error {
		var mu sync.Mutex
		return e.tasks(10, 5, func(int) error {
			mu.Lock()
			defer mu.Unlock()
			return suspend.Sleep(ctx, time.Millisecond)
		})
	}},
	{name: "sync.RWMutex held across a wait", held: deadlock, run: func(ctx context.Context, e *env) error {
		var mu sync.RWMutex
		return e.tasks(10, 5, func(task int) error {
			if task == 0 {
				mu.Lock()
				defer mu.Unlock()
			} else {
				mu.RLock()
				defer mu.RUnlock()
			}
			return suspend.Sleep(ctx, time.Millisecond)
		})
	}},
	{name: "sync.WaitGroup for tasks", held: deadlock, run: func(ctx context.Context, e *env) error {
		return e.tasks(5, 5, func(int) error {
			var all sync.WaitGroup
			for range 5 {
				all.Add(1)
				_ = e.spawn(func() { defer all.Done(); _ = suspend.Sleep(ctx, time.Millisecond) })
			}
			all.Wait()
			return nil
		})
	}},
	{name: "sync.Cond", held: deadlock, run: func(ctx context.Context, e *env) error {
		var mu sync.Mutex
		filled, n := sync.NewCond(&mu), 0
		return e.tasks(2, 1, func(task int) error {
			for range 20 {
				if task == 0 {
					mu.Lock()
					for n == 0 {
						filled.Wait()
					}
					n--
					mu.Unlock()
					continue
				}
				if err := suspend.Sleep(ctx, time.Millisecond); err != nil {
					return err
				}
				mu.Lock()
				n++
				mu.Unlock()
				filled.Signal()
			}
			return nil
		})
	}},
	{name: "sync.Once across I/O", held: deadlock, run: func(ctx context.Context, e *env) error {
		address, err := e.beside().serve(echo)
		if err != nil {
			return err
		}
		var once [10]sync.Once
		return e.tasks(20, 1, func(int) (err error) {
			for i := range once {
				once[i].Do(func() { err = ask(ctx, e, address) })
			}
			return err
		})
	}},
	{name: "singleflight across I/O", held: deadlock, run: func(ctx context.Context, e *env) error {
		address, err := e.beside().serve(echo)
		if err != nil {
			return err
		}
		var flights singleflight.Group
		return e.tasks(20, 10, func(int) error {
			_, err, _ := flights.Do("key", func() (any, error) { return nil, ask(ctx, e, address) })
			return err
		})
	}},
	{name: "errgroup over connections", held: deadlock, run: func(ctx context.Context, e *env) error {
		address, err := e.beside().serve(echo)
		if err != nil {
			return err
		}
		return e.tasks(10, 5, func(int) error {
			g, ctx := errgroup.WithContext(ctx)
			for range 5 {
				g.Go(func() error { return ask(ctx, e, address) })
			}
			return g.Wait()
		})
	}},
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

// ask sends a line to an echo server, on a new connection, and reads it back.
func ask(ctx context.Context, e *env, address string) error {
	c, err := e.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	return exchange(c)
}

// exchange sends a message to an echo server, and reads it back.
func exchange(c io.ReadWriter) error {
	const message = "hello"
	if _, err := io.WriteString(c, message); err != nil {
		return err
	}
	var b [len(message)]byte
	if _, err := io.ReadFull(c, b[:]); err != nil || string(b[:]) != message {
		return fmt.Errorf("%q: %w", b, err)
	}
	return nil
}
