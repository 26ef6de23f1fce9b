package suspend_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A mailbox is an Op written outside the module: a queue of ints with a receive that may ask for particular ints.
type mailbox struct {
	guard   suspend.Guard
	letters []int
	readers suspend.Queue[int, func(int) bool]
}

func (m *mailbox) send(v int) {
	m.guard.Lock()
	defer m.guard.Unlock()
	if want := m.readers.Head(); want != nil && (*want)(v) { // enough for a single reader
		if _, ok := m.readers.Resume(v, nil); ok {
			return
		}
	}
	m.letters = append(m.letters, v)
}

func (m *mailbox) recv(want func(int) bool) suspend.Op[int] {
	return suspend.OpOf[int](&receive{m, want})
}

type receive struct {
	*mailbox
	want func(int) bool
}

func (r *receive) Guard() *suspend.Guard { return &r.guard }

func (r *receive) Try() (v int, ok bool, err error) {
	for i, v := range r.letters {
		if r.want(v) {
			r.letters = append(r.letters[:i], r.letters[i+1:]...)
			return v, true, nil
		}
	}
	return 0, false, nil
}

func (r *receive) Enqueue(w suspend.Resumer[int]) { r.readers.Push(w, r.want) }
func (r *receive) Remove(w suspend.Resumer[int])  { r.readers.Remove(w) }

func any1(int) bool { return true }

func TestSelectPerformsOne(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			var a, b mailbox
			ca, cb := suspend.CaseOf(a.recv(any1)), suspend.CaseOf(b.recv(any1))
			for i := range 200 {
				to := &a
				if i%3 == 0 {
					to = &b
				}
				if i%2 == 0 {
					to.send(i)
				} else {
					_ = s.Go(func() { to.send(i) })
				}
				won, err := suspend.Select(bg, ca, cb)
				if err != nil {
					t.Fatal(err)
				}
				want := ca
				if i%3 == 0 {
					want = cb
				}
				if won != suspend.Selectable(want) || want.Value() != i {
					t.Fatalf("%d: wrong case, or value %d", i, want.Value())
				}
				if a.readers.Len() != 0 || b.readers.Len() != 0 {
					t.Fatal("a case is left in its queue")
				}
			}
			if won, err := suspend.TrySelect(bg, ca, cb); won != nil || err != nil {
				t.Errorf("TrySelect = %v, %v", won, err)
			}
			ctx, cancel := context.WithTimeout(bg, time.Millisecond)
			defer cancel()
			if won, err := suspend.Select(ctx, ca, cb); won != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Select = %v, %v", won, err)
			}
			if a.readers.Len() != 0 || b.readers.Len() != 0 {
				t.Error("a cancelled case is left in its queue")
			}
			timeout := suspend.CaseOf(suspend.After(time.Millisecond))
			if won, err := suspend.Select(bg, ca, timeout, cb); won != suspend.Selectable(timeout) || err != nil {
				t.Errorf("Select = %v, %v", won, err)
			}
			if won, err := suspend.Select(bg, ca, suspend.CaseOf(suspend.Done(ctx))); won == nil || won == suspend.Selectable(ca) || err != nil {
				t.Errorf("Select = %v, %v", won, err)
			}
			a.send(1)
			a.send(2)
			even := suspend.CaseOf(suspend.Map(a.recv(func(v int) bool { return v%2 == 0 }), func(v int, err error) (string, error) { return "two", err }))
			if won, _ := suspend.Select(bg, even, cb); won != suspend.Selectable(even) || even.Value() != "two" {
				t.Errorf("Select = %v", won)
			}
			if v, err := suspend.Do(bg, suspend.Choose(b.recv(any1), a.recv(any1))); v != 1 || err != nil {
				t.Errorf("Do = %d, %v", v, err)
			}
		})
	})
}

func TestThen(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		on := s.(suspend.Executor)
		var a mailbox
		got := make(chan int, 2)
		k := func(v int, err error) {
			if err != nil {
				v = -1
			}
			got <- v
		}
		suspend.Then(bg, a.recv(any1), on, k)
		a.send(5)
		if v := <-got; v != 5 {
			t.Errorf("got %d", v)
		}
		a.send(6)
		suspend.Then(bg, suspend.Choose(a.recv(any1), suspend.Op[int]{}), on, k)
		if v := <-got; v != 6 {
			t.Errorf("got %d", v)
		}
		ctx, end := context.WithCancel(bg)
		suspend.Then(ctx, a.recv(any1), on, k)
		end()
		if v := <-got; v != -1 {
			t.Errorf("got %d", v)
		}
		a.send(7)
		ours, endOurs := cancel.New(bg)
		endOurs(nil)
		for _, ctx := range []context.Context{ctx, ours} { // already ended, although the mailbox has a letter
			suspend.Then(ctx, a.recv(any1), on, k)
			if v := <-got; v != -1 {
				t.Errorf("got %d", v)
			}
		}
		if v, err := suspend.Do(bg, a.recv(any1)); v != 7 || err != nil {
			t.Errorf("%d, %v is left", v, err)
		}
		a.guard.Lock()
		if a.readers.Len() != 0 {
			t.Error("a waiter is left in the queue")
		}
		a.guard.Unlock()
	})
}

// A shy context ends when the wait registers with it, before the wait has queued anything.
type shy struct {
	context.Context
	cancel func()
}

func (c shy) AfterFunc(func()) func() bool { c.cancel(); return func() bool { return true } }

func TestSelectThatIsCancelledBeforeItWaits(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			var m mailbox
			if suspend.Current() == nil {
				return // a goroutine does not register
			}
			won, err := suspend.Select(shy{ctx, cancel}, suspend.CaseOf(suspend.After(time.Hour)), suspend.CaseOf(m.recv(any1)))
			if won != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("Select = %v, %v", won, err)
			}
		})
	})
}

type rude struct{ context.Context }

func (rude) AfterFunc(func()) func() bool { panic("rude") }

func TestContextThatPanicsLeavesTheTaskUsable(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			if suspend.Current() == nil {
				return
			}
			for range 2 {
				ctx, cancel := context.WithCancel(bg)
				func() {
					defer func() {
						if v := recover(); v != "rude" {
							t.Errorf("panic %v", v)
						}
					}()
					_ = suspend.Sleep(rude{ctx}, time.Hour)
				}()
				other, cancelOther := context.WithTimeout(bg, time.Millisecond)
				if err := suspend.Sleep(other, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Sleep = %v", err)
				}
				cancel()
				cancelOther()
			}
		})
	})
}

// The context of a Then may end after its operation has been performed, and before its continuation has been called.
func TestThenCallsItsContinuationOnce(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for _, first := range []bool{true, false} {
			ctx, end := cancel.New(bg)
			p := promise.New[int]()
			if first {
				_ = p.Fill(1)
			}
			calls := 0
			suspend.Then(ctx, p.AwaitOp(), s, func(v int, err error) {
				calls++
				if v != 1 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
			})
			_ = p.Fill(1)
			end(nil)
			for range 10 {
				suspend.Yield()
			}
			if calls != 1 {
				t.Errorf("called %d times", calls)
			}
		}
	})
}

// A refusing executor is closed.
type refusing struct{}

func (refusing) Execute(func()) error { return suspend.ErrClosed }

func TestThenOnAnExecutorThatRefuses(t *testing.T) {
	var m mailbox
	got := make(chan int)
	suspend.Then(bg, m.recv(any1), refusing{}, func(v int, err error) { got <- v })
	m.send(3)
	if v := <-got; v != 3 {
		t.Errorf("got %d", v)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil executor was accepted")
		}
	}()
	suspend.Then(bg, m.recv(any1), nil, func(int, error) {})
}

func TestSelectMisuse(t *testing.T) {
	var m mailbox
	c := suspend.CaseOf(m.recv(any1))
	func() {
		defer func() {
			if v := recover(); v != "suspend: Select with the same case twice" {
				t.Errorf("panic %v", v)
			}
		}()
		_, _ = suspend.TrySelect(bg, c, c)
	}()
	func() {
		defer func() {
			if v := recover(); v != "suspend: Result of a case that was not performed" {
				t.Errorf("panic %v", v)
			}
		}()
		c.Value()
	}()
	var off *suspend.Case[int]
	m.send(1)
	if won, err := suspend.Select(bg, off, nil, c, suspend.CaseOf(suspend.Op[string]{})); won != suspend.Selectable(c) || err != nil {
		t.Errorf("Select = %v, %v", won, err)
	}
	m.send(2)
	done, cancel := context.WithCancel(bg)
	cancel()
	if won, err := suspend.Select(done, c); won != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Select = %v, %v with a context that is done", won, err)
	}
	if won, err := suspend.TrySelect(done, c); won != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("TrySelect = %v, %v with a context that is done", won, err)
	}
}

// A level that panics when it is registered fails the whole Select, which leaves no waiter behind.
func TestSelectWhoseCasePanics(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			var m mailbox
			c := suspend.CaseOf(m.recv(any1))
			for range 3 {
				func() {
					defer func() {
						if v := recover(); v != "rude" {
							t.Errorf("panic %v", v)
						}
					}()
					_, _ = suspend.Select(bg, c, suspend.CaseOf(suspend.Done(rude{ctx})))
				}()
				if m.readers.Len() != 0 {
					t.Fatal("a case is left in its queue")
				}
				_ = s.Go(func() { m.send(1) })
				if won, err := suspend.Select(bg, c); won != suspend.Selectable(c) || err != nil || c.Value() != 1 {
					t.Errorf("Select = %v, %v", won, err)
				}
			}
		})
	})
}

// A case may be used on one scheduler after another, while Resumers of the first use still exist.
func TestCaseOnTwoSchedulers(t *testing.T) {
	var m mailbox
	c := suspend.CaseOf(m.recv(any1))
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for i := range 50 {
			s := next()
			schedtest.Run(t, s, func() {
				_ = next().Go(func() { m.send(i) })
				if _, err := suspend.Select(bg, c); err != nil || c.Value() != i {
					t.Errorf("Select = %d, %v, want %d", c.Value(), err, i)
				}
			})
		}
	})
}

func TestOpAllocs(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var a, b mailbox
		ca, cb := suspend.CaseOf(a.recv(any1)), suspend.CaseOf(b.recv(any1))
		for name, limit := range map[string]struct {
			max float64
			f   func()
		}{
			"Select, ready":   {1, func() { a.send(1); _, _ = suspend.Select(bg, ca, cb) }}, // one allocation for the letters
			"TrySelect, none": {0, func() { _, _ = suspend.TrySelect(bg, ca, cb) }},
			"Do, ready":       {8, func() { a.send(1); _, _ = suspend.Do(bg, a.recv(any1)) }},
			"Then, ready":     {13, func() { a.send(1); suspend.Then(bg, a.recv(any1), s, func(int, error) {}); suspend.Yield() }},
		} {
			if got := testing.AllocsPerRun(100, limit.f); got > limit.max {
				t.Errorf("%s: %v allocations, limit %v", name, got, limit.max)
			}
		}
		stop := false
		_ = s.Go(func() {
			for !stop {
				b.send(1)
				suspend.Yield()
			}
		})
		if got := testing.AllocsPerRun(100, func() { _, _ = suspend.Select(bg, ca, cb) }); got > 1 {
			t.Errorf("Select, waiting: %v allocations", got)
		}
		stop = true
	})
}

// An object keeps nothing alive of a case that lost a Select, of a cancelled wait, or of a Then that was called.
func TestOpsRetainNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		const each = 3
		var a, b mailbox
		var predicates schedtest.Objects
		held := func() func(int) bool { // each waiter has a predicate of 1 KB
			big := predicates.New()
			return func(int) bool { return big[0] == 0 }
		}
		for range each {
			_ = s.Go(func() { a.send(1) })
			_, _ = suspend.Select(bg, suspend.CaseOf(a.recv(any1)), suspend.CaseOf(b.recv(held()))) // the second case loses
			ctx, end := cancel.New(bg)
			_ = s.Go(func() { end(nil) })
			_, _ = suspend.Select(ctx, suspend.CaseOf(b.recv(held()))) // the wait is cancelled
			ctx, end = cancel.New(bg)
			suspend.Then(ctx, b.recv(held()), s, func(int, error) {})
			end(nil)
			suspend.Yield() // the continuation has been called
		}
		if b.readers.Len() != 0 {
			t.Fatalf("%d are left in the queue", b.readers.Len())
		}
		predicates.Collected(t, 0)
		runtime.KeepAlive([]*mailbox{&a, &b})
	})
}

// A Then is cancelled before it begins, while it waits, after its operation was performed, and after its continuation was called.
func TestCancelThenAtEachPoint(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for point, want := range map[string]string{"before": "error", "while waiting": "error", "performed": "value", "after": "value"} {
			var m mailbox
			ctx, end := cancel.New(bg)
			got := ""
			if point == "before" {
				end(nil)
			}
			suspend.Then(ctx, m.recv(any1), s, func(v int, err error) {
				if got += "value"; err != nil {
					got = "error"
				}
			})
			if got != "" {
				t.Errorf("%s: called inline", point)
			}
			if point == "while waiting" {
				end(nil)
			}
			m.send(1)
			if point == "performed" {
				end(nil)
			}
			suspend.Yield()
			suspend.Yield()
			if point == "after" {
				end(nil)
			}
			suspend.Yield()
			if got != want {
				t.Errorf("%s: %q, want %q", point, got, want)
			}
			if letters := len(m.letters); (letters == 1) != (want == "error") {
				t.Errorf("%s: %d letters are left", point, letters)
			}
		}
	})
}
