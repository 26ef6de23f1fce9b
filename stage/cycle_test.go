package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A ring has n stages. A handler of each calls Do of the next stage, and a task moves on until its number is 0. run counts the
// running handlers of each stage.
type ring struct {
	stages []*stage.Stage[int, int]
	most   []atomic.Int32
	run    []atomic.Int32
	before func(ctx context.Context, n int)
}

func newRing(n int, o stage.Options, on func() suspend.Spawner, batch bool) *ring {
	r := &ring{most: make([]atomic.Int32, n), run: make([]atomic.Int32, n)}
	pool := o.Pool
	for i := range n {
		enter := func() {
			k := r.run[i].Add(1)
			for most := r.most[i].Load(); k > most && !r.most[i].CompareAndSwap(most, k); most = r.most[i].Load() {
			}
		}
		next := func(ctx context.Context, n int) (v int, err error) {
			enter()
			suspend.Yield()
			if r.before != nil {
				r.before(ctx, n)
			}
			if n > 0 {
				r.run[i].Add(-1)
				v, err = r.stages[(i+1)%len(r.stages)].Do(ctx, n-1)
				enter()
			}
			suspend.Yield()
			r.run[i].Add(-1)
			return v + 1, err
		}
		if o.Pool = pool; pool == nil {
			o.On = on()
		}
		if batch && i%2 == 1 {
			r.stages = append(r.stages, stage.NewBatch(fmt.Sprint(i), func(ctx context.Context, in, out []int) (err error) {
				for k, n := range in {
					v, e := next(ctx, n)
					out[k], err = v, errors.Join(err, e)
				}
				return err
			}, o))
		} else {
			r.stages = append(r.stages, stage.New(fmt.Sprint(i), next, o))
		}
	}
	return r
}

func (r *ring) close(t *testing.T, width int32) {
	for i, s := range r.stages {
		require.NoError(t, s.Shutdown(bg))
		holds(t, s.Stats())
		require.LessOrEqual(t, r.most[i].Load(), width, "handlers that run in a stage, and do not wait")
		require.Equal(t, s.Stats().Accepted, s.Stats().Completed)
	}
}

// A handler calls Do, and through a chain of Dos this leads to its own stage. It must not wait for itself, however narrow the
// stages are: on their own pools, on one pool with one worker, on all schedulers, and with batch stages in the ring.
func TestCycleOfDos(t *testing.T) {
	o := stage.Options{Width: 1, Queue: 100}
	noQueue := stage.Options{Width: 1, Queue: stage.NoQueue}
	for name, c := range map[string]struct {
		stages int
		o      stage.Options
		batch  bool
	}{
		"one": {1, o, false}, "two": {2, o, false}, "three": {3, o, false}, "a batch": {2, o, true}, "no queue": {2, noQueue, false},
		"LIFO": {3, stage.Options{Width: 1, Queue: 100, LIFO: true}, false}, "wider": {3, stage.Options{Width: 3, Queue: 100}, false},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/shared=%v", name, shared), func(t *testing.T) {
				schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
					defer schedtest.Within(t, schedtest.Deadline)()
					o := c.o
					if shared {
						o.Pool = stage.NewPool("p", 1, next())
					}
					r := newRing(c.stages, o, next, c.batch)
					const tasks, rounds = 12, 20
					var all sync.WaitGroup
					for range tasks {
						all.Go(func() {
							v, err := r.stages[0].Do(bg, rounds)
							require.NoError(t, err)
							require.Equal(t, rounds+1, v)
						})
					}
					all.Wait()
					r.close(t, int32(o.Width))
				})
			})
		}
	}
}

// Several chains of Dos cross, and each holds a slot that another needs. The Do that completes the cycle fails with an error that
// names the stages. The other Dos continue.
func TestCrossingDos(t *testing.T) {
	for name, c := range map[string]struct {
		stages, far int // each root needs a slot of the root that is this many stages further
		o           stage.Options
		batch       bool
	}{
		"two": {2, 1, stage.Options{Width: 1, Queue: 10}, false}, "three": {3, 1, stage.Options{Width: 2, Queue: 10}, false},
		"no room": {3, 1, stage.Options{Width: 2, Queue: stage.NoQueue}, false}, "batches": {2, 1, stage.Options{Width: 1, Queue: 10}, true},
		"far": {6, 3, stage.Options{Width: 1, Queue: 10}, false}, "far, batches": {4, 2, stage.Options{Width: 1, Queue: 10}, true},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/shared=%v", name, shared), func(t *testing.T) {
				schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
					defer schedtest.Within(t, schedtest.Deadline)()
					o := c.o
					if shared {
						o.Pool = stage.NewPool("p", c.stages*c.o.Width, next())
					}
					roots := c.stages * c.o.Width / c.far
					var begun atomic.Int32
					all := promise.New[int]()
					r := newRing(c.stages, o, next, c.batch)
					r.before = func(ctx context.Context, n int) {
						if n == 1 { // no handler calls Do before each slot is taken
							if begun.Add(1) == int32(roots) {
								_ = all.Fill(0)
							}
							_, _ = all.Await(bg)
						}
					}
					var cycles atomic.Int32
					var done sync.WaitGroup
					for i := range roots {
						f, err := r.stages[i*c.far%c.stages].Begin(bg, c.far)
						require.NoError(t, err)
						done.Go(func() {
							v, err := f.Await(bg)
							if errors.Is(err, stage.ErrCycle) {
								cycles.Add(1)
								var ways []string
								for i := range c.stages {
									way := fmt.Sprint(i)
									for k := range c.stages {
										way += fmt.Sprint(" -> ", (i+k+1)%c.stages)
									}
									ways = append(ways, "stage: stages wait for each other in a cycle of Do: "+way)
								}
								require.Contains(t, ways, err.Error())
								return
							}
							require.NoError(t, err)
							require.Equal(t, c.far+1, v)
						})
					}
					done.Wait()
					require.EqualValues(t, 1, cycles.Load())
					for _, s := range r.stages {
						require.NoError(t, s.Shutdown(bg))
						holds(t, s.Stats())
					}
				})
			})
		}
	}
}

// A Do waits for a handler that can still continue, however long its chain is.
func TestCrossingDosThatGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *stage.Stage[int, int]
		leaf := stage.New("leaf", func(_ context.Context, n int) (int, error) { time.Sleep(time.Second); return n, nil }, stage.Options{Width: 1, Queue: 9})
		a = stage.New("a", func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				return leaf.Do(ctx, n)
			}
			time.Sleep(time.Millisecond)
			return b.Do(ctx, n)
		}, stage.Options{Width: 2, Queue: 9})
		b = stage.New("b", func(ctx context.Context, n int) (int, error) {
			time.Sleep(time.Millisecond)
			return a.Do(ctx, 0)
		}, stage.Options{Width: 1, Queue: 9})
		var all []promise.Future[int]
		for _, f := range []func() (promise.Future[int], error){
			func() (promise.Future[int], error) { return a.Begin(bg, 0) }, // keeps one of the two slots busy
			func() (promise.Future[int], error) { return a.Begin(bg, 1) },
			func() (promise.Future[int], error) { return b.Begin(bg, 1) },
			func() (promise.Future[int], error) { return b.Begin(bg, 1) },
		} {
			answer, err := f()
			require.NoError(t, err)
			all = append(all, answer)
		}
		for _, f := range all {
			_, err := f.Await(bg)
			require.NoError(t, err)
		}
		require.NoError(t, stage.Shutdown(bg, a, b, leaf))
	})
}

// The same holds with a Pipe and with replicas: the task of the Do may wait in any of their stages.
func TestCycleThroughAPipe(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var last *stage.Stage[int, int]
	var p stage.Flow[int, int]
	one := stage.Options{Width: 1, Queue: stage.NoQueue, Reject: true}
	first := stage.Replicate(1, nil, func(int) *stage.Stage[int, int] { return stage.New("first", double, one) })
	last = stage.New("last", func(ctx context.Context, n int) (int, error) {
		if n > 100 {
			return n, nil
		}
		return p.Do(ctx, n)
	}, one)
	p = stage.Pipe(first, last)
	v, err := p.Do(bg, 1)
	require.NoError(t, err)
	require.Equal(t, 128, v)
	require.NoError(t, stage.Shutdown(bg, first, last))
}

// Only a waiting handler lends its slot. A task of a goroutine that the handler has started takes a slot of its own, and a
// handler whose Do was cancelled lends none.
func TestOnlyAHandlerThatWaitsLendsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *stage.Stage[int, int]
		begun := make(chan int, 10)
		let := make(chan struct{})
		s = stage.New("s", func(ctx context.Context, n int) (int, error) {
			begun <- n
			if n == 1 {
				go func() { _, _ = s.Do(ctx, 2) }()
				<-let
			}
			return n, nil
		}, stage.Options{Width: 1, Queue: 5})
		require.NoError(t, s.Submit(bg, 1))
		synctest.Wait()
		require.Len(t, begun, 1, "the handler runs, so there is no slot")
		close(let)
		require.NoError(t, s.Shutdown(bg))
		require.Len(t, begun, 2)
	})
}

// A task that was lent a slot returns it, even if it is tried again or its caller has gone.
func TestLentSlotIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *stage.Stage[int, int]
		p := stage.NewPool("p", 5, nil)
		tries := 0
		a = stage.New("a", func(ctx context.Context, n int) (int, error) {
			switch n {
			case 1:
				ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
				defer cancel()
				_, err := b.Do(ctx, n)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			case 2: // the first try fails, and the second outlives its caller
				if tries++; tries == 1 {
					return 0, errOops
				}
				time.Sleep(time.Second)
			}
			return n, nil
		}, stage.Options{Pool: p, Width: 1, Queue: 5, Retry: func(_ error, try int) (time.Duration, bool) { return time.Second, try < 3 }})
		b = stage.New("b", func(ctx context.Context, n int) (int, error) {
			_, err := a.Do(ctx, 2)
			return n, err
		}, stage.Options{})
		f, err := a.Begin(bg, 1)
		require.NoError(t, err)
		time.Sleep(1600 * time.Millisecond)
		require.Equal(t, 1, a.Stats().Handlers, "the second try continues")
		require.NoError(t, a.Submit(bg, 0))
		synctest.Wait()
		require.Equal(t, 1, a.Stats().Waiting, "it is the only handler that runs")
		require.NoError(t, stage.Shutdown(bg, a, b))
		_, err = f.Await(bg)
		require.ErrorIs(t, err, context.DeadlineExceeded, "of a child")
		holds(t, a.Stats())
		require.EqualValues(t, 2, tries)
		require.EqualValues(t, 3, a.Stats().Accepted)
		require.EqualValues(t, 3, a.Stats().Completed+a.Stats().Cancelled)

		h := hold(stage.Options{})
		for i := range 2 {
			require.NoError(t, h.s.Submit(bg, i))
		}
		h.close(t)
	})
}

// If a handler cancels one Do after another, one other handler of its stage runs, and not one for each Do.
func TestCancelledDosShareTheLentSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *stage.Stage[int, int]
		var run, most atomic.Int32
		s = stage.New("s", func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				most.Store(max(most.Load(), run.Add(1)))
				time.Sleep(time.Second)
				run.Add(-1)
				return 0, nil
			}
			for range 100 {
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				_, err := s.Do(ctx, 0)
				require.Error(t, err)
				cancel()
			}
			return n, nil
		}, stage.Options{Width: 1, Queue: 3})
		_, err := s.Do(bg, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded, "of a child")
		require.NoError(t, s.Shutdown(bg))
		holds(t, s.Stats())
		require.EqualValues(t, 1, most.Load())
		require.Less(t, s.Stats().Accepted, uint64(8), "the others find no room")
	})
}

// A handler has cancelled a Do, and calls another. The second Do is lent the slot as soon as the first task has left, which may
// take until there is a permit. Nothing else admits it.
func TestLentDoBehindACancelledOne(t *testing.T) {
	for _, reject := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := stage.NewPool("p", 2, nil)
			busy := stage.New("busy", func(context.Context, int) (int, error) { time.Sleep(time.Second); return 0, nil }, stage.Options{Pool: p})
			require.NoError(t, busy.Submit(bg, 0))
			var s *stage.Stage[int, int]
			s = stage.New("s", func(ctx context.Context, n int) (int, error) {
				if n < 2 {
					return n, nil
				}
				p.SetWidth(1) // busy has the permit
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, err := s.Do(short, 0)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				long, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				v, err := s.Do(long, 1)
				require.NoError(t, err)
				return v, err
			}, stage.Options{Pool: p, Width: 1, Queue: stage.NoQueue, Reject: reject})
			require.NoError(t, s.Submit(bg, 2))
			time.Sleep(2 * time.Minute)
			require.NoError(t, stage.Shutdown(bg, s, busy))
			st := s.Stats()
			require.EqualValues(t, 2, st.Completed, "the two that ran")
			require.EqualValues(t, 1, st.Cancelled)
			holds(t, st)
		})
	}
}

// A Shutdown that gives up reports how many handlers run, and how many wait for another stage.
func TestCloseCountsHandlersThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := hold(stage.Options{Width: 1, Queue: stage.NoQueue})
		parse := stage.New("parse", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{Width: 4})
		ask := stage.New("ask", func(ctx context.Context, n int) (int, error) { return slow.s.Do(ctx, n) }, stage.Options{Width: 2})
		p := stage.Pipe(parse, slow.s)
		for i := range 5 {
			require.NoError(t, p.Submit(bg, i))
		}
		<-slow.begun // otherwise its task might be that of ask, which ends with it
		require.NoError(t, ask.Submit(bg, 1))
		synctest.Wait()
		done, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorContains(t, parse.Shutdown(done), "parse: closed: 0 tasks were dropped, 0 handlers still run, and 4 tasks wait for another stage: context canceled")
		require.ErrorContains(t, ask.Shutdown(done), "ask: closed: 0 tasks were dropped, 0 handlers still run, and 1 tasks wait for another stage")
		require.ErrorContains(t, slow.s.Shutdown(done), "held: closed: 0 tasks were dropped, 1 handlers still run, and 0 tasks wait for another stage")
		synctest.Wait()
		slow.close(t)
		require.NoError(t, stage.Shutdown(bg, parse, ask))
	})
}

// If a Limiter panics or ends its goroutine, its worker is lost, but not its permit, and the stage still works.
func TestLimiterDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic("from Update") }} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			var panics atomic.Int32
			sched := workstealing.New(workstealing.Options{Workers: 2, OnPanic: func(any, []byte) { panics.Add(1) }})
			var updates atomic.Int32
			s := stage.New("s", func(ctx context.Context, n int) (int, error) {
				return n, suspend.Sleep(ctx, time.Millisecond)
			}, stage.Options{On: sched, Width: 3, Queue: 1000, Limit: limiter(func(sample stage.Sample) int {
				if updates.Add(1)%2 == 1 {
					end()
				}
				return sample.Width
			})})
			var all []promise.Future[int]
			for i := range 500 {
				f, err := s.Begin(bg, i)
				require.NoError(t, err)
				all = append(all, f)
			}
			for i, f := range all {
				v, err := f.Await(bg)
				require.NoError(t, err)
				require.Equal(t, i, v)
			}
			require.Greater(t, updates.Load(), int32(4))
			require.NoError(t, s.Shutdown(bg))
			sched.Close()
			if name == "panic" {
				require.Equal(t, (updates.Load()+1)/2, panics.Load())
			}
		})
	}
}

// Tasks that ran on the callers of Do count for the Limiter, too. If a Limiter panics there, the stage is unchanged.
func TestLimiterSeesInlineDos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var samples []stage.Sample
		s := stage.New("s", func(_ context.Context, n int) (int, error) { time.Sleep(time.Millisecond); return n, nil },
			stage.Options{Width: 3, Limit: limiter(func(sample stage.Sample) int {
				if samples = append(samples, sample); len(samples) == 1 {
					panic("from Update")
				}
				return 2
			})})
		panics := 0
		for i := range 40 {
			func() {
				defer func() {
					if recover() != nil {
						panics++
					}
				}()
				v, err := s.Do(bg, i)
				require.NoError(t, err)
				require.Equal(t, i, v)
			}()
		}
		require.Equal(t, 1, panics)
		require.GreaterOrEqual(t, len(samples), 3)
		for i, sample := range samples {
			require.Equal(t, 10, sample.Done)
			require.Equal(t, time.Millisecond, sample.Service)
			require.Equal(t, []int{3, 3, 2, 2}[i], sample.Width)
		}
		require.NoError(t, s.Shutdown(bg))
		holds(t, s.Stats())
	})
}

type limiter func(stage.Sample) int

func (l limiter) Update(s stage.Sample) int { return l(s) }

// A crossing has a stage a, whose handler of "h" sends "t" to b through a flow, and a stage b, whose handler of "k" sends "t" to
// a.
type crossing struct {
	pool      *stage.Pool // the pool of a
	a, b      *stage.Stage[string, int]
	flow      stage.Flow[string, int]
	let, hold chan struct{} // k calls Do after let is closed, and "held" ends after hold is closed
	answers   []promise.Future[int]
	beside    stage.Closer
}

func (x *crossing) begin(f stage.Flow[string, int], in string) {
	answer, err := f.Begin(bg, in)
	if err != nil {
		panic(err)
	}
	x.answers = append(x.answers, answer)
	synctest.Wait()
}

func (x *crossing) cross() {
	close(x.let)
	x.begin(x.a, "h")
	x.begin(x.b, "k")
	close(x.hold)
}

// narrow lets k call Do while a has two slots, one of which h holds, and then takes the other slot away.
func (x *crossing) narrow(f stage.Flow[string, int], beside string) {
	x.begin(x.b, "k")
	x.begin(x.a, "h")
	x.begin(f, beside)
	close(x.let)
	synctest.Wait()
	x.a.SetWidth(1)
	close(x.hold)
}

// A cycle is also found if no handler completes it by a wait: a task moves to the next stage of a Pipe or is tried again, the
// stage becomes narrower, or a handler whose slot is gone ends. The task of the Do that fails is a failure, and is reported to
// OnFail.
func TestCrossingDosCompletedByATask(t *testing.T) {
	one, two := stage.Options{Width: 1, Queue: 4}, stage.Options{Width: 2, Queue: 4}
	for name, c := range map[string]struct {
		a     stage.Options
		cross func(x *crossing)
	}{
		"pipe": {one, func(x *crossing) {
			c := stage.New("c", func(_ context.Context, in string) (string, error) { <-x.hold; return in, nil }, one)
			x.beside, x.flow = c, stage.Pipe[string, string, int](c, x.b)
			x.cross()
		}},
		"retry":          {one, (*crossing).cross},
		"a handler ends": {two, func(x *crossing) { x.narrow(x.a, "held") }},
		"a batch ends": {stage.Options{Width: 2, Queue: 4, Batch: 1}, func(x *crossing) {
			c := stage.New("c", func(_ context.Context, n int) (int, error) { return n, nil }, one)
			x.beside = c
			x.narrow(stage.Pipe(x.a, c), "held")
		}},
		"SetWidth": {two, func(x *crossing) { // the other slot of a is free, but its pool is not
			busy := stage.New("busy", func(context.Context, string) (int, error) { <-x.hold; return 0, nil }, stage.Options{Pool: x.pool})
			x.beside = busy
			x.narrow(busy, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &crossing{pool: stage.NewPool("p", 1, nil), let: make(chan struct{}), hold: make(chan struct{})}
				c.a.Pool = x.pool
				ofA := func(ctx context.Context, in string) (int, error) {
					switch in {
					case "h":
						return x.flow.Do(ctx, "t")
					case "held":
						<-x.hold
					}
					return 1, nil
				}
				if c.a.Batch == 0 {
					x.a = stage.New("a", ofA, c.a)
				} else {
					x.a = stage.NewBatch("a", func(ctx context.Context, in []string, out []int) (err error) {
						out[0], err = ofA(ctx, in[0])
						return err
					}, c.a)
				}
				tries := 0
				x.b = stage.New("b", func(ctx context.Context, in string) (int, error) {
					if in == "k" {
						<-x.let
						return x.a.Do(ctx, "t")
					}
					if tries++; tries == 1 && name == "retry" {
						return 0, errOops
					}
					return 1, nil
				}, stage.Options{Width: 1, Queue: 4, Retry: func(error, int) (time.Duration, bool) { return time.Second, true }})
				x.flow = x.b
				heard := 0
				for _, s := range []*stage.Stage[string, int]{x.a, x.b} {
					s.OnFail(func(_ context.Context, in string, err error) {
						if in == "t" && errors.Is(err, stage.ErrCycle) {
							heard++
						}
					})
				}
				c.cross(x)
				var errs []error
				for _, answer := range x.answers {
					_, err := answer.Await(bg)
					errs = append(errs, err)
				}
				require.ErrorIs(t, errors.Join(errs...), stage.ErrCycle)
				require.Equal(t, 1, heard)
				if x.beside != nil {
					require.NoError(t, x.beside.Shutdown(bg))
				}
				require.NoError(t, stage.Shutdown(bg, x.a, x.b))
				for _, s := range []*stage.Stage[string, int]{x.a, x.b} {
					holds(t, s.Stats())
					require.Zero(t, s.Stats().Cancelled)
				}
			})
		})
	}
}

// A task with a lent slot keeps it between two tries. If another task used it, that task would have to end before the next try
// begins. A handler that waits until the task has left is in no cycle.
func TestLentSlotBetweenTwoTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s, b *stage.Stage[string, int] // the results are nanoseconds
		start, tries := time.Now(), 0
		o := stage.Options{Width: 1, Queue: 2, Retry: func(_ error, try int) (time.Duration, bool) { return time.Second, try < 2 }}
		handler := func(ctx context.Context, in string) (int, error) {
			switch in {
			case "ask":
				return s.Do(ctx, "lent")
			case "ask, and go on":
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, err := b.Do(short, "")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return s.Do(ctx, "other")
			case "lent":
				if tries++; tries%2 == 1 {
					return 0, errOops
				}
			case "stranger":
				time.Sleep(time.Hour)
			}
			return int(time.Since(start)), nil
		}
		s = stage.New("s", handler, o)
		f, err := s.Begin(bg, "ask")
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, s.Submit(bg, "stranger"))
		after, err := f.Await(bg)
		require.NoError(t, err)
		require.EqualValues(t, time.Second, after)
		require.NoError(t, s.Shutdown(bg))

		o.Queue = stage.NoQueue
		s = stage.New("s", handler, o)
		b = stage.New("b", func(ctx context.Context, _ string) (int, error) {
			return s.Do(context.WithoutCancel(ctx), "lent")
		}, o)
		start = time.Now()
		after, err = s.Do(bg, "ask, and go on")
		require.NoError(t, err)
		require.EqualValues(t, time.Second, after)
		require.NoError(t, stage.Shutdown(bg, s, b))
	})
}

// A task whose Do was cancelled before it began leaves its parent at once, and not when it leaves the queue. Until then, the
// parent might wait for itself.
func TestCancelledDoLeavesItsParent(t *testing.T) {
	for _, piped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var a, b, c *stage.Stage[string, int]
			one := stage.Options{Width: 1, Queue: 4}
			a = stage.New("a", func(ctx context.Context, in string) (int, error) {
				if in == "h" {
					return b.Do(ctx, "t")
				}
				return 1, nil
			}, one)
			first := stage.New("first", func(_ context.Context, in string) (string, error) { time.Sleep(2 * time.Second); return in, nil }, one)
			b = stage.New("b", func(ctx context.Context, in string) (int, error) {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				to := stage.Flow[string, int](c)
				if piped {
					to = stage.Pipe(first, to)
				}
				_, err := to.Do(short, "gone")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return 1, nil
			}, one)
			c = stage.New("c", func(ctx context.Context, in string) (int, error) {
				if in == "k" {
					time.Sleep(10 * time.Second)
					return a.Do(ctx, "t")
				}
				panic("it was cancelled")
			}, one)
			k, err := c.Begin(bg, "k")
			require.NoError(t, err)
			start := time.Now()
			root := stage.New("root", func(ctx context.Context, in string) (int, error) {
				_, err := a.Do(ctx, in)
				require.ErrorIs(t, err, context.DeadlineExceeded, "of a child")
				require.Less(t, time.Since(start), 3*time.Second)
				time.Sleep(time.Minute) // its child leaves the queue meanwhile
				return 0, nil
			}, stage.Options{})
			r, err := root.Begin(bg, "h")
			require.NoError(t, err)
			_, err = r.Await(bg)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Greater(t, time.Since(start), time.Minute)
			_, err = k.Await(bg)
			require.NoError(t, err)
			require.NoError(t, stage.Shutdown(bg, first, a, b, c, root))
			require.EqualValues(t, 1, c.Stats().Cancelled)
			holds(t, c.Stats())
		})
	}
}

// While OnFail is called for a task that was dropped, a handler that waits for room is in no cycle, because there will be room.
func TestNoCycleWhileOnFailRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *stage.Stage[string, int]
		let := make(chan struct{})
		a = stage.New("a", func(ctx context.Context, in string) (int, error) {
			if in == "h" {
				<-let
				return 1, b.Submit(ctx, "child")
			}
			return 1, nil
		}, stage.Options{Width: 1, Queue: 4})
		b = stage.New("b", func(ctx context.Context, in string) (int, error) {
			if in == "k" {
				return a.Do(ctx, "t")
			}
			return 1, nil
		}, stage.Options{Width: 1, Queue: 1})
		b.Prioritize(func(in string) int { return len(in) / 4 }).OnFail(func(context.Context, string, error) { time.Sleep(time.Second) })
		h, err := a.Begin(bg, "h")
		require.NoError(t, err)
		for _, in := range []string{"k", "low", "high"} {
			require.NoError(t, b.TrySubmit(bg, in))
			synctest.Wait()
		}
		close(let)
		_, err = h.Await(bg)
		require.NoError(t, err)
		require.NoError(t, stage.Shutdown(bg, a, b))
	})
}

// A Do that waits lazily is not over when its context ends, so a cycle with it must be found.
func TestCycleOfALazyDo(t *testing.T) { synctest.Test(t, testCycleOfALazyDo) }

func testCycleOfALazyDo(t *testing.T) {
	var a, b *stage.Stage[int, int]
	cancelled := promise.New[int]()
	ctx, cancel := context.WithCancel(bg)
	a = stage.New("a", func(c context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		return b.Do(suspend.Lazily(within{c, ctx}), 0)
	}, stage.Options{Width: 1, Queue: 1})
	b = stage.New("b", func(c context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		_, _ = cancelled.Await(bg)
		return a.Do(c, 0)
	}, stage.Options{Width: 1, Queue: 1})
	first, err := b.Begin(bg, 1)
	require.NoError(t, err)
	second, err := a.Begin(bg, 1)
	require.NoError(t, err)
	synctest.Wait() // now the Do of a waits; a Do whose context ended before its wait would fail
	cancel()
	_ = cancelled.Fill(0)
	_, e1 := first.Await(bg)
	_, e2 := second.Await(bg)
	require.ErrorIs(t, errors.Join(e1, e2), stage.ErrCycle)
	require.NoError(t, stage.Shutdown(bg, a, b))
}

// within is a context with the values of one context and the end of another.
type within struct {
	context.Context
	end context.Context
}

func (w within) Done() <-chan struct{} { return w.end.Done() }
func (w within) Err() error            { return w.end.Err() }
