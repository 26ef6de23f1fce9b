// Overload sends two servers more requests than they can serve, and prints how many requests each server still answers in time.
//
//	go run ./examples/overload             prints the table, in twenty seconds
//	go run ./examples/overload -stay       then stays at five times the capacity until interrupted; open the page
//
// The resource serves 40 requests in parallel, each in about 10 ms, so its capacity is 4000 requests per second. Clients give up after 100
// ms. The good/capacity figure is the rate of requests answered in time, divided by the capacity. One server starts a goroutine for each
// request and protects the resource with a semaphore; the other uses a stage. The figures are measured in real time, so the machine must be
// otherwise idle.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/view"
)

const (
	slots    = 40
	capacity = 4000.0
	patience = 100 * time.Millisecond
)

// use occupies the resource for the duration of one request.
func use() { time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond)) }

type server func(ctx context.Context) error

func goroutines() server {
	sem := semaphore.New(slots)
	return func(ctx context.Context) error {
		if err := sem.Acquire(ctx, 1); err != nil {
			return err
		}
		defer sem.Release(1)
		use()
		return nil
	}
}

func staged() (server, *stage.Stage[struct{}, struct{}]) {
	s := stage.New("resource", func(context.Context, struct{}) (struct{}, error) {
		use()
		return struct{}{}, nil
	}, stage.Options{Width: slots, Queue: 160, Reject: true, Delay: 5 * time.Millisecond})
	return func(ctx context.Context) error {
		_, err := s.Do(ctx, struct{}{})
		return err
	}, s
}

// A result is the measurement of one server under one load.
type result struct {
	good       float64
	p99        time.Duration
	goroutines int
}

// offer sends requests to a server, at a rate of load times the capacity, for the duration d.
func offer(ctx context.Context, serve server, load float64, d time.Duration) (r result) {
	var mu sync.Mutex
	var good []time.Duration
	var all sync.WaitGroup
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for sent := 0; time.Since(start) < d && ctx.Err() == nil; <-tick.C {
		for ; float64(sent) < time.Since(start).Seconds()*load*capacity; sent++ {
			all.Go(func() {
				began := time.Now()
				c, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if serve(c) != nil {
					return
				}
				if took := time.Since(began); took <= patience {
					mu.Lock()
					good = append(good, took)
					mu.Unlock()
				}
			})
		}
		r.goroutines = max(r.goroutines, runtime.NumGoroutine())
	}
	elapsed := time.Since(start)
	all.Wait()
	slices.Sort(good)
	if n := len(good); n > 0 {
		r.p99 = good[n*99/100]
	}
	r.good = float64(len(good)) / elapsed.Seconds() / capacity
	return r
}

// table measures both servers at each load, and prints a row for each server.
func table(ctx context.Context, w io.Writer, staged server, loads []float64, d time.Duration) {
	fmt.Fprintf(w, "%-24s", "good/capacity (p99) at")
	for _, load := range loads {
		fmt.Fprintf(w, "%18s", fmt.Sprintf("%gx", load))
	}
	fmt.Fprintln(w)
	for _, s := range []struct {
		name  string
		serve server
	}{{"goroutine per request", goroutines()}, {"stage", staged}} {
		fmt.Fprintf(w, "%-24s", s.name)
		for _, load := range loads {
			r := offer(ctx, s.serve, load, d)
			fmt.Fprintf(w, "%18s", fmt.Sprintf("%.2f (%v)", r.good, r.p99.Round(time.Millisecond)))
		}
		fmt.Fprintln(w)
	}
}

func main() {
	d := flag.Duration("for", 2*time.Second, "time for each load")
	addr := flag.String("addr", "127.0.0.1:8080", "the address of the page")
	stay := flag.Bool("stay", false, "then continue at five times the capacity")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	serve, s := staged()
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = http.Serve(l, view.Handler(s)) }()
	fmt.Printf("the stage: http://%s\n\n", l.Addr())
	table(ctx, os.Stdout, serve, []float64{0.5, 1, 2, 5}, *d)
	if *stay {
		fmt.Println("\nnow at 5x, until you interrupt")
		for ctx.Err() == nil {
			offer(ctx, serve, 5, time.Second)
		}
	}
	if err := s.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}
