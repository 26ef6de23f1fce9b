package workstealing_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

const growAfter = 10 * time.Millisecond // the default

// Tasks that block natively until all of them run each get a worker, whatever the size of the pool. Then the additional workers
// end.
func TestThePoolGrows(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n, StallAfter: -1, GrowAfter: growAfter}, func(p *workstealing.Pool) {
			for range 2 { // the pool grows again in the second round
				const tasks = 10
				var here, ended sync.WaitGroup
				here.Add(tasks)
				for range tasks {
					ended.Add(1)
					_ = p.Go(func() {
						defer ended.Done()
						here.Done()
						here.Wait()
						suspend.Yield()
					})
				}
				ended.Wait()
				eventually(t, "no worker is left over", func() bool { return workstealing.Workers(p) == n })
				in(p, func() {})
				if s := p.Stats(); s.Suspended != 0 {
					t.Error(s)
				}
			}
		})
	})
}

// most runs tasks that all block natively for a while, and returns the largest number that did so at the same time.
func most(p *workstealing.Pool, tasks int, wait func()) int64 {
	var now, most atomic.Int64
	var ended sync.WaitGroup
	for range tasks {
		ended.Add(1)
		_ = p.Go(func() {
			defer ended.Done()
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			wait()
			now.Add(-1)
		})
	}
	ended.Wait()
	return most.Load()
}

// The pool does not grow beyond MaxWorkers, nor without GrowAfter, nor for tasks that compute. A new worker replaces a blocked
// one, so no more tasks compute at the same time than before.
func TestThePoolGrowsNoFurther(t *testing.T) {
	sleep := func(d time.Duration) func() { return func() { time.Sleep(d) } }
	wait := sleep(4 * growAfter)
	computes := func() { compute(80 * time.Millisecond) }
	for _, test := range []struct {
		name  string
		o     workstealing.Options
		step  func()
		tasks int
		most  int64
	}{
		{"MaxWorkers", workstealing.Options{Workers: 1, MaxWorkers: 3, GrowAfter: growAfter}, sleep(10 * growAfter), 5, 3},
		{"never", workstealing.Options{Workers: 2, GrowAfter: -1}, wait, 6, 2},
		{"one worker", workstealing.Options{Workers: 1}, wait, 4, 1},
		{"computing", workstealing.Options{Workers: 1, GrowAfter: growAfter}, computes, 3, 1},
		{"computing, another stuck", workstealing.Options{Workers: 2, GrowAfter: growAfter}, computes, 4, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			withPool(t, test.o, func(p *workstealing.Pool) {
				stuck := make(chan struct{})
				defer close(stuck)
				if test.name == "computing, another stuck" {
					_ = p.Go(func() { <-stuck })
				}
				if n := most(p, test.tasks, test.step); n > test.most {
					t.Errorf("%d tasks ran at the same time", n)
				}
			})
		})
	}
}

// A worker that returns from a native wait and finds its place taken starts none of the remaining tasks of its turn.
func TestAWorkerTooManyBeginsNothing(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1, GrowAfter: growAfter, StallAfter: -1}, func(p *workstealing.Pool) {
		const tasks, quick = 15, 300
		var now, beside atomic.Int64
		var ended sync.WaitGroup
		filled, released := make(chan struct{}), make(chan struct{})
		_ = p.Go(func() { // a long task, so that a turn of the quick tasks is long
			compute(time.Millisecond)
			<-filled
		})
		for range quick {
			_ = p.Go(func() {})
		}
		ended.Add(tasks + 1)
		_ = p.Go(func() { defer ended.Done(); <-released })
		for range tasks {
			_ = p.Go(func() {
				defer ended.Done()
				if now.Add(1) > 1 {
					beside.Add(1)
				}
				compute(15 * time.Millisecond)
				now.Add(-1)
			})
		}
		close(filled)
		eventually(t, "another worker takes over", func() bool { return workstealing.Workers(p) == 2 })
		close(released)
		ended.Wait()
		if n := beside.Load(); n > 4 {
			t.Errorf("%d tasks began while another one computed", n)
		}
	})
}

// The figures of a worker that ends are added to those of the first worker.
func TestStatsOfAWorkerThatEnds(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1, GrowAfter: growAfter, StallAfter: -1}, func(p *workstealing.Pool) {
		const tasks = 10
		var begin, end promise.Promise[int]
		var here, ended sync.WaitGroup
		here.Add(tasks)
		for i := range tasks {
			ended.Add(1)
			_ = p.Go(func() {
				defer ended.Done()
				if i%2 == 0 {
					_, _ = begin.Await(bg)
				}
				here.Done()
				here.Wait() // blocks natively, so each task has a worker of its own
				_, _ = end.Await(bg)
			})
		}
		in(p, func() { // a fork that another worker has to steal
			forked := make(chan struct{})
			_, _, _ = workstealing.Join(context.Background(), p,
				func(context.Context) (int, error) { <-forked; return 0, nil },
				func(context.Context) (int, error) { close(forked); return 0, nil })
		})
		eventually(t, "half of them wait", func() bool { return p.Stats().Suspended == tasks/2 })
		before := p.Stats().Wakes // 1 if the Join had to wait for the end of its fork
		_ = begin.Fill(1)
		here.Wait()
		eventually(t, "one worker is left, and all wait", func() bool {
			s := p.Stats()
			return workstealing.Workers(p) == 1 && s.Suspended == tasks && s.Wakes == before+tasks/2 && s.Steals == 1
		})
		_ = end.Fill(1)
		ended.Wait()
		eventually(t, "all have ended", func() bool { s := p.Stats(); return s.Live == 0 && s.Suspended == 0 && s.Wakes == before+tasks/2+tasks })
	})
}

// The first worker never ends. When there is one worker too many, the first worker asks another one to end, which may have been asked
// already.
func TestTwoWorkersAreTooMany(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1, GrowAfter: growAfter, StallAfter: -1}, func(p *workstealing.Pool) {
		var ended sync.WaitGroup
		first, second := make(chan struct{}), make(chan struct{})
		var others, fork, forked, computing atomic.Bool
		var awaited promise.Promise[int]
		start := func(f func()) {
			ended.Add(1)
			_ = p.Go(func() { defer ended.Done(); f() })
		}
		start(func() { <-first })
		time.Sleep(growAfter / 5) // otherwise the first worker could run the second task
		start(func() {            // suspends later, and leaves a fork behind
			<-second
			_, _, _ = workstealing.Join(context.Background(), p,
				func(ctx context.Context) (int, error) { return awaited.Await(ctx) },
				func(context.Context) (int, error) {
					forked.Store(true)
					for !fork.Load() {
						runtime.Gosched()
					}
					return 0, nil
				})
		})
		eventually(t, "a second worker", func() bool { return workstealing.Workers(p) == 2 })
		start(func() {
			computing.Store(true)
			for !others.Load() {
				runtime.Gosched()
			}
		})
		eventually(t, "a third worker", computing.Load)
		close(second)
		eventually(t, "the fork", forked.Load)
		close(first)
		time.Sleep(5 * growAfter) // lets the first worker ask another one to end
		others.Store(true)
		fork.Store(true)
		_ = awaited.Fill(1)
		ended.Wait()
		eventually(t, "one worker is left", func() bool { return workstealing.Workers(p) == 1 })
	})
}

// compute computes for d.
func compute(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// Stock code that needs a second task of its pool runs on one worker.
func TestStockCodeOnOneWorker(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	transport := &http.Transport{MaxConnsPerHost: 10}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	var mu sync.Mutex
	for _, test := range []struct {
		name string
		task func()
	}{
		{"http.Client", func() {
			for range 5 {
				r, err := client.Get(server.URL)
				if err != nil {
					t.Error(err)
					return
				}
				suspend.Yield() // holds a connection for which others wait
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		}},
		{"sync.Mutex across a wait", func() {
			mu.Lock()
			defer mu.Unlock()
			suspend.Yield()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			withPool(t, workstealing.Options{Workers: 1, GrowAfter: growAfter}, func(p *workstealing.Pool) {
				most(p, 20, test.task)
			})
		})
	}
}

// A pool grows even if other goroutines keep all processors busy.
func TestThePoolGrowsBesideOthers(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1, GrowAfter: time.Millisecond}, func(p *workstealing.Pool) {
		var over atomic.Bool
		var others sync.WaitGroup
		defer others.Wait()
		defer over.Store(true)
		for range 2 * runtime.GOMAXPROCS(0) {
			others.Go(func() {
				for !over.Load() {
				}
			})
		}
		in(p, func() {
			done := make(chan struct{})
			_ = p.Go(func() { close(done) })
			<-done
		})
	})
}

// A pool grows and shrinks all the time, because 1 of 100 steps sleeps natively. It runs each step of each task once, and ends.
func TestThePoolGrowsAndShrinks(t *testing.T) {
	for _, n := range []int{1, 2, large} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			seen := stress.Of("grown")
			stress.Rounds(t, seen, func() {
				p := newPool(workstealing.Options{Workers: n, GrowAfter: time.Millisecond, StallAfter: -1})
				var mu mutex.Mutex
				var native sync.Mutex
				var place mvar.MVar[int]
				var locked, held int // each counts steps under one of the locks
				var others atomic.Int64
				const tasks, steps = 100, 30
				inTime(t, func() {
					var ended sync.WaitGroup
					for range tasks {
						ended.Add(1)
						_ = p.Go(func() {
							defer ended.Done()
							for range steps {
								switch rand.IntN(40) {
								case 0, 1, 2, 3, 4:
									mu.Lock()
									suspend.Yield()
									locked++
									mu.Unlock()
								case 5: // holds the lock across a suspension
									native.Lock()
									suspend.Yield()
									held++
									native.Unlock()
								case 6, 7, 8, 9, 10:
									_ = p.Go(func() { _ = place.Put(context.Background(), 1) })
									i, _ := place.Take(context.Background())
									others.Add(int64(i))
								default:
									_, _ = fibOn(p, 5)
									others.Add(1)
								}
								if rand.IntN(100) == 0 {
									time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
								}
								if suspend.Yield(); workstealing.Workers(p) > n {
									seen.Add("grown")
								}
							}
						})
					}
					ended.Wait()
					_ = p.Close()
				})
				if s := p.Stats(); locked+held+int(others.Load()) != tasks*steps || s.Live != 0 || s.Suspended != 0 {
					t.Errorf("%d, %d and %d of %d steps: %v", locked, held, others.Load(), tasks*steps, s)
				}
			})
		})
	}
}
