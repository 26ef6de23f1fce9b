package workstealing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

const patience = 60 * time.Second

// TestMain fails if a goroutine of a pool outlives the tests, which all close their pools.
func TestMain(m *testing.M) { schedtest.Main(m) }

// withPool runs f with a pool, and closes the pool, within the time limit.
func withPool(t *testing.T, o workstealing.Options, f func(p *workstealing.Pool)) {
	t.Helper()
	inTime(t, func() {
		p := newPool(o)
		defer p.Close()
		f(p)
	})
}

// large is the number of workers of a pool whose workers have queues.
const large = 8

// newPool returns a pool. The workers of a large pool have queues, if New sees as many processors.
func newPool(o workstealing.Options) *workstealing.Pool {
	if o.Workers >= large {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(large))
	}
	return workstealing.New(o)
}

// inTime runs f, and ends the process with all stacks if f takes too long.
func inTime(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s hangs:\n%s", t.Name(), stacks[:runtime.Stack(stacks, true)]))
	}
}

func sizes(t *testing.T, f func(t *testing.T, workers int)) {
	for _, n := range []int{1, 2, large} {
		t.Run(fmt.Sprint("workers=", n), func(t *testing.T) { f(t, n) })
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Microsecond) { // a goroutine that spins would keep a pool from growing
		if time.Now().After(deadline) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

func scale(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func TestGoRunsTasksWithTheirPool(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			var wg sync.WaitGroup
			for range 1000 {
				wg.Add(1)
				if err := p.Go(func() {
					defer wg.Done()
					if suspend.Here() != suspend.Spawner(p) {
						t.Error("Here is not the pool")
					}
					suspend.Yield()
					if suspend.Here() != suspend.Spawner(p) {
						t.Error("Here is not the pool any more")
					}
				}); err != nil {
					t.Error(err)
				}
			}
			wg.Wait()
		})
	})
}

func TestWakeupsOfOneGoroutineKeepTheirOrder(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		const n = 50
		var resumers [n]suspend.Resumer[struct{}]
		var order []int
		var wg sync.WaitGroup
		wg.Add(n)
		for i := range n {
			_ = p.Go(func() {
				defer wg.Done()
				_, _ = suspend.Suspend(bg, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
					resumers[i] = r
					return struct{}{}, false
				})
				order = append(order, i) // not atomic, because there is one worker
			})
		}
		eventually(t, "all suspended", func() bool { return p.Stats().Suspended == n })
		for i := range n {
			resumers[(i*7)%n].Resume(struct{}{}, nil)
		}
		wg.Wait()
		for i := range n {
			if order[i] != (i*7)%n {
				t.Fatal(order)
			}
		}
	})
}

// A pool that becomes idle again and again loses no Go, no Execute and no Resume.
func TestNoWakeupIsLost(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					done := make(chan struct{})
					for i := range scale(3000) {
						switch i % 3 {
						case 0:
							_ = p.Go(func() { done <- struct{}{} })
						case 1:
							_ = p.Execute(func() { done <- struct{}{} })
						case 2:
							pr := promise.New[int]()
							_ = p.Go(func() {
								done <- struct{}{}
								_, _ = pr.Await(bg)
								done <- struct{}{}
							})
							<-done
							_ = pr.Fill(i)
						}
						<-done
					}
				})
			}
			wg.Wait()
		})
	})
}

func TestCloseRefusesAndWaits(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		inTime(t, func() {
			p := newPool(workstealing.Options{Workers: n})
			hold := promise.New[int]()
			var ended atomic.Int32
			for range 10 {
				_ = p.Go(func() {
					_, _ = hold.Await(bg)
					_ = suspend.Blocking(bg, func() { ended.Add(1) }) // a closed pool still blocks for its tasks
				})
			}
			var closers sync.WaitGroup
			for range 3 {
				closers.Go(func() {
					if err := p.Close(); err != nil {
						t.Error(err)
					}
					if n := ended.Load(); n != 10 {
						t.Errorf("Close returned when %d of 10 tasks had ended", n)
					}
				})
			}
			eventually(t, "closed", func() bool {
				return errors.Is(p.Execute(func() {}), suspend.ErrClosed) && errors.Is(p.Go(func() {}), suspend.ErrClosed)
			})
			_ = hold.Fill(1)
			closers.Wait()
			_ = p.Close()
			if err := p.Block(func() { t.Error("runs") }); !errors.Is(err, suspend.ErrClosed) {
				t.Error(err)
			}
			if s := p.Stats(); s.Live != 0 || s.Running != 0 || s.Suspended != 0 {
				t.Error(s)
			}
		})
	})
}

// During Close, a function that Go accepts runs, and a refused one does not.
func TestCloseRacesWithGo(t *testing.T) {
	inTime(t, func() {
		for range scale(200) {
			p := workstealing.New(workstealing.Options{Workers: 2})
			var accepted, ran atomic.Int64
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for range 50 { // limits the backlog
						if p.Go(func() { ran.Add(1); suspend.Yield(); ran.Add(1) }) != nil {
							return
						}
						accepted.Add(2)
						if p.Execute(func() { ran.Add(1) }) != nil {
							return
						}
						accepted.Add(1)
					}
				})
			}
			for accepted.Load() == 0 {
				runtime.Gosched()
			}
			_ = p.Close()
			after := ran.Load()
			wg.Wait()
			if accepted.Load() != after || after != ran.Load() {
				t.Fatalf("accepted %d, ran %d before Close returned and %d in all", accepted.Load(), after, ran.Load())
			}
		}
	})
}

func TestCloseSuspendsOnlyItsCaller(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		q := workstealing.New(workstealing.Options{Workers: 1})
		hold, closed := promise.New[int](), promise.New[int]()
		_ = q.Go(func() { _, _ = hold.Await(bg) })
		_ = p.Go(func() {
			_ = q.Close()
			_ = closed.Fill(1)
		})
		in(p, func() { _ = hold.Fill(1) }) // runs on the only worker of p
		_, _ = closed.Await(bg)
	})
}

func TestCloseFromItsTaskPanics(t *testing.T) {
	withPool(t, workstealing.Options{}, func(p *workstealing.Pool) {
		in(p, func() {
			defer func() {
				if v := recover(); v != "workstealing: Close called from a task of the pool" {
					t.Error(v)
				}
			}()
			_ = p.Close()
		})
		if err := p.Go(func() {}); err != nil {
			t.Error("closed anyway:", err)
		}
	})
}

func TestGoexitEndsItsTaskOnly(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			for range 20 {
				in(p, func() { new(testing.T).FailNow() })
				in(p, func() {
					suspend.Yield()
					runtime.Goexit()
				})
				called := make(chan struct{})
				_ = p.Execute(func() {
					defer close(called)
					runtime.Goexit()
				})
				<-called
			}
			ran := false
			in(p, func() { ran = true })
			if !ran {
				t.Error("the worker is gone")
			}
			eventually(t, "none live", func() bool { return p.Stats().Live == 0 })
		})
	})
}

func TestOnPanic(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		var values, stacks atomic.Int64
		o := workstealing.Options{Workers: n, OnPanic: func(v any, stack []byte) {
			values.Add(int64(v.(int)))
			if strings.Contains(string(stack), "panicsInTask") {
				stacks.Add(1)
			}
			suspend.Yield() // OnPanic runs in the task, and may suspend
		}}
		withPool(t, o, func(p *workstealing.Pool) {
			for range 10 {
				in(p, func() { panicsInTask(1) })
				in(p, func() {
					suspend.Yield()
					panicsInTask(10)
				})
				called := make(chan struct{})
				_ = p.Execute(func() {
					defer close(called)
					panicsInTask(100)
				})
				<-called
			}
			eventually(t, "none live", func() bool { return p.Stats().Live == 0 })
		})
		if values.Load() != 1110 || stacks.Load() != 30 {
			t.Error(values.Load(), stacks.Load())
		}
	})
}

func panicsInTask(v int) { panic(v) }

func TestCallbacksMustNotSuspend(t *testing.T) {
	withPool(t, workstealing.Options{}, func(p *workstealing.Pool) {
		got := make(chan any)
		_ = p.Execute(func() {
			defer func() { got <- recover() }()
			_, _ = promise.New[int]().Await(bg)
		})
		if v := <-got; v != "suspend: suspending is forbidden here (in a callback, or under Bind(nil))" {
			t.Error(v)
		}
	})
}

func TestNilFunctionsPanic(t *testing.T) {
	withPool(t, workstealing.Options{}, func(p *workstealing.Pool) {
		for _, f := range []func(func()) error{p.Go, p.Execute, p.Block} {
			func() {
				defer func() {
					if v := recover(); v != "workstealing: nil function" && v != "suspend: nil function" {
						t.Error(v)
					}
				}()
				_ = f(nil)
			}()
		}
	})
}

func TestStallAfter(t *testing.T) {
	stacks := make(chan []byte, 100)
	o := workstealing.Options{Workers: 2, StallAfter: 5 * time.Millisecond, OnStall: func(stack []byte) { stacks <- stack }}
	withPool(t, o, func(p *workstealing.Pool) {
		in(p, func() { holdsItsWorker(stacks) })
	})
}

func holdsItsWorker(stacks chan []byte) {
	for !bytes.Contains(<-stacks, []byte("holdsItsWorker")) { // on a loaded machine, an earlier step may be reported first
	}
}

func TestStats(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			const tasks = 30
			hold := promise.New[int]()
			var wg sync.WaitGroup
			for range tasks {
				wg.Add(1)
				_ = p.Go(func() {
					defer wg.Done()
					_, _ = hold.Await(bg)
				})
			}
			eventually(t, "all suspended and none running", func() bool {
				s := p.Stats()
				return s.Live == tasks && s.Suspended == tasks && s.Running == 0
			})
			_ = hold.Fill(1)
			wg.Wait()
			eventually(t, "all ended", func() bool {
				s := p.Stats()
				return s.Live == 0 && s.Suspended == 0 && s.Running == 0
			})
			if s := p.Stats(); s.Wakes != tasks {
				t.Error(s)
			}
			in(p, func() {
				if s := p.Stats(); s.Live != 1 || s.Running != 1 {
					t.Error(s)
				}
			})
		})
	})
}

func TestBlockingWidth(t *testing.T) {
	const width, tasks = 3, 20
	withPool(t, workstealing.Options{Workers: 2, BlockingWidth: width, MaxBlocking: width}, func(p *workstealing.Pool) {
		var now, most, exits atomic.Int32
		full := make(chan struct{})
		var wg sync.WaitGroup
		for i := range tasks {
			wg.Add(1)
			_ = p.Go(func() {
				defer wg.Done()
				if i%5 == 4 {
					defer exits.Add(1)
				}
				_ = suspend.Blocking(bg, func() {
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					if n == width {
						select {
						case <-full:
						default:
							close(full)
						}
					}
					<-full // waits until the width is reached
					now.Add(-1)
					if i%5 == 4 {
						runtime.Goexit() // the exit frees its place
					}
				})
			})
		}
		wg.Wait()
		if most.Load() != width || exits.Load() != tasks/5 {
			t.Error(most.Load(), exits.Load())
		}
	})
}

// Forks do not starve tasks, and tasks do not starve forks, even on one worker.
func TestForksDoNotStarveTasks(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			var stop atomic.Bool
			for range n {
				_ = p.Go(func() {
					nothing := func(context.Context) (int, error) { return 0, nil }
					for !stop.Load() {
						_, _, _ = workstealing.Join(bg, p, nothing, nothing)
					}
				})
			}
			in(p, func() { stop.Store(true) })
		})
	})
}

func TestTasksDoNotStarveForks(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			var stop atomic.Bool
			for range 3 * n {
				_ = p.Go(func() {
					for !stop.Load() {
						suspend.Yield()
					}
				})
			}
			in(p, func() {
				forked := promise.New[int]()
				_, _, _ = workstealing.Join(bg, p, forked.Await,
					func(context.Context) (int, error) { forked.Fill(1); return 0, nil })
				stop.Store(true)
			})
		})
	})
}

// A fork below an endless task is stolen, although the other worker always has runnable tasks.
func TestForkUnderBusyTaskIsStolen(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 2}, func(p *workstealing.Pool) {
		var stop atomic.Bool
		for range 3 {
			_ = p.Go(func() {
				for !stop.Load() {
					suspend.Yield()
				}
			})
		}
		in(p, func() {
			defer stop.Store(true)
			var forked atomic.Bool
			_, _, _ = workstealing.Join(bg, p, func(context.Context) (int, error) {
				for !forked.Load() {
					runtime.Gosched() // holds the worker
				}
				return 0, nil
			}, func(context.Context) (int, error) { forked.Store(true); return 0, nil })
		})
		if p.Stats().Steals == 0 {
			t.Error("no steal counted")
		}
	})
}

func TestPoolInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workstealing.New(workstealing.Options{Workers: 2})
		start := time.Now()
		slept := func(ctx context.Context) (int, error) { return 0, suspend.Sleep(ctx, time.Hour) }
		_, _, err := workstealing.Join(bg, p, slept, slept)
		if took := time.Since(start); err != nil || took != time.Hour {
			t.Error(took, err)
		}
		_ = p.Close()
	})
}

// A fiber that begins its next task at once withdraws the registration that the last task has left in its context.
func TestATaskOfARowLeavesNoRegistration(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		ctx := &registered{Context: context.Background()}
		var m mvar.MVar[int]
		left := make(chan int32, 1)
		_ = p.Go(func() {
			_, _ = m.Take(ctx)
			_ = p.Go(func() { left <- ctx.n.Load() })
		})
		_ = p.Go(func() { _ = m.TryPut(1) })
		if n := <-left; n != 0 {
			t.Errorf("%d registrations are left", n)
		}
	})
}

// A registered context counts the functions that are registered with it.
type registered struct {
	context.Context
	n atomic.Int32
}

func (c *registered) Done() <-chan struct{} { return never }

var never = make(chan struct{})

func (c *registered) AfterFunc(func()) (stop func() bool) {
	c.n.Add(1)
	return func() bool { c.n.Add(-1); return true }
}
