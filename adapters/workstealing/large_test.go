package workstealing_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// withQueues runs f with a large pool, and with GOMAXPROCS set to the number of its workers.
func withQueues(t *testing.T, growAfter time.Duration, f func(p *workstealing.Pool)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(large))
	withPool(t, workstealing.Options{Workers: large, GrowAfter: growAfter, StallAfter: -1}, f)
}

// busyWith keeps all workers of a pool busy, with work that never ends until the returned function is called.
var busyWith = map[string]func(p *workstealing.Pool) (stop func()){
	"nothing": func(*workstealing.Pool) func() { return func() {} },
	"yields":  func(p *workstealing.Pool) func() { return yields(p, 3*large) },
	"a crowd": func(p *workstealing.Pool) func() { return yields(p, 700) },
	"forks": func(p *workstealing.Pool) func() {
		e := &endless{p: p, depth: 20, leaf: func() {}}
		e.start(3 * large)
		return e.stopAll
	},
	"forks that yield": func(p *workstealing.Pool) func() {
		e := &endless{p: p, depth: 20, leaf: suspend.Yield}
		e.start(3 * large)
		return e.stopAll
	},
	"forks that suspend": func(p *workstealing.Pool) func() {
		e := &endless{p: p, depth: 5, leaf: func() {
			var woken promise.Promise[int]
			_ = p.Go(func() { _ = woken.Fill(0) })
			_, _ = woken.Await(bg)
		}}
		e.start(3 * large)
		return e.stopAll
	},
	"tasks from outside": func(p *workstealing.Pool) func() {
		var stop atomic.Bool
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for !stop.Load() {
					done := make(chan int)
					for range 50 {
						_ = p.Go(func() {})
					}
					_ = p.Go(func() { close(done) })
					<-done
				}
			})
		}
		return func() { stop.Store(true); all.Wait() }
	},
}

// yields starts tasks that do nothing but yield.
func yields(p *workstealing.Pool, tasks int) (stopAll func()) {
	var stop atomic.Bool
	var all sync.WaitGroup
	for range tasks {
		all.Add(1)
		_ = p.Go(func() {
			defer all.Done()
			for !stop.Load() {
				suspend.Yield()
			}
		})
	}
	return func() { stop.Store(true); all.Wait() }
}

// A task blocks its worker until the tasks have run that it has started and woken. They are in the queue of this worker, and all other
// workers always have something else to do. With growth, another worker takes over.
func TestTasksBehindALongStep(t *testing.T) {
	for name, busy := range busyWith {
		for _, growAfter := range []int{-1, 0} {
			t.Run(fmt.Sprint(name, "/", growAfter), func(t *testing.T) {
				withQueues(t, time.Duration(growAfter), func(p *workstealing.Pool) {
					defer busy(p)()
					for range 5 {
						in(p, func() {
							const n = 20
							var wake [n]promise.Promise[int]
							ran := make(chan int, 2*n)
							for i := range wake {
								require.NoError(t, p.Go(func() { _, _ = wake[i].Await(bg); ran <- i }))
							}
							for range 50 { // lets the others begin, in short steps
								suspend.Yield()
							}
							for i := range wake {
								_ = wake[i].Fill(0)
								require.NoError(t, p.Go(func() { ran <- i }))
							}
							for range 2 * n {
								<-ran // natively
							}
						})
					}
				})
			})
		}
	}
}

// A task waits for the tasks that it has started, one after another, while the pool does all kinds of other work.
func TestTasksOfATaskAreNotOvertaken(t *testing.T) {
	for name, busy := range busyWith {
		t.Run(name, func(t *testing.T) {
			withQueues(t, 0, func(p *workstealing.Pool) {
				defer busy(p)()
				var all sync.WaitGroup
				for range 4 {
					all.Add(1)
					_ = p.Go(func() {
						defer all.Done()
						for range scale(100) {
							var ended promise.Promise[int]
							_ = p.Go(func() { suspend.Yield(); _ = ended.Fill(0) })
							_, _ = ended.Await(bg)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// Tasks that wake each other on one worker keep neither a task from outside nor a fork-join waiting.
func TestAQueueThatIsNeverEmpty(t *testing.T) {
	withQueues(t, 0, func(p *workstealing.Pool) {
		defer yields(p, 5*large)()
		for range scale(100) {
			done := make(chan int)
			require.NoError(t, p.Go(func() { close(done) }))
			<-done
			_, _, err := workstealing.Join(bg, p, func(context.Context) (int, error) { suspend.Yield(); return 0, nil },
				func(context.Context) (int, error) { suspend.Yield(); return 0, nil })
			require.NoError(t, err)
		}
	})
}

// Close waits for what is in the queues of the workers, and the pool refuses what comes later.
func TestCloseWithQueues(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(large))
	inTime(t, func() {
		for range scale(100) {
			p := newPool(workstealing.Options{Workers: large, StallAfter: -1})
			var accepted, ran atomic.Int64
			var tree func(depth int)
			tree = func(depth int) {
				for range 3 {
					if depth > 0 && p.Go(func() { ran.Add(1); tree(depth - 1) }) == nil {
						accepted.Add(1)
					}
					suspend.Yield()
				}
			}
			for range 4 {
				require.NoError(t, p.Go(func() { tree(5) }))
			}
			for accepted.Load() < 50 {
				suspend.Yield()
			}
			_ = p.Close()
			require.Equal(t, accepted.Load(), ran.Load())
			require.Zero(t, p.Stats().Live)
		}
	})
}

// Tasks from outside begin beside all kinds of work, from goroutines that start one task each, and from one that starts many.
func TestTasksFromOutsideBesideOthers(t *testing.T) {
	for name, busy := range busyWith {
		t.Run(name, func(t *testing.T) {
			withQueues(t, 0, func(p *workstealing.Pool) {
				defer busy(p)()
				n := scale(100)
				began := make(chan int, 2*n)
				for i := range n {
					go func() { _ = p.Go(func() { began <- i }) }()
					require.NoError(t, p.Go(func() { began <- i }))
				}
				for range 2 * n {
					<-began
				}
			})
		})
	}
}

// A long fork-join gives way to a task from outside after two turns at most. All other workers are blocked.
func TestForksGiveWayToTasksFromOutside(t *testing.T) {
	withQueues(t, -1, func(p *workstealing.Pool) {
		held, release := make(chan int), make(chan int)
		for range large - 1 {
			require.NoError(t, p.Go(func() { held <- 0; <-release }))
		}
		for range large - 1 {
			<-held
		}
		defer close(release)
		tasks := scale(200)
		leaves, submitted, ended, worst := 0, 0, 0, 0 // not atomic, because one worker is free
		done := make(chan int)
		e := &endless{p: p, depth: 20}
		e.leaf = func() {
			if leaves++; leaves%500 != 0 || submitted == tasks {
				return
			}
			submitted++
			since, accepted := leaves, make(chan int)
			go func() {
				_ = p.Go(func() {
					worst = max(worst, leaves-since)
					if ended++; ended == tasks {
						close(done)
					}
				})
				close(accepted)
			}()
			<-accepted
		}
		e.start(1)
		<-done
		e.stopAll()
		require.LessOrEqual(t, worst, 2*61)
	})
}
