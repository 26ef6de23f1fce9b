// Package overload offers a server more than it can do, and measures how much of it is answered in time.
//
// It is made for the virtual time of testing/synctest, so that a run of seconds takes a fraction of a second, and repeats.
package overload

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
)

// The resource serves Slots requests in parallel, each in Service on average, so its capacity is 4000 a second. Clients give up after
// Patience.
const (
	Slots    = 40
	Service  = 10 * time.Millisecond
	Patience = 100 * time.Millisecond
	Capacity = float64(Slots) / (float64(Service) / float64(time.Second))
)

// A Server answers a request. Close is called when all requests have been answered.
type Server struct {
	Name  string
	Serve func(ctx context.Context) error
	Close func()
}

// A Result says how the requests after the warm-up fared.
type Result struct {
	Good       float64       // the rate of answers in time, as a part of capacity
	P99        time.Duration // the 99th percentile of the time to an answer in time
	No         time.Duration // the median time to another answer
	Goroutines int           // the 95th percentile, without a goroutine for each request
}

// lognormal returns durations with this mean and a standard deviation of about half of it.
func lognormal(r *rand.Rand, mean time.Duration) time.Duration {
	const sigma = 0.47
	return time.Duration(float64(mean) * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2))
}

// Resource returns a function that takes the time of one request. Many goroutines may call it at the same time.
func Resource(seed uint64) func() {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 1))
	return func() {
		mu.Lock()
		d := lognormal(r, Service)
		mu.Unlock()
		time.Sleep(d)
	}
}

// Goroutines is the server that Go programs have: a goroutine for each request, and a semaphore before the resource.
func Goroutines() Server {
	use, sem := Resource(1), semaphore.New(Slots)
	return Server{Name: "goroutine per request", Close: func() {}, Serve: func(ctx context.Context) error {
		if err := sem.Acquire(ctx, 1); err != nil {
			return err
		}
		defer sem.Release(1)
		use()
		return nil
	}}
}

// Staged is the server with a stage before the resource.
func Staged(name string, o stage.Options) Server {
	use := Resource(1)
	o.Width, o.Full = Slots, stage.FullReject
	s := stage.New("resource", func(context.Context, struct{}) (struct{}, error) {
		use()
		return struct{}{}, nil
	}, o)
	return Server{Name: name,
		Serve: func(ctx context.Context) error {
			_, err := s.Do(ctx, struct{}{})
			return err
		},
		Close: func() { _ = s.Close(context.Background()) },
	}
}

// Run offers load times the capacity for a time, as a Poisson process.
func Run(s Server, load float64, warm, measured time.Duration) Result {
	r := rand.New(rand.NewPCG(2, 2))
	var mu sync.Mutex
	var good, no []time.Duration
	var all sync.WaitGroup
	before := runtime.NumGoroutine()
	live := 0
	var goroutines []time.Duration // numbers of goroutines; the largest may contain dead goroutines, so a quantile is used instead
	start := time.Now()
	at := start
	for {
		at = at.Add(time.Duration(r.ExpFloat64() / (load * Capacity) * float64(time.Second)))
		if at.Sub(start) > warm+measured {
			break
		}
		time.Sleep(time.Until(at))
		counts := at.Sub(start) > warm
		mu.Lock()
		live++
		mu.Unlock()
		all.Go(func() {
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), Patience)
			err := s.Serve(ctx)
			cancel()
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			live--
			switch {
			case !counts:
			case err == nil && took <= Patience:
				good = append(good, took)
			default:
				no = append(no, took)
			}
		})
		mu.Lock()
		goroutines = append(goroutines, time.Duration(runtime.NumGoroutine()-before-live))
		mu.Unlock()
	}
	all.Wait()
	s.Close()
	slices.Sort(good)
	slices.Sort(no)
	slices.Sort(goroutines)
	return Result{
		Good: float64(len(good)) / measured.Seconds() / Capacity,
		P99:  quantile(good, 0.99), No: quantile(no, 0.5), Goroutines: int(quantile(goroutines, 0.95)),
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
