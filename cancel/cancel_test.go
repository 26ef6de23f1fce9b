package cancel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"pgregory.net/rapid"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

func TestMain(m *testing.M) { schedtest.Main(m) }

type key struct{}

type afterFuncer interface {
	AfterFunc(func()) func() bool
}

func after(ctx context.Context, f func()) (stop func() bool) { return ctx.(afterFuncer).AfterFunc(f) }

func TestCause(t *testing.T) {
	for name, test := range map[string]struct{ given, want error }{"a cause": {errOops, errOops}, "nil": {nil, context.Canceled}} {
		t.Run(name, func(t *testing.T) {
			ctx, end := cancel.New(bg)
			if ctx.Err() != nil || context.Cause(ctx) != nil {
				t.Error("done from the beginning")
			}
			child, endChild := context.WithCancel(ctx)
			defer endChild()
			end(test.given)
			end(errors.New("second"))
			<-ctx.Done()
			for _, c := range []context.Context{ctx, child, context.WithValue(ctx, key{}, 2)} {
				if c.Err() != context.Canceled || context.Cause(c) != test.want {
					t.Errorf("Err %v, cause %v", c.Err(), context.Cause(c))
				}
			}
			if err := suspend.Err(ctx); !errors.Is(err, test.want) || !errors.Is(err, context.Canceled) {
				t.Errorf("suspend.Err = %v", err)
			}
		})
	}
}

func TestDeadlineAndValuesAreTheParents(t *testing.T) {
	when := time.Now().Add(time.Hour)
	parent, stop := context.WithDeadline(context.WithValue(bg, key{}, "one"), when)
	defer stop()
	ctx, end := cancel.New(parent)
	defer end(nil)
	if d, ok := ctx.Deadline(); !ok || !d.Equal(when) {
		t.Errorf("Deadline = %v, %v", d, ok)
	}
	if ctx.Value(key{}) != "one" {
		t.Errorf("Value = %v", ctx.Value(key{}))
	}
	if s := fmt.Sprint(ctx); s != "cancel.New" {
		t.Error(s)
	}
}

// A hidden context does not pass its end on, like a context for work that continues after a request.
type hidden struct{ context.Context }

func (hidden) Done() <-chan struct{} { return nil }
func (hidden) Err() error            { return nil }

// A context whose parent never ends has the parent's values, but not the context that package context would find inside the
// parent.
func TestParentsWithoutAnEnd(t *testing.T) {
	behind, endBehind := context.WithCancelCause(context.WithValue(bg, key{}, "one"))
	endBehind(errors.New("of another"))
	for name, parent := range map[string]context.Context{
		"background":    bg,
		"a value":       context.WithValue(bg, key{}, "one"),
		"WithoutCancel": context.WithoutCancel(behind),
		"hidden":        hidden{behind},
	} {
		for _, cause := range []error{nil, errOops} {
			for _, asked := range []bool{false, true} {
				ctx, end := cancel.New(parent)
				if asked && (ctx.Value(key{}) != parent.Value(key{}) || ctx.Done() == nil || context.Cause(ctx) != nil) {
					t.Errorf("%s: done, or its values are not the parent's", name)
				}
				child, endChild := context.WithCancel(context.WithoutCancel(ctx))
				if ctx.Err() != nil || child.Err() != nil {
					t.Errorf("%s: done from the beginning", name)
				}
				endChild()
				end(cause)
				child, endChild = context.WithCancel(ctx)
				want := cause
				if cause == nil {
					want = context.Canceled
				}
				for _, c := range []context.Context{ctx, child} {
					<-c.Done()
					if c.Err() != context.Canceled || context.Cause(c) != want || c.Value(key{}) != parent.Value(key{}) {
						t.Errorf("%s: Err %v, cause %v, value %v", name, c.Err(), context.Cause(c), c.Value(key{}))
					}
				}
				endChild()
			}
		}
	}
	defer func() {
		if v := recover(); v != "cancel: nil parent" {
			t.Error(v)
		}
	}()
	var none context.Context
	cancel.New(none)
}

func TestCallsAreMadeOnceInOrderBeforeCancelReturns(t *testing.T) {
	ctx, end := cancel.New(bg)
	var got []int
	var stops []func() bool
	for i := range 10 {
		stops = append(stops, after(ctx, func() {
			if ctx.Err() == nil || context.Cause(ctx) != errOops {
				t.Error("called before the context was done")
			}
			got = append(got, i)
		}))
	}
	for _, i := range []int{0, 4, 5, 9} {
		if !stops[i]() || stops[i]() {
			t.Errorf("stop %d", i)
		}
	}
	end(errOops)
	end(errOops)
	if want := []int{1, 2, 3, 6, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
	for i, stop := range stops {
		if stop() {
			t.Errorf("stop %d returns true, although the function was called or stopped before", i)
		}
	}
}

func TestAfterFuncOfADoneContextCallsAtOnce(t *testing.T) {
	ctx, end := cancel.New(bg)
	end(nil)
	called := 0
	if stop := after(ctx, func() { called++ }); called != 1 || stop() {
		t.Errorf("called %d times", called)
	}
	child, endChild := cancel.New(ctx)
	defer endChild(nil)
	if after(child, func() { called++ }); called != 2 {
		t.Error("not called by a context whose parent was done")
	}
}

func TestACallMayDoAnythingToTheContext(t *testing.T) {
	ctx, end := cancel.New(bg)
	order := ""
	var stopC func() bool
	after(ctx, func() {
		order += "a"
		end(errOops)
		after(ctx, func() { order += "n" })
		if !stopC() {
			t.Error("a later function could not be stopped")
		}
		order += "A"
	})
	after(ctx, func() { order += "b" })
	stopC = after(ctx, func() { order += "c" })
	after(ctx, func() { order += "d" })
	end(nil)
	if order != "anAbd" {
		t.Errorf("order %q", order)
	}
}

func TestAPanicDoesNotLoseTheOthers(t *testing.T) {
	parent, end := cancel.New(bg)
	ctx, endChild := cancel.New(parent)
	defer endChild(nil)
	order := ""
	after(ctx, func() { order += "a" })
	after(ctx, func() { panic(errOops) })
	after(ctx, func() { order += "b"; runtime.Goexit() })
	after(ctx, func() { order += "c" })
	after(parent, func() { order += "d" })
	ended := make(chan any)
	go func() {
		returned := false
		defer func() { v := recover(); ended <- []any{v, returned} }()
		end(nil)
		returned = true
	}()
	if got := fmt.Sprint(<-ended); got != "[<nil> false]" && got != "[oops false]" { // the Goexit came after the function had returned
		t.Error(got)
	}
	if order != "abcd" {
		t.Errorf("order %q", order)
	}
	after(ctx, func() { order += "e" })
	if order != "abcde" {
		t.Error("unusable afterwards")
	}

	ctx, end = cancel.New(bg)
	after(ctx, func() { panic(errOops) })
	defer func() {
		if v := recover(); v != errOops {
			t.Errorf("panic %v", v)
		}
	}()
	end(nil)
}

// A foreign context is unknown to package context, and calls the last registered function first.
type foreign struct {
	context.Context
	done  chan struct{}
	calls []func()
	live  int
}

func (f *foreign) Done() <-chan struct{} { return f.done }
func (f *foreign) Err() error {
	select {
	case <-f.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func (f *foreign) end() {
	close(f.done)
	for _, c := range slices.Backward(f.calls) {
		c()
	}
}

type foreignAfter struct{ *foreign }

func (f foreignAfter) AfterFunc(g func()) func() bool {
	f.calls = append(f.calls, g)
	f.live++
	return func() bool { f.live--; return true }
}

func TestParentsPassTheirEndOn(t *testing.T) {
	type parent struct {
		make func() (ctx context.Context, end func())
		sync bool
		err  error
	}
	newForeign := func() *foreign { return &foreign{Context: bg, done: make(chan struct{})} }
	for name, p := range map[string]parent{
		"ours": {func() (context.Context, func()) {
			ctx, end := cancel.New(bg)
			return ctx, func() { end(errOops) }
		}, true, context.Canceled},
		"ours with a value": {func() (context.Context, func()) {
			ctx, end := cancel.New(bg)
			return context.WithValue(ctx, key{}, 2), func() { end(errOops) }
		}, true, context.Canceled},
		"std": {func() (context.Context, func()) {
			ctx, end := context.WithCancelCause(bg)
			return ctx, func() { end(errOops) }
		}, false, context.Canceled},
		"std of ours": {func() (context.Context, func()) {
			ctx, end := cancel.New(bg)
			ctx, stop := context.WithCancel(ctx)
			return ctx, func() { end(errOops); stop() }
		}, false, context.Canceled},
		"std of ours, on its own": {func() (context.Context, func()) {
			ctx, end := cancel.New(bg)
			t.Cleanup(func() { end(nil) })
			ctx, endStd := context.WithCancelCause(ctx)
			return ctx, func() { endStd(errOops) }
		}, false, context.Canceled},
		"foreign with AfterFunc": {func() (context.Context, func()) {
			f := newForeign()
			return foreignAfter{f}, f.end
		}, true, context.DeadlineExceeded},
		"foreign": {func() (context.Context, func()) {
			f := newForeign()
			return f, f.end
		}, false, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, endParent := p.make()
			c, end := cancel.New(ctx)
			defer end(nil)
			called := make(chan error, 1)
			after(c, func() { called <- c.Err() })
			endParent()
			if p.sync && len(called) == 0 {
				t.Fatal("not called when the parent's cancel has returned")
			}
			if err := <-called; err != p.err {
				t.Errorf("Err %v in the call", err)
			}
			if p.err == context.Canceled && context.Cause(c) != errOops {
				t.Errorf("cause %v", context.Cause(c))
			}
		})
		t.Run(name+", waiters", func(t *testing.T) {
			ctx, endParent := p.make()
			c, end := cancel.New(ctx)
			defer end(nil)
			var m mvar.MVar[int]
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				take := func() {
					_, err := m.Take(c)
					if !errors.Is(err, p.err) || p.err == context.Canceled && !errors.Is(err, errOops) {
						t.Errorf("Take = %v", err)
					}
				}
				for range 3 {
					_ = s.Go(take)
				}
				suspend.Yield()
				endParent()
				take()
			})
		})
	}
	t.Run("done already", func(t *testing.T) {
		for range 2 {
			parent, endParent := context.WithCancel(bg)
			endParent()
			c, end := cancel.New(parent)
			called := false
			after(c, func() { called = true })
			if !called {
				t.Error("not called")
			}
			end(nil)
		}
	})
}

func TestCancelLeavesNothingInTheParent(t *testing.T) {
	f := foreignAfter{&foreign{Context: bg, done: make(chan struct{})}}
	_, end := cancel.New(f)
	if f.live != 1 {
		t.Fatalf("%d registrations", f.live)
	}
	end(nil)
	if f.live != 0 {
		t.Errorf("%d registrations after cancel", f.live)
	}

	ours, endOurs := cancel.New(bg)
	std, endStd := context.WithCancel(bg)
	defer endOurs(nil)
	defer endStd()
	for name, parent := range map[string]context.Context{"ours": ours, "std": std} {
		collected := make(chan struct{})
		func() {
			c, end := cancel.New(parent)
			captured := new([1 << 10]byte)
			runtime.AddCleanup(captured, func(struct{}) { close(collected) }, struct{}{})
			after(c, func() { runtime.KeepAlive(captured) })
			stop := after(c, func() { runtime.KeepAlive(captured) })
			stop()
			end((*bulky)(captured)) // the context keeps its cause alive
			runtime.KeepAlive(stop)
		}()
		collect(t, name, collected)
	}
}

type bulky [1 << 10]byte

func (*bulky) Error() string { return "bulky" }

func TestAStoppedCallIsNotRetained(t *testing.T) {
	ctx, end := cancel.New(bg)
	defer end(nil)
	collected := make(chan struct{})
	var stop func() bool
	func() {
		captured := new([1 << 10]byte)
		runtime.AddCleanup(captured, func(struct{}) { close(collected) }, struct{}{})
		stop = after(ctx, func() { runtime.KeepAlive(captured) })
		stop()
	}()
	collect(t, "stopped", collected)
	runtime.KeepAlive(stop)
}

// A function that is called immediately, because the context has ended, gets a stop function that keeps nothing of this context alive.
func TestARefusedCallRetainsNothing(t *testing.T) {
	collected := make(chan struct{})
	var stop func() bool
	func() {
		value := new([1 << 10]byte)
		runtime.AddCleanup(value, func(struct{}) { close(collected) }, struct{}{})
		ctx, end := cancel.New(context.WithValue(bg, key{}, value))
		end(nil)
		stop = after(ctx, func() {})
	}()
	collect(t, "the value of the parent", collected)
	runtime.KeepAlive(stop)
}

func collect(t *testing.T, name string, collected chan struct{}) {
	t.Helper()
	for range 100 {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Errorf("%s: still alive", name)
}

// Waiting tasks cost no goroutine, and neither do woken ones.
func TestNoGoroutines(t *testing.T) {
	const n = 1000
	before := schedtest.Goroutines()
	ctx, end := cancel.New(bg)
	s := fifo.New(fifo.Options{})
	peak, ended := 0, 0
	err := s.Run(bg, func(context.Context) error {
		for range n {
			_ = s.Go(func() {
				_, _ = promise.New[int]().Await(ctx)
				peak = max(peak, runtime.NumGoroutine())
				ended++
			})
		}
		suspend.Yield()
		tasks := schedtest.Goroutines()
		end(nil)
		if now := schedtest.Goroutines(); now > tasks || tasks > before+n+3 {
			t.Errorf("%d goroutines, of which %d tasks, then %d", tasks, n, now)
		}
		suspend.Yield()
		if ended != n || peak > tasks+n/4 { // for a moment, the runtime counts dead goroutines, too
			t.Errorf("%d of %d ended, %d goroutines", ended, n, peak)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	ctx, end = cancel.New(bg)
	before = schedtest.Goroutines()
	for range n {
		_, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		_, stopOurs := cancel.New(ctx)
		defer stopOurs(nil)
		_ = context.AfterFunc(ctx, func() {})
	}
	if now := schedtest.Goroutines(); now > before {
		t.Errorf("%d goroutines for derived contexts", now-before)
	}
	end(nil)
}

func TestWaitersAreCancelledOnEveryScheduler(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		ctx, end := cancel.New(bg)
		var m mvar.MVar[int]
		var waiting, failed sync.WaitGroup
		for range 100 {
			waiting.Add(1)
			failed.Add(1)
			_ = s.Go(func() {
				waiting.Done()
				_, err := m.Take(ctx)
				if !errors.Is(err, errOops) || !errors.Is(err, context.Canceled) {
					t.Errorf("Take = %v", err)
				}
				failed.Done()
			})
		}
		waiting.Wait()
		_ = s.Go(func() { end(errOops) })
		failed.Wait()
		if !m.TryPut(1) {
			t.Error("a waiter is left")
		}
	})
}

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := cancel.New(t.Context())
		defer end(nil)
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		if _, err := promise.New[int]().Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A registered function is called or stopped, never both, in any order of the calls.
func TestConservation(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	rounds := 300
	if testing.Short() || schedtest.Race {
		rounds = 60
	}
	var atOnce, called, stopped atomic.Int64
	covered := func() bool { return called.Load() > 0 && atOnce.Load() > 0 && stopped.Load() > 0 }
	for round := 0; schedtest.More(round, rounds, covered); round++ {
		parent, endParent := cancel.New(bg)
		ctx, end := cancel.New(parent)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				for range 50 {
					var calls atomic.Int32
					stop := after(ctx, func() {
						if calls.Add(1) != 1 || ctx.Err() == nil {
							t.Error("called twice, or too early")
						}
					})
					registered := calls.Load() == 0
					if rng.IntN(8) == 0 {
						runtime.Gosched() // lets the ends run in between, even on one thread
					}
					switch {
					case rng.IntN(2) == 0 && stop():
						stopped.Add(1)
						if calls.Load() != 0 {
							t.Error("called and stopped")
						}
					case registered:
						all.Go(func() {
							<-ctx.Done()
							for calls.Load() == 0 {
								runtime.Gosched()
							}
							called.Add(1)
						})
					default:
						atOnce.Add(1)
					}
				}
			})
		}
		all.Go(func() { runtime.Gosched(); endParent(nil) })
		all.Go(func() { runtime.Gosched(); end(errOops) })
		all.Wait()
	}
	t.Logf("%d called, %d at once, %d stopped", called.Load(), atOnce.Load(), stopped.Load())
	if !covered() {
		t.Error("an outcome was not covered")
	}
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, end := cancel.New(bg)
		var stops []func() bool
		var got, want, listed []int
		done := false
		rt.Repeat(map[string]func(*rapid.T){
			"register": func(*rapid.T) {
				i := len(stops)
				if done {
					want = append(want, i)
				} else {
					listed = append(listed, i)
				}
				stops = append(stops, after(ctx, func() { got = append(got, i) }))
			},
			"stop": func(rt *rapid.T) {
				if len(stops) == 0 {
					return
				}
				i := rapid.IntRange(0, len(stops)-1).Draw(rt, "i")
				at := slices.Index(listed, i)
				if stops[i]() != (at >= 0) {
					rt.Fatalf("stop %d with %v listed", i, listed)
				}
				if at >= 0 {
					listed = slices.Delete(listed, at, at+1)
				}
			},
			"cancel": func(rt *rapid.T) {
				if rapid.IntRange(0, 5).Draw(rt, "rarely") > 0 {
					return
				}
				end(nil)
				want, listed, done = append(want, listed...), nil, true
			},
			"": func(rt *rapid.T) {
				if !slices.Equal(got, want) {
					rt.Fatalf("called %v, want %v", got, want)
				}
			},
		})
	})
}

func TestAllocs(t *testing.T) {
	ctx, end := cancel.New(bg)
	defer end(nil)
	f := func() {}
	for name, limit := range map[string]struct {
		f   func()
		max float64
	}{
		"register and stop": {func() { after(ctx, f)() }, 2},
		"New and cancel":    {func() { _, end := cancel.New(ctx); end(nil) }, 8},
		"without a parent":  {func() { c, end := cancel.New(bg); _ = c.Err(); end(nil) }, 2},
		"Err":               {func() { _ = suspend.Err(ctx) }, 0},
	} {
		if got := testing.AllocsPerRun(100, limit.f); got > limit.max {
			t.Errorf("%s: %v allocations, limit %v", name, got, limit.max)
		}
	}
}

func TestAMillionWaiters(t *testing.T) {
	n := 1_000_000
	if testing.Short() || schedtest.Race {
		n = 100_000
	}
	ctx, end := cancel.New(bg)
	called := 0
	stops := make([]func() bool, 0, n)
	f := func() { called++ }
	begin := time.Now()
	for range n {
		stops = append(stops, after(ctx, f))
	}
	registered := time.Now()
	for i := 0; i < n; i += 2 {
		stops[i]()
	}
	stopped := time.Now()
	end(nil)
	if called != n/2 {
		t.Errorf("%d called of %d", called, n/2)
	}
	t.Logf("%d: registered in %v, half of them stopped in %v, the others called in %v", n, registered.Sub(begin), stopped.Sub(registered), time.Since(stopped))
}

func BenchmarkWaiter(b *testing.B) {
	for name, make := range map[string]func() (context.Context, func(error)){
		"ours": func() (context.Context, func(error)) { return cancel.New(bg) },
		"std": func() (context.Context, func(error)) {
			ctx, end := context.WithCancelCause(bg)
			return ctx, end
		},
	} {
		b.Run(name, func(b *testing.B) {
			ctx, end := make()
			var called sync.WaitGroup
			called.Add(b.N)
			for range b.N {
				if a, ok := ctx.(afterFuncer); ok {
					a.AfterFunc(called.Done)
				} else {
					context.AfterFunc(ctx, called.Done)
				}
			}
			end(nil)
			called.Wait()
		})
	}
}

// A parent of package context ends its children in random order. A registered function finds the context ended. A waiting task
// gets the cause, and a later wait fails, too.
func TestCalledAfterDoneUnderAStandardParent(t *testing.T) {
	for range 100 {
		parent, end := context.WithCancelCause(context.Background())
		for range 100 { // the parent keeps its many children in a map
			_, stop := context.WithCancel(parent)
			defer stop()
		}
		ctx, stop := cancel.New(parent)
		called := make(chan error, 1)
		ctx.(interface {
			AfterFunc(func()) func() bool
		}).AfterFunc(func() { called <- context.Cause(ctx) })
		oops := errors.New("oops")
		end(oops)
		if err := <-called; err != oops {
			t.Fatalf("called when the cause was %v", err)
		}
		stop(nil)
	}
}

// The same holds two levels below: a goroutine notifies the list of the parent, while package context is still going through its children.
func TestCalledAfterDoneUnderOursUnderAStandardParent(t *testing.T) {
	for range 20_000 {
		root, end := context.WithCancelCause(bg)
		parent, stopParent := cancel.New(root)
		var called sync.WaitGroup
		var stops []func(error)
		for range 4 {
			ctx, stop := cancel.New(parent)
			stops = append(stops, stop)
			called.Add(1)
			after(ctx, func() {
				if err := suspend.Err(ctx); !errors.Is(err, errOops) {
					t.Errorf("called when the error was %v", err)
				}
				called.Done()
			})
		}
		end(errOops)
		called.Wait()
		for _, stop := range stops {
			stop(nil)
		}
		stopParent(nil)
	}
}

// When cancel returns, the registered functions have been called, even if a parent ended the context first, and the goroutine
// that should call them has not run yet.
func TestCallsOfAParentThatEndedItJustBefore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	early := 0
	for range 100 {
		parent, endParent := context.WithCancelCause(bg)
		ctx, end := cancel.New(parent)
		var called atomic.Bool
		after(ctx, func() { called.Store(true) })
		endParent(errOops)
		early += map[bool]int{true: 1}[!called.Load()]
		end(nil)
		if !called.Load() {
			t.Fatal("not called when cancel has returned")
		}
	}
	if early == 0 {
		t.Error("the goroutine has always been first")
	}
}

// Several calls end a context, each with a cause. The first cause counts.
func TestTheFirstCauseStays(t *testing.T) {
	parent, endParent := context.WithCancelCause(bg)
	ctx, end := cancel.New(parent)
	endParent(errOops)
	end(errors.New("second")) // usually before the list of ctx is notified
	if err := suspend.Err(ctx); !errors.Is(err, errOops) {
		t.Errorf("%v is the reason", err)
	}
	for range 1000 {
		ctx, end := cancel.New(bg)
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() { end(fmt.Errorf("cause %d", i)) })
		}
		both.Wait()
		if err := suspend.Err(ctx); !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("%v is the reason, and %v the cause", err, context.Cause(ctx))
		}
	}
}

// All woken tasks share one error, even if it had to be allocated.
func TestTasksShareTheReason(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ctx, end := cancel.New(bg)
		var m mvar.MVar[int]
		var errs []error
		for range 3 {
			_ = s.Go(func() {
				_, err := m.Take(ctx)
				errs = append(errs, err)
			})
		}
		suspend.Yield()
		end(errOops)
		for len(errs) < 3 {
			suspend.Yield()
		}
		if !errors.Is(errs[0], errOops) || !errors.Is(errs[0], context.Canceled) || errs[0] != errs[1] || errs[0] != errs[2] {
			t.Errorf("%v", errs)
		}
	})
}

func TestNilFunctionPanics(t *testing.T) {
	ctx, stop := cancel.New(context.Background())
	defer stop(nil)
	defer func() {
		if v := recover(); v != "cancel: nil function" {
			t.Errorf("panic %v", v)
		}
	}()
	ctx.(interface {
		AfterFunc(func()) func() bool
	}).AfterFunc(nil)
}
