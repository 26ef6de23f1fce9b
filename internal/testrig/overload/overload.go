// Package overload sends a server more requests than the server can handle, and measures how many are answered in time.
//
// The measurements should run in the virtual time of testing/synctest, so that a run of several seconds takes a fraction of a second and
// is repeatable.
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

// The resource handles Slots requests in parallel, and each takes the time Service on average. Its Capacity is therefore 4000 requests
// per second. Clients give up after the time Patience.
const (
	Slots    = 40
	Service  = 10 * time.Millisecond
	Patience = 100 * time.Millisecond
	Capacity = float64(Slots) / (float64(Service) / float64(time.Second))
)

// A Server answers requests with the function Serve. Run calls Close when all requests have been answered.
type Server struct {
	Name  string
	Serve func(ctx context.Context) error
	Close func()
}

// A Result summarises the requests that arrive after the warm-up.
type Result struct {
	Good       float64       // the rate of answers in time, as a fraction of Capacity
	P99        time.Duration // the 99th percentile of the response time of answers in time
	No         time.Duration // the median response time of errors and late answers
	Goroutines int           // the 95th percentile of the number of goroutines, not counting one for each request
}

// lognormal returns a log-normal random duration. The standard deviation is about half the mean.
func lognormal(r *rand.Rand, mean time.Duration) time.Duration {
	const sigma = 0.47
	return time.Duration(float64(mean) * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2))
}

// Resource returns a function that sleeps for the time that one request takes. Goroutines may call the function concurrently.
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

// Goroutines returns a typical Go server. The server has a goroutine for each request, and a semaphore that limits the use of the
// resource.
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

// Staged returns a server in which a stage limits the use of the resource.
func Staged(name string, o stage.Options) Server {
	use := Resource(1)
	o.Width, o.Reject = Slots, true
	s := stage.New("resource", func(context.Context, struct{}) (struct{}, error) {
		use()
		return struct{}{}, nil
	}, o)
	return Server{Name: name,
		Serve: func(ctx context.Context) error {
			_, err := s.Do(ctx, struct{}{})
			return err
		},
		Close: func() { _ = s.Shutdown(context.Background()) },
	}
}

// Run sends requests to s as a Poisson process with the rate load*Capacity. It measures the requests that arrive between the times warm and
// warm+measured.
func Run(s Server, load float64, warm, measured time.Duration) Result {
	r := rand.New(rand.NewPCG(2, 2))
	var mu sync.Mutex
	var good, no []time.Duration
	var all sync.WaitGroup
	before := runtime.NumGoroutine()
	live := 0
	var goroutines []time.Duration // numbers of goroutines; a quantile is used, because the maximum may include goroutines that have ended
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
