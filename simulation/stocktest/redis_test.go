package stocktest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/braidgo/braid/simulation"
)

// counts holds the data of the fake servers of redis and Postgres.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) incr(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[key]++
	return c.of[key]
}

// serve listens on a port of the node server, with a goroutine for each connection.
func serve(w *world, port int, talk func(c net.Conn)) {
	w.Node("server").Start(func(ctx context.Context, h *simulation.Host) {
		ln, err := h.Listen("tcp", fmt.Sprint(":", port))
		for err == nil {
			var c net.Conn
			if c, err = ln.Accept(); err == nil {
				go func() { defer c.Close(); talk(c) }()
			}
		}
		w.Log("%v", err)
	})
}

// resp implements as much of the protocol as the client uses.
func (c *counts) resp(conn net.Conn) {
	r := bufio.NewReader(conn)
	line := func() string { s, _ := r.ReadString('\n'); return strings.TrimSpace(s) }
	for {
		head := line()
		if head == "" {
			return
		}
		var args []string
		for n, _ := strconv.Atoi(head[1:]); len(args) < n; {
			_ = line()
			args = append(args, line())
		}
		answer := "+OK\r\n"
		switch strings.ToLower(args[0]) {
		case "hello":
			answer = "-ERR unknown command\r\n"
		case "incr":
			answer = fmt.Sprintf(":%d\r\n", c.incr(args[1]))
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// increments runs 30 goroutines with a pool of 10 connections. Each increments a key of its own ten times.
func increments(ctx context.Context, w *world) error {
	const goroutines, calls = 30, 10
	w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Reset: 0.01})
	data := &counts{of: map[string]int{}}
	serve(w, 6379, data.resp)
	errs := make(chan error, 1)
	w.Node("client").Start(func(ctx context.Context, h *simulation.Host) {
		client := redis.NewClient(&redis.Options{
			Addr: "server:6379", Dialer: h.Dial, PoolSize: 10, MaxRetries: 3, ReadTimeout: 300 * time.Millisecond, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // otherwise the client looks up a name
		})
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() {
				for k := range calls {
					for done := false; !done; {
						ctx, cancel := context.WithTimeout(ctx, time.Second)
						err := client.Incr(ctx, fmt.Sprint("k", i)).Err()
						cancel()
						if done = err == nil; !done {
							w.Log("%d %d: %v", i, k, err)
						}
					}
					_ = client.Set(ctx, fmt.Sprint("s", i), "v", 0).Err()
				}
			})
		}
		wg.Wait()
		errs <- client.Close()
	})
	if err := <-errs; err != nil {
		return err
	}
	return data.atLeast(goroutines, calls)
}

// atLeast checks the keys k0, k1 and so on. A repeated call may have been counted twice.
func (c *counts) atLeast(keys, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range keys {
		if got := c.of[fmt.Sprint("k", i)]; got < n {
			return fmt.Errorf("k%d is %d", i, got)
		}
	}
	return nil
}

func TestRedis(t *testing.T) { run(t, 20, increments) }
