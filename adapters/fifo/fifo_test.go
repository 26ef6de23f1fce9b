package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

func TestMain(m *testing.M) {
	switch os.Getenv("FIFO_TEST") {
	case "first":
		submitFirst()
	case "crash":
		crash()
	case "stacks":
		stacks()
	}
	schedtest.Main(m)
}

func run(t *testing.T, o fifo.Options, main func(s *fifo.Scheduler)) *fifo.Scheduler {
	t.Helper()
	defer schedtest.Within(t, schedtest.Deadline)()
	s := fifo.New(o)
	if err := s.Run(bg, func(context.Context) error { main(s); return nil }); err != nil {
		t.Error(err)
	}
	return s
}

func TestTasksRunInTheOrderInWhichTheyBecomeRunnable(t *testing.T) {
	var order []string
	note := func(s string) { order = append(order, s) }
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		var p promise.Promise[int]
		for i := range 3 {
			_ = s.Go(func() {
				note(fmt.Sprint("start", i))
				_, _ = p.Await(bg)
				note(fmt.Sprint("woken", i))
			})
		}
		_ = s.Execute(func() { note("call") })
		suspend.Yield()
		_ = p.Fill(1)
		_ = s.Go(func() { note("last") })
		note("main")
	})
	want := []string{"start0", "start1", "start2", "call", "main", "woken0", "woken1", "woken2", "last"}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// The same program runs in the same order each time, whichever coroutine takes the place of a parked task.
func TestDeterministic(t *testing.T) {
	program := func() (trace []int) {
		run(t, fifo.Options{}, func(s *fifo.Scheduler) {
			var m mvar.MVar[int]
			var l mutex.Mutex
			for i := range 20 {
				_ = s.Go(func() {
					for k := range 10 {
						switch (i + k) % 4 {
						case 0:
							_ = m.Put(bg, i)
						case 1:
							v, ok := m.TryTake()
							if ok {
								trace = append(trace, v)
							}
						case 2:
							l.Lock()
							suspend.Yield()
							l.Unlock()
						case 3:
							_ = s.Go(func() { trace = append(trace, -i) })
						}
						trace = append(trace, 100*i+k)
					}
				})
			}
			for range 200 {
				m.TryTake()
				suspend.Yield()
			}
		})
		return trace
	}
	first := program()
	for range 5 {
		if !slices.Equal(program(), first) {
			t.Fatal("another order")
		}
	}
}

func TestRunReturnsWhatMainReturnsOnceAllHasEnded(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	oops, late := errors.New("oops"), false
	err := fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() {
			_ = suspend.Sleep(bg, time.Millisecond)
			late = true
		})
		return oops
	})
	if err != oops || !late {
		t.Errorf("Run = %v, late = %v", err, late)
	}
}

func TestRunOnce(t *testing.T) {
	s := fifo.New(fifo.Options{})
	cancelled, cancel := context.WithCancel(bg)
	cancel()
	if err := s.Run(cancelled, func(context.Context) error { t.Error("ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a done context = %v", err)
	}
	before := false
	_ = s.Go(func() { before = true })
	if err := s.Run(bg, func(context.Context) error { return nil }); err != nil || !before {
		t.Errorf("Run = %v, the task submitted before it has run: %v", err, before)
	}
	if err := s.Run(bg, func(context.Context) error { t.Error("ran"); return nil }); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("second Run = %v", err)
	}
	if err := s.Go(func() { t.Error("ran") }); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("Go = %v", err)
	}
	if err := s.Execute(func() { t.Error("ran") }); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("Execute = %v", err)
	}
}

func TestNested(t *testing.T) {
	run(t, fifo.Options{}, func(outer *fifo.Scheduler) {
		var p promise.Promise[int]
		others := 0
		_ = outer.Go(func() { others++; _ = p.Fill(42) })
		err := fifo.Run(bg, func(context.Context) error {
			if suspend.Here() == suspend.Spawner(outer) {
				t.Error("an inner task counts as one outside")
			}
			v, err := p.Await(bg) // with no runnable task, the inner Run parks its outer task
			if v != 42 {
				t.Errorf("Await = %d, %v", v, err)
			}
			return nil
		})
		if err != nil || others != 1 {
			t.Errorf("inner Run = %v, others = %d", err, others)
		}
		if suspend.Here() != suspend.Spawner(outer) {
			t.Error("the outer binding is not restored")
		}
	})
}

// A nested Run that is never idle lets the outer tasks run.
func TestNestedRunYields(t *testing.T) {
	run(t, fifo.Options{}, func(outer *fifo.Scheduler) {
		stop := false
		_ = outer.Go(func() { stop = true })
		_ = fifo.Run(bg, func(context.Context) error {
			for !stop {
				suspend.Yield()
			}
			return nil
		})
	})
}

// Tasks get the context of Run. Its end does not end the Run, which waits for its tasks as always.
func TestRunIsNotCancelled(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	ctx, cancel := context.WithCancel(bg)
	var wakes uint64
	s := fifo.New(fifo.Options{})
	err := s.Run(ctx, func(ctx context.Context) error {
		cancel()
		if _, err := promise.New[int]().Await(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Await = %v", err)
		}
		err := suspend.Sleep(bg, 10*time.Millisecond)
		wakes = s.Stats().Wakes
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if wakes > 100 {
		t.Errorf("%d wakes during one sleep", wakes)
	}
}

func TestLockOSThread(t *testing.T) {
	run(t, fifo.Options{LockOSThread: true}, func(s *fifo.Scheduler) {
		var m mvar.MVar[int]
		_ = s.Go(func() {
			for i := range 100 {
				_ = m.Put(bg, i)
			}
		})
		for i := range 100 {
			if v, _ := m.Take(bg); v != i {
				t.Fatalf("Take = %d", v)
			}
		}
		_ = s.Go(func() { runtime.Goexit() })
		suspend.Yield()
		_ = suspend.Sleep(bg, time.Millisecond)
	})
	run(t, fifo.Options{}, func(*fifo.Scheduler) {
		defer func() {
			if v := recover(); v != "fifo: Run with LockOSThread inside a task" {
				t.Errorf("panic %v", v)
			}
		}()
		_ = fifo.New(fifo.Options{LockOSThread: true}).Run(bg, func(context.Context) error { return nil })
	})
}

func TestOnIdle(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		var batch []int
		var replies []*promise.Promise[int]
		dispatches := 0
		// Ten tasks ask. When all of them wait, one batch is sent, neither by a timer nor too early.
		ask := func(n int) int {
			p := promise.New[int]()
			if batch = append(batch, n); len(batch) == 1 {
				s.OnIdle(func() {
					dispatches++
					for i, q := range replies {
						_ = q.Fill(10 * batch[i])
					}
					batch, replies = nil, nil
				})
			}
			replies = append(replies, p)
			v, _ := p.Await(bg)
			return v
		}
		left := 10
		var end promise.Promise[int]
		for i := range 10 {
			_ = s.Go(func() {
				for range i {
					suspend.Yield()
				}
				if v := ask(i); v != 10*i {
					t.Errorf("ask(%d) = %d", i, v)
				}
				if left--; left == 0 {
					_ = end.Fill(0)
				}
			})
		}
		_, _ = end.Await(bg)
		if dispatches != 1 {
			t.Errorf("%d dispatches", dispatches)
		}
	})
}

func TestOnIdleMaySuspendTheRunAndFail(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		var p promise.Promise[int]
		s.OnIdle(func() {
			_ = suspend.Sleep(bg, time.Millisecond)
			_ = p.Fill(7)
		})
		if v, _ := p.Await(bg); v != 7 {
			t.Errorf("Await = %d", v)
		}
	})
	t.Run("panic", func(t *testing.T) {
		ended := false
		func() {
			defer func() {
				if v := recover(); v != "hook" {
					t.Errorf("panic %v", v)
				}
			}()
			run(t, fifo.Options{}, func(s *fifo.Scheduler) {
				var p promise.Promise[int]
				s.OnIdle(func() { _ = p.Fill(1); panic("hook") })
				_, _ = p.Await(bg)
				ended = true
			})
		}()
		if !ended {
			t.Error("main was abandoned")
		}
	})
}

func TestOnIdleFromElsewhere(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		var p promise.Promise[int]
		go func() {
			for s.Stats().Running > 0 { // usually it falls asleep now
				runtime.Gosched()
			}
			s.OnIdle(func() { _ = p.Fill(1) })
		}()
		_, _ = p.Await(bg)
	})
}

func TestGoexitEndsOneTask(t *testing.T) {
	ended, after := 0, false
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		for range 10 {
			_ = s.Go(func() {
				defer func() { ended++ }()
				defer suspend.Yield() // a deferred call may suspend
				suspend.Yield()
				runtime.Goexit()
			})
		}
		_ = s.Execute(runtime.Goexit)
		_ = s.Execute(func() { after = true })
		for ended < 10 {
			suspend.Yield()
		}
	})
	if !after {
		t.Error("the callback after the one that exited has not run")
	}
}

// The same holds if the exiting task was resumed by a task that stands in for the scheduler.
func TestGoexitWhileAnotherStandsIn(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		_ = s.Go(func() {})
		suspend.Yield() // now an idle coroutine is available
		var p promise.Promise[int]
		_ = s.Go(func() { defer func() { _ = p.Fill(1) }(); runtime.Goexit() })
		if v, err := p.Await(bg); v != 1 {
			t.Errorf("Await = %d, %v", v, err)
		}
	})
}

func TestGoexitOfMainEndsRunLast(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var other atomic.Bool
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		_ = fifo.Run(bg, func(context.Context) error {
			_ = suspend.Here().Go(func() {
				_ = suspend.Sleep(bg, time.Millisecond)
				other.Store(true)
			})
			runtime.Goexit()
			return nil
		})
		returned = true
	}()
	<-done
	if returned || !other.Load() {
		t.Errorf("returned = %v, the other task ended = %v", returned, other.Load())
	}
}

func TestOnPanic(t *testing.T) {
	var values []any
	var stacks string
	o := fifo.Options{OnPanic: func(v any, stack []byte) { values = append(values, v); stacks += string(stack) }}
	run(t, o, func(s *fifo.Scheduler) {
		_ = s.Go(func() { panics("task") })
		_ = s.Execute(func() { panics("callback") })
		_ = s.Execute(func() { values = append(values, "next") })
		suspend.Yield()
		suspend.Yield()
	})
	if !slices.Equal(values, []any{"task", "callback", "next"}) {
		t.Errorf("values %v", values)
	}
	if strings.Count(stacks, "fifo_test.panics") < 2 {
		t.Errorf("the stacks do not show who panicked:\n%s", stacks)
	}
	s := fifo.New(o)
	oops := errors.New("oops")
	if err := s.Run(bg, func(context.Context) error { panic(oops) }); !errors.Is(err, oops) {
		t.Errorf("Run = %v after main panicked", err)
	}
}

func panics(v any) { panic(v) }

func crash() {
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() { panics("at the disco") })
		defer func() { _ = recover() }() // the recovered panic is not reported
		_ = suspend.Sleep(bg, time.Minute)
		return nil
	})
	os.Exit(0)
}

func TestPanicEndsTheProcessWithTheTasksStack(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FIFO_TEST=crash")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("the process ended with %v", err)
	}
	for _, want := range []string{"panic: at the disco", "fifo_test.panics"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// stacks prints the size of the stack of a waiting goroutine, and of a waiting task.
func stacks() {
	const n = 10_000
	size := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	each := func(start func()) uint64 {
		metrics.Read(size)
		before := size[0].Value.Uint64()
		start()
		metrics.Read(size)
		return (size[0].Value.Uint64() - before) / n
	}
	var waiting sync.WaitGroup
	waiting.Add(n)
	goroutine := each(func() {
		for range n {
			go func() { waiting.Done(); select {} }()
		}
		waiting.Wait()
	})
	_ = fifo.Run(bg, func(context.Context) error {
		task := each(func() {
			var m mvar.MVar[int]
			for range n {
				ctx, _ := cancel.New(bg)
				_ = suspend.Here().Go(func() { _, _ = m.Take(ctx) })
			}
			suspend.Yield()
		})
		fmt.Println(goroutine, task)
		os.Exit(0)
		return nil
	})
}

// A small task fits into the first stack of a goroutine: a wait needs no larger stack, and the coroutine adds little. A few
// tasks need more, if the allocator needs a new span at that moment.
func TestAWaitFitsIntoTheFirstStack(t *testing.T) {
	cmd := exec.Command(os.Args[0]) // runs in a new process, because a garbage collection adapts the size of first stacks to those that it has seen
	cmd.Env = append(os.Environ(), "FIFO_TEST=stacks", "GOGC=off", "GOMEMLIMIT=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var goroutine, task int
	_, err = fmt.Sscan(string(out), &goroutine, &task)
	if schedtest.Race { // the race detector makes frames larger
		task /= 2
	}
	if err != nil || task > goroutine*5/4 {
		t.Errorf("the stacks of a goroutine and a task: %s", out)
	}
}

func TestStallAfter(t *testing.T) {
	report := make(chan string, 10)
	o := fifo.Options{StallAfter: time.Millisecond, OnStall: func(stack []byte) { report <- string(stack) }}
	run(t, o, func(s *fifo.Scheduler) {
		for range 50 { // tasks that yield properly, and that stand in for each other
			_ = s.Go(func() { suspend.Yield() })
			suspend.Yield()
		}
		_ = s.Go(func() {
			holdsTheScheduler(report)
		})
		suspend.Yield()
		holdsTheScheduler(report)
	})
}

func holdsTheScheduler(report chan string) {
	for r := range report { // blocks natively, on purpose
		if strings.Contains(r, "holdsTheScheduler") {
			return
		}
	}
}

func TestStats(t *testing.T) {
	s := run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		var p promise.Promise[int]
		for range 10 {
			_ = s.Go(func() { _, _ = p.Await(bg) })
		}
		for range 10 {
			suspend.Yield()
		}
		done := make(chan sched.Stats, 1)
		go func() { // once the task sleeps
			for s.Stats().Running > 0 || s.Stats().Suspended < 11 {
				runtime.Gosched()
			}
			done <- s.Stats()
			_ = p.Fill(1)
		}()
		_, _ = p.Await(bg)
		if st := <-done; st.Live != 11 || st.Suspended != 11 {
			t.Errorf("stats of the sleeping scheduler: %+v", st)
		}
	})
	if st := s.Stats(); st.Live != 0 || st.Running != 0 || st.Suspended != 0 || st.Wakes != 11 {
		t.Errorf("stats at the end: %+v", st)
	}
}

// Stats also counts the wake-ups of a scheduler that falls asleep again each time.
func TestWakesOfASchedulerThatSleeps(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		var there, back mvar.MVar[int]
		go func() {
			for range 1000 {
				_ = there.Put(bg, 1)
				_, _ = back.Take(bg)
			}
			if st := s.Stats(); st.Wakes < 500 {
				t.Errorf("after 1000 round trips: %+v", st)
			}
			_ = there.Put(bg, 0)
		}()
		for v := 1; v != 0; {
			if v, _ = there.Take(bg); v != 0 {
				_ = back.Put(bg, v)
			}
		}
	})
}

func TestWakesFromElsewhere(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		const n = 2000
		var m mvar.MVar[int]
		go func() {
			for i := range n {
				_ = m.Put(bg, i)
				if i%100 == 0 {
					schedtest.Quiet(t) // the scheduler falls asleep in between
				}
			}
		}()
		for i := range n {
			if v, err := m.Take(bg); v != i {
				t.Fatalf("Take = %d, %v, want %d", v, err, i)
			}
		}
	})
}

// Go races with the end of Run: each function is either run before Run returns, or refused.
func TestGoAgainstTheEnd(t *testing.T) {
	accepted, refused := 0, 0
	covered := func() bool { return accepted > 0 && refused > 0 }
	for k := 0; schedtest.More(k, 300, covered); k++ {
		var ran atomic.Int32
		s := fifo.New(fifo.Options{})
		begun, got := make(chan struct{}), make(chan int32)
		go func() {
			close(begun)
			n := int32(0)
			for range 20 {
				if s.Go(func() { ran.Add(1) }) == nil {
					n++
				}
				runtime.Gosched()
			}
			got <- n
		}()
		_ = s.Run(bg, func(context.Context) error { <-begun; runtime.Gosched(); return nil })
		atEnd := ran.Load()
		n := <-got
		if ran.Load() != n || atEnd != n {
			t.Fatalf("%d accepted, %d run, %d of them before the end", n, ran.Load(), atEnd)
		}
		accepted += int(n)
		refused += 20 - int(n)
	}
	if !covered() {
		t.Errorf("an outcome was not covered: %d accepted, %d refused", accepted, refused)
	}
}

// Thousands of waiters of one mutex are cancelled, each in constant time. In the end, their memory is free.
func TestCancelManyWaiters(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	cost := func(n int) (perWaiter time.Duration) {
		var m mutex.Mutex
		m.Lock()
		run(t, fifo.Options{}, func(s *fifo.Scheduler) {
			ctx, cancel := schedtest.WithCancel()
			failed := 0
			for range n {
				_ = s.Go(func() {
					if m.LockContext(ctx) != nil {
						failed++
					}
				})
			}
			suspend.Yield()
			start := time.Now()
			cancel()
			for failed < n {
				suspend.Yield()
			}
			perWaiter = time.Since(start) / time.Duration(n)
		})
		if !func() bool { m.Unlock(); return m.TryLock() }() {
			t.Error("the mutex is not free")
		}
		return perWaiter
	}
	n := 20_000
	if schedtest.Race || testing.Short() {
		n = 5_000
	}
	small, large := cost(n/10), cost(n)
	linear := func() bool { return large <= 5*small+time.Microsecond }
	for i := 0; i < 20 && !linear(); i++ { // repeats, because other processes may have run meanwhile
		large = min(large, cost(n))
	}
	t.Logf("%v for each of %d waiters, %v for each of %d", small, n/10, large, n)
	if !linear() {
		t.Errorf("not linear: %v for each of %d waiters, %v for each of %d", small, n/10, large, n)
	}
	// The runtime never frees the descriptor of a goroutine, and the table of bindings keeps its size. So the test checks whether
	// a later round needs more memory than the first.
	grown := int64(0)
	for i := 0; i == 0 || i < 4 && grown > 1<<19; i++ {
		before := heapAtRest(goroutines)
		cost(n)
		grown = int64(heapAtRest(goroutines) - before)
	}
	if grown > 1<<19 {
		t.Errorf("the heap grows by %d bytes in each round", grown)
	}
}

// heapAtRest returns the size of the heap when no coroutine is kept for later Runs.
func heapAtRest(goroutines int) uint64 {
	for start := time.Now(); runtime.NumGoroutine() > goroutines+2 && time.Since(start) < schedtest.Deadline; {
		time.Sleep(time.Millisecond)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		check := func(name string, limit float64, f func()) {
			if got := testing.AllocsPerRun(100, f); got > limit {
				t.Errorf("%s: %v allocations, limit %v", name, got, limit)
			}
		}
		resume := func(ctx context.Context) {
			_, _ = suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
				r.Resume(1, nil)
				return 0, false
			})
		}
		check("suspend and resume", 0, func() { resume(bg) })
		check("suspend and resume, cancellable", 0, func() { resume(ctx) })
		check("yield", 0, suspend.Yield)
		check("spawn", 1, func() { _ = s.Go(func() {}); suspend.Yield() })
		var a, b mvar.MVar[int]
		_ = s.Go(func() {
			for {
				v, _ := a.Take(ctx)
				if v < 0 {
					return
				}
				_ = b.Put(ctx, v)
			}
		})
		check("ping-pong", 0, func() { _ = a.Put(ctx, 1); _, _ = b.Take(ctx) })
		_ = a.Put(bg, -1)
	})
}

// The same holds if its tasks wake each other, and stand in for the scheduler meanwhile.
func TestNestedRunYieldsThoughItsTasksStandIn(t *testing.T) {
	run(t, fifo.Options{}, func(outer *fifo.Scheduler) {
		stop, rounds := false, 0
		_ = outer.Go(func() { stop = true })
		inner := fifo.New(fifo.Options{})
		_ = inner.Run(bg, func(context.Context) error {
			var a, b mvar.MVar[int]
			_ = inner.Go(func() {
				for {
					n, _ := a.Take(bg)
					_ = b.Put(bg, n)
					if n < 0 {
						return
					}
				}
			})
			for n := 0; n >= 0; rounds++ {
				if stop {
					n = -1
				}
				_ = a.Put(bg, n)
				_, _ = b.Take(bg)
			}
			return nil
		})
		if rounds > 1000 {
			t.Errorf("%d rounds before the outer scheduler had a turn", rounds)
		}
	})
}

// A Run inside a task is nested even if the task has no Spawner.
func TestNestedInATaskWithoutSpawner(t *testing.T) {
	suspend.Bind(sched.NewThread(), func() {
		defer func() {
			if v := recover(); v != "fifo: Run with LockOSThread inside a task" {
				t.Errorf("panic %v", v)
			}
		}()
		_ = fifo.New(fifo.Options{LockOSThread: true}).Run(bg, func(context.Context) error { return nil })
	})
}

func TestStallsAfterAGoexit(t *testing.T) {
	reports := make(chan string, 100)
	o := fifo.Options{StallAfter: time.Millisecond, OnStall: func(stack []byte) { reports <- string(stack) }}
	run(t, o, func(s *fifo.Scheduler) {
		_ = s.Go(runtime.Goexit)
		suspend.Yield()
		_ = suspend.Sleep(bg, 20*time.Millisecond)
		for len(reports) > 0 { // drops reports of earlier steps, on a loaded machine
			<-reports
		}
		_ = suspend.Sleep(bg, 40*time.Millisecond) // an idle scheduler is not stalled
		for len(reports) > 0 {
			if r := <-reports; !strings.Contains(r, "TestStallsAfterAGoexit") {
				t.Errorf("reported while idle:\n%s", r)
			}
		}
		holdsTheScheduler(reports)
	})
}

// OnStall may end the scheduler's tasks, and with them the scheduler.
func TestOnStallIsCalledUnderNoLock(t *testing.T) {
	release, over, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := fifo.New(fifo.Options{StallAfter: time.Millisecond, OnStall: func([]byte) {
		defer close(returned)
		release <- struct{}{}
		<-over
	}})
	defer schedtest.Within(t, schedtest.Deadline)()
	_ = s.Run(bg, func(context.Context) error { <-release; return nil }) // ends while OnStall runs
	close(over)
	<-returned
}

func TestCallbacksAreNotRetained(t *testing.T) {
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		gone := make(chan struct{})
		func() {
			big := new([1 << 10]byte)
			runtime.AddCleanup(big, func(struct{}) { close(gone) }, struct{}{})
			_ = s.Execute(func() { runtime.KeepAlive(big) })
		}()
		suspend.Yield()
		for {
			runtime.GC()
			select {
			case <-gone:
				return
			default:
				suspend.Yield()
			}
		}
	})
}

// A task may be bound on another goroutine, too, by mistake or by a Blocking. That goroutine does not count as the scheduler's.
func TestTaskBoundOnAnotherGoroutine(t *testing.T) {
	ran := 0
	run(t, fifo.Options{}, func(s *fifo.Scheduler) {
		for range 2 {
			_ = s.Go(func() {
				me := suspend.Self()
				_ = suspend.Blocking(bg, func() {
					suspend.Bind(me, func() {
						for range 1000 {
							_ = s.Go(func() { ran++ })
						}
					})
				})
			})
		}
		for range 1000 {
			_ = s.Go(func() { ran++ })
			suspend.Yield()
		}
	})
	if ran != 3000 {
		t.Errorf("%d of 3000 have run", ran)
	}
}

type stopPanics struct {
	context.Context
	done chan struct{}
}

func (c *stopPanics) Done() <-chan struct{}        { return c.done }
func (c *stopPanics) AfterFunc(func()) func() bool { return func() bool { panic("stop") } }

// If a context panics when the end of a task withdraws its registration, the task has not failed.
func TestPanicOfAContextAtTheEnd(t *testing.T) {
	panics := 0
	run(t, fifo.Options{OnPanic: func(any, []byte) { panics++ }}, func(s *fifo.Scheduler) {
		_ = s.Go(func() { _ = suspend.Sleep(&stopPanics{bg, make(chan struct{})}, 1) })
	})
	if panics != 0 {
		t.Errorf("OnPanic was called %d times", panics)
	}
}

func TestBurstsDoNotAllocate(t *testing.T) {
	for _, n := range []int{100, 1000, 4000} {
		run(t, fifo.Options{}, func(s *fifo.Scheduler) {
			f := func() {}
			burst := func() {
				for range n {
					_ = s.Go(f)
				}
				suspend.Yield()
			}
			for range 20 {
				burst()
			}
			// The scheduler keeps some Items. The others are in a sync.Pool, which a garbage collection empties.
			if got := testing.AllocsPerRun(20, burst); !schedtest.Race && got > float64(n)/10 {
				t.Errorf("%d tasks: %v allocations", n, got)
			}
		})
	}
}

// A scheduler keeps one idle coroutine for each task, and a thousand more. After a peak their number decreases, however the tasks
// end. (A Run with a thread of its own does not share coroutines.)
func TestCoroutinesThatAreKept(t *testing.T) {
	const n, few = 6000, 1024
	run(t, fifo.Options{LockOSThread: true, StallAfter: -1}, func(*fifo.Scheduler) { // without reports of stalls, which need a goroutine
		before := schedtest.Goroutines()
		var m mvar.MVar[int]
		live, exits := 0, false
		start := func(n int) (made int) {
			before := schedtest.Goroutines()
			for range n {
				live++
				_ = suspend.Here().Go(func() {
					_, _ = m.Take(bg)
					if live--; exits {
						runtime.Goexit()
					}
				})
			}
			suspend.Yield()
			return schedtest.Goroutines() - before
		}
		end := func(n int) {
			for range n {
				_ = m.Put(bg, 1)
			}
			suspend.Yield()
		}
		kept := func() int { return schedtest.Goroutines() - before - live }
		shrink := func() {
			t.Helper()
			for live > 0 {
				end(min(n/10, live))
				if got := kept(); got > max(few, live)+1 {
					t.Fatalf("%d live, %d kept", live, got)
				}
			}
		}
		start(few)
		end(few)
		if made := start(few); made > 0 {
			t.Errorf("%d coroutines were made, though there were enough", made)
		}
		start(n - few)
		if got := kept(); got > 0 {
			t.Errorf("%d coroutines too many", got)
		}
		end(n / 3)
		if made := start(n / 3); made > 0 {
			t.Errorf("%d coroutines were made, though there were enough", made)
		}
		shrink()
		start(n)
		end(n / 2)
		exits = true
		shrink()
	})
}
