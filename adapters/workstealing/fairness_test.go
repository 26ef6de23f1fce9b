package workstealing_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// An endless is a fork-join that runs until it is stopped. Its forks form a tree of the given depth, over and over.
type endless struct {
	p     *workstealing.Pool
	depth int
	leaf  func()
	stop  atomic.Bool
	ended []promise.Promise[int]
}

// start starts n fork-joins.
func (e *endless) start(n int) {
	e.ended = make([]promise.Promise[int], n)
	for i := range e.ended {
		_ = e.p.Go(func() {
			for !e.stop.Load() {
				_, _ = e.visit(bg, e.depth)
			}
			_ = e.ended[i].Fill(0)
		})
	}
}

func (e *endless) visit(ctx context.Context, depth int) (int, error) {
	if e.stop.Load() {
		return 0, nil
	}
	if depth == 0 {
		e.leaf()
		return 0, nil
	}
	_, _, err := workstealing.Join(ctx, e.p,
		func(ctx context.Context) (int, error) { return e.visit(ctx, depth-1) },
		func(ctx context.Context) (int, error) { return e.visit(ctx, depth-1) })
	return 0, err
}

// stopAll stops the fork-joins, and waits until they have ended.
func (e *endless) stopAll() {
	e.stop.Store(true)
	for i := range e.ended {
		_, _ = e.ended[i].Await(bg)
	}
}

// A long fork-join on one worker gives way to queued tasks after a number of forks. The number is the same each time, whether
// there are other fork-joins or not. It must not queue up behind its own forks: each of them would then give way in turn, and
// each new task would wait thirty times as long as the one before.
func TestForksGiveWay(t *testing.T) {
	const every, atMost, depth = 500, 2 * 61, 20
	tasks := scale(200)
	for kind, submit := range map[string]func(p *workstealing.Pool, ran func()){
		"new":      func(p *workstealing.Pool, ran func()) { _ = p.Go(ran) },
		"callback": func(p *workstealing.Pool, ran func()) { _ = p.Execute(ran) },
		"woken": func(p *workstealing.Pool, ran func()) {
			wake := promise.New[int]()
			_ = p.Go(func() {
				_ = p.Go(func() { _ = wake.Fill(0) })
				_, _ = wake.Await(bg)
				ran()
			})
		},
	} {
		for _, long := range []int{1, 2, 50} {
			t.Run(fmt.Sprintf("%s/%d", kind, long), func(t *testing.T) {
				withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
					leaves, submitted, ended, worst := 0, 0, 0, 0 // not atomic, because there is one worker
					done := make(chan int)
					e := &endless{p: p, depth: depth}
					e.leaf = func() {
						leaves++
						if leaves < 1000*long || leaves%every != 0 || submitted == tasks { // all fork-joins have begun
							return
						}
						submitted++
						since := leaves
						submit(p, func() {
							worst = max(worst, leaves-since)
							if ended++; ended == tasks {
								done <- runtime.NumGoroutine()
							}
						})
					}
					before := runtime.NumGoroutine()
					e.start(long)
					goroutines := <-done - before
					e.stopAll()
					if worst > 3*atMost || kind != "woken" && worst > atMost {
						t.Errorf("a task waited for %d leaves", worst)
					}
					if goroutines > long+depth {
						t.Errorf("%d goroutines for %d fork-joins", goroutines, long)
					}
				})
			})
		}
	}
}

// A fork-join that gives way, for whatever reason, begins no fork to do so. Otherwise, with a leaf that yields, each fork
// would become a goroutine.
func TestForksDoNotMultiply(t *testing.T) {
	const depth, yielders = 20, 10
	sizes(t, func(t *testing.T, n int) {
		for name, leaf := range map[string]func(){"computes": func() {}, "yields": suspend.Yield} {
			t.Run(name, func(t *testing.T) {
				withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
					before := runtime.NumGoroutine()
					var leaves, most atomic.Int64
					var counts sync.Mutex
					e := &endless{p: p, depth: depth}
					e.leaf = func() {
						leaf()
						if i := leaves.Add(1); i%1000 == 0 {
							counts.Lock()
							most.Store(max(most.Load(), int64(runtime.NumGoroutine()-before)))
							counts.Unlock()
							if i >= int64(scale(30_000)) {
								e.stop.Store(true)
							}
						}
					}
					for range yielders {
						_ = p.Go(func() {
							for !e.stop.Load() {
								suspend.Yield()
							}
						})
					}
					e.start(1)
					_, _ = e.ended[0].Await(bg)
					if limit := int64(n*depth + yielders + 10); most.Load() > limit {
						t.Errorf("%d goroutines, and at most %d are needed", most.Load(), limit)
					}
				})
			})
		}
	})
}

// A fork for which a Join waits is begun even among long fork-joins.
func TestForksOfAWaitingTaskAreBegun(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		for _, long := range []int{n, 3 * n} {
			withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
				e := &endless{p: p, depth: 20, leaf: func() {}}
				e.start(long)
				var yielding atomic.Bool
				_ = p.Go(func() {
					for yielding.Store(true); !e.stop.Load(); {
						suspend.Yield()
					}
				})
				eventually(t, "some tasks are always queued", yielding.Load)
				in(p, func() {
					for range 100 {
						var forked promise.Promise[int]
						_, _, _ = workstealing.Join(bg, p, forked.Await,
							func(context.Context) (int, error) { forked.Fill(1); return 0, nil })
					}
				})
				e.stopAll()
			})
		}
	})
}

// One side of a Join yields until another fork has run. The fork runs even on a single worker, whichever side yields.
func TestASideYieldsUntilAForkHasRun(t *testing.T) {
	for _, yielders := range []int{0, 1, 60, 61} {
		withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
			forked := false // not atomic, because there is one worker
			for range yielders {
				_ = p.Go(func() {
					for !forked {
						suspend.Yield()
					}
				})
			}
			spin := func(context.Context) (int, error) {
				for !forked {
					suspend.Yield()
				}
				return 0, nil
			}
			in(p, func() {
				_, _, _ = workstealing.Join(bg, p, func(ctx context.Context) (int, error) {
					_, _, err := workstealing.Join(ctx, p, spin, spin)
					return 0, err
				}, func(context.Context) (int, error) { forked = true; return 0, nil })
			})
		})
	}
}

// This test measures the same in time, for as long as BRAID_STRESS says. It adds up the time of all processors between the
// submission of an empty task and its end.
func TestForksGiveWayInTime(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("BRAID_STRESS"))
	if err != nil {
		t.Skip("BRAID_STRESS is not set")
	}
	for _, n := range []int{1, 2, 10, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := workstealing.New(workstealing.Options{})
			defer p.Close()
			ctx, cancel := context.WithCancel(bg)
			var ended []*promise.Promise[int]
			for range n {
				ended = append(ended, promise.Go(ctx, suspend.Spawner(p), func(ctx context.Context) (int, error) { return fibCut(ctx, p, 50) }))
			}
			var took []time.Duration
			goroutines := 0
			for start := time.Now(); time.Since(start) < long; time.Sleep(3 * time.Millisecond) {
				before := processor.Used()
				done := make(chan struct{})
				_ = p.Go(func() { close(done) })
				<-done
				took = append(took, processor.Used()-before)
				goroutines = max(goroutines, runtime.NumGoroutine())
			}
			cancel()
			for _, e := range ended {
				_, _ = e.Await(bg)
			}
			slices.Sort(took)
			at := func(q float64) time.Duration { return took[int(float64(len(took)-1)*q)] }
			t.Logf("%d empty tasks: p50 %v, p99 %v, most %v of processor time; %d goroutines", len(took), at(.5), at(.99), at(1), goroutines)
			if at(.99) > 5*time.Millisecond {
				t.Error("too long")
			}
		})
	}
}
