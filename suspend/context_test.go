package suspend_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A borrowed context serves one request after another, as the contexts of some HTTP frameworks do.
type borrowed struct{ context.Context }

// A task recognises its registration with a foreign context by the Done channel, because the same context may get another one.
func TestContextThatIsUsedAgain(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mvar.MVar[int]
		c := new(borrowed)
		for range 3 {
			inner, cancel := context.WithCancel(bg)
			c.Context = inner
			_ = s.Go(func() { cancel() })
			if _, err := m.Take(c); !errors.Is(err, context.Canceled) {
				t.Fatalf("Take = %v", err)
			}
		}
	})
}

// A halting context accepts a registration, and then panics.
type halting struct {
	context.Context
	call func()
}

func (h *halting) AfterFunc(f func()) (stop func() bool) {
	h.call = f
	panic("halting")
}

// A context calls the registered function although its AfterFunc panicked. The call must not end the task's next wait, which has
// another context.
func TestACallOfAContextThatHasPanicked(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mvar.MVar[int]
		inner, end := context.WithCancel(bg)
		defer end()
		next, endNext := cancel.New(bg)
		defer endNext(nil)
		h := &halting{Context: inner}
		took := 0
		_ = s.Go(func() {
			schedtest.Panics(t, "halting", func() { _, _ = m.Take(h) })
			v, err := m.Take(next)
			if took = v; err != nil {
				t.Errorf("Take = %v", err)
			}
		})
		suspend.Yield()
		h.call()
		_ = m.Put(bg, 1)
		suspend.Yield()
		if took != 1 {
			t.Error("the task has not taken the value")
		}
	})
}

// A wait is cancelled by its own context and by no other, whichever kinds of contexts the task has used before.
func TestOnlyTheContextOfTheWaitCancels(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	type key struct{}
	standard := func() (context.Context, func()) { ctx, end := context.WithCancel(bg); return ctx, end }
	ours := func() (context.Context, func()) {
		ctx, end := cancel.New(bg)
		return ctx, func() { end(nil) }
	}
	wrapped := func(make func() (context.Context, func()), wrap func(context.Context) context.Context) func() (context.Context, func()) {
		return func() (context.Context, func()) { ctx, end := make(); return wrap(ctx), end }
	}
	value := func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, 0) }
	foreign := func(ctx context.Context) context.Context { return &borrowed{ctx} }
	kinds := map[string]func() (context.Context, func()){
		"background":       func() (context.Context, func()) { return bg, nil },
		"foreign":          func() (context.Context, func()) { return foreign(bg), nil },
		"standard":         standard,
		"standard value":   wrapped(standard, value),
		"standard foreign": wrapped(standard, foreign),
		"standard lazy":    wrapped(standard, suspend.Lazily),
		"ours":             ours,
		"ours value":       wrapped(ours, value),
		"ours foreign":     wrapped(ours, foreign),
		"ours lazy":        wrapped(ours, suspend.Lazily),
	}
	for first, one := range kinds {
		for second, other := range kinds {
			t.Run(first+", "+second, func(t *testing.T) {
				schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
					var m mvar.MVar[int]
					before, endBefore := one()
					_ = s.Go(func() { _ = m.Put(bg, 1) })
					if v, err := m.Take(before); v != 1 || err != nil {
						t.Fatalf("Take = %v, %v", v, err)
					}
					ctx, end := other()
					_ = s.Go(func() {
						if endBefore != nil {
							endBefore()
						}
						suspend.Yield()
						_ = m.Put(bg, 2)
					})
					if v, err := m.Take(ctx); v != 2 || err != nil {
						t.Errorf("Take = %v, %v, with a context that has not ended", v, err)
					}
					if end == nil {
						return
					}
					_ = s.Go(func() {
						end()
						if strings.HasSuffix(second, "lazy") { // a lazy wait learns of its cancellation from a Put
							suspend.Yield()
							m.TryPut(3)
						}
					})
					if v, err := m.Take(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("Take = %v, %v, with a context that has ended", v, err)
					}
				})
			})
		}
	}
}

type bulk [1000]byte

// A task keeps at most one old context alive, of any kind.
func TestOneOldContextIsRetained(t *testing.T) {
	type key struct{}
	kinds := map[string]func(parent context.Context) context.Context{
		"cancellable": func(parent context.Context) context.Context {
			ctx, cancel := context.WithCancel(parent)
			runtime.AddCleanup(new(bulk), func(c context.CancelFunc) { c() }, cancel)
			return ctx
		},
		"ours": func(parent context.Context) context.Context {
			ctx, end := cancel.New(parent)
			runtime.AddCleanup(new(bulk), func(end context.CancelCauseFunc) { end(nil) }, end)
			return ctx
		},
		"ours lazy": func(parent context.Context) context.Context {
			ctx, end := cancel.New(parent)
			runtime.AddCleanup(new(bulk), func(end context.CancelCauseFunc) { end(nil) }, end)
			return lazily.Allow(suspend.Lazily(ctx))
		},
		"value": func(parent context.Context) context.Context { return parent },
		"lazy": func(parent context.Context) context.Context {
			ctx, cancel := context.WithCancel(parent)
			runtime.AddCleanup(new(bulk), func(c context.CancelFunc) { c() }, cancel)
			return lazily.Allow(suspend.Lazily(ctx))
		},
	}
	for first, one := range kinds {
		for second, other := range kinds {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				wait := func(of func(context.Context) context.Context) weak.Pointer[bulk] {
					x := new(bulk)
					_, _ = suspend.Suspend(of(context.WithValue(bg, key{}, x)), func(r suspend.Resumer[int]) (int, bool) {
						_ = s.Go(func() { r.Resume(1, nil) })
						return 0, false
					})
					return weak.Make(x)
				}
				a, b := wait(one), wait(other)
				for range 5 {
					runtime.GC()
				}
				if a.Value() != nil && b.Value() != nil {
					t.Errorf("%s, then %s: both are retained", first, second)
				}
			})
		}
	}
}

// TestLazilyKeepsTheAfterFunc passes a context of Lazily to a wait that cannot be lazy. The wait uses the context inside, and
// calls its AfterFunc once.
func TestLazilyKeepsTheAfterFunc(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		inner, end := context.WithCancel(bg)
		defer end()
		ctx := &tallying{Context: inner}
		var m mvar.MVar[int]
		_ = s.Go(func() { m.TryPut(1) })
		if _, err := suspend.Select(suspend.Lazily(ctx), suspend.CaseOf(m.TakeOp())); err != nil {
			t.Error(err)
		}
		if ctx.calls != 1 {
			t.Errorf("%d calls of AfterFunc", ctx.calls)
		}
	})
}

// A tallying context counts the calls of its AfterFunc.
type tallying struct {
	context.Context
	calls int
}

func (c *tallying) AfterFunc(f func()) (stop func() bool) {
	c.calls++
	return context.AfterFunc(c.Context, f)
}

func TestForbiddenWithADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	wait := func() {
		_, _ = suspend.Suspend(ctx, func(suspend.Resumer[int]) (int, bool) { return 0, true })
	}
	schedtest.OnFIFO(t, func(*fifo.Scheduler) {
		suspend.Bind(nil, func() {
			schedtest.Panics(t, "suspend: suspending is forbidden here (in a callback, or under Bind(nil))", wait)
		})
		_, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) {
			schedtest.Panics(t, "suspend: Suspend inside block", wait)
			return 0, true
		})
	})
}

// A lying context has a closed Done channel, and no error.
type lying struct {
	context.Context
	done chan struct{}
	end  bool // end when AfterFunc is called
}

func (c *lying) Done() <-chan struct{} { return c.done }

func (c *lying) AfterFunc(f func()) func() bool {
	if c.end {
		close(c.done)
		f()
	}
	return func() bool { return true }
}

// Err calls only ctx.Err, and does not look at ctx.Done.
func TestErrIsThatOfTheContext(t *testing.T) {
	c := &lying{Context: bg, done: make(chan struct{})}
	close(c.done)
	if err := suspend.Err(c); err != nil {
		t.Errorf("Err = %v before the context has one", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := suspend.Err(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Err = %v", err)
	}
}

// A closed Done channel ends a wait, even if the Err of the context still returns nil.
func TestContextWithoutAnError(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	schedtest.OnFIFO(t, func(*fifo.Scheduler) {
		m := mvar.New[int]()
		c := &lying{Context: bg, done: make(chan struct{})}
		close(c.done)
		if _, err := m.Take(c); !errors.Is(err, context.Canceled) {
			t.Errorf("Take = %v", err)
		}
		c = &lying{Context: bg, done: make(chan struct{}), end: true}
		for range 2 {
			if _, err := m.Take(c); !errors.Is(err, context.Canceled) {
				t.Errorf("Take = %v", err)
			}
		}
	})
	c := &lying{Context: bg, done: make(chan struct{})} // the same without a task
	close(c.done)
	_, err := suspend.Suspend(c, func(suspend.Resumer[int]) (int, bool) { t.Error("block runs"); return 0, true })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Suspend = %v", err)
	}
}

// A task reuses its registration once its context cannot call it any more. A late cancellation comes while the task already waits
// with the next context, and must not cancel that wait.
func TestALateCancellationIsNotTheNextOnes(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2000
	}
	err := fifo.Run(bg, func(context.Context) error {
		safe, stopSafe := cancel.New(bg)
		defer stopSafe(nil)
		cancelled := 0
		for range rounds {
			var first, second promise.Promise[int]
			ctx, stop := cancel.New(bg)
			go func() {
				stop(nil)
				_ = second.Fill(2)
			}()
			go func() { _ = first.Fill(1) }()
			if _, err := first.Await(ctx); err != nil {
				cancelled++
			}
			if v, err := second.Await(safe); v != 2 || err != nil {
				return fmt.Errorf("%d, %w", v, err)
			}
			next, stopNext := cancel.New(bg) // uses the registration with safe again
			var third promise.Promise[int]
			go func() { _ = third.Fill(3) }()
			if v, err := third.Await(next); v != 3 || err != nil {
				return fmt.Errorf("%d, %w", v, err)
			}
			stopNext(nil)
		}
		if cancelled == 0 || cancelled == rounds {
			t.Logf("%d of %d cancelled", cancelled, rounds)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A wait with a new context of package cancel allocates only the context, and does not create its Done channel.
func TestANewContextCostsNothingMore(t *testing.T) {
	err := fifo.Run(bg, func(context.Context) error {
		var m mvar.MVar[int]
		ended := false
		_ = suspend.Here().Go(func() {
			for !ended {
				_ = m.Put(bg, 1)
			}
		})
		before := func(error) {}
		making := testing.AllocsPerRun(100, func() {
			_, stop := cancel.New(bg)
			before(nil)
			before = stop
		})
		waiting := testing.AllocsPerRun(100, func() {
			ctx, stop := cancel.New(bg)
			for range 3 { // the second Take waits
				_, _ = m.Take(ctx)
			}
			before(nil)
			before = stop
		})
		if waiting > making {
			t.Errorf("%v allocations for the wait, and %v for the context", waiting, making)
		}
		ended = true
		_, _ = m.TryTake() // for a waiting Take
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
