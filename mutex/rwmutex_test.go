package mutex_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

// Only writers change the two values, and a reader never sees them unequal.
func TestReadersAndWriters(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var m mutex.RWMutex
		var readers, most, writes atomic.Int32
		a, b := 0, 0
		var fs []func()
		begin := latch.NewBarrier(8) // ensures that all readers overlap
		for range 8 {
			fs = append(fs, func() {
				_, _ = begin.Wait(bg)
				for i := range 200 {
					m.RLock()
					if n := readers.Add(1); n > most.Load() {
						most.Store(n)
					}
					first := a
					if i%3 == 0 {
						suspend.Yield()
					}
					if a != b || a != first {
						t.Errorf("%d, then %d and %d", first, a, b)
					}
					readers.Add(-1)
					m.RUnlock()
				}
			})
		}
		for range 3 {
			fs = append(fs, func() {
				for i := range 100 {
					m.Lock()
					a++
					if i%3 == 0 {
						suspend.Yield()
					}
					if n := readers.Load(); n != 0 {
						t.Errorf("%d readers together with the writer", n)
					}
					b++
					writes.Add(1)
					m.Unlock()
				}
			})
		}
		schedtest.Run(t, s, fs...)
		if !m.TryLock() || a != 300 || b != 300 {
			t.Errorf("%d and %d writes, or not free", a, b)
		}
		if most.Load() < 2 {
			t.Error("two readers never held the lock at the same time")
		}
	})
}

func TestRWTry(t *testing.T) {
	var m mutex.RWMutex
	for range 2 {
		if !m.TryRLock() || m.TryLock() {
			t.Fatal("two readers and no writer")
		}
	}
	m.RUnlock()
	if m.TryLock() {
		t.Fatal("a writer together with a reader")
	}
	m.RUnlock()
	if !m.TryLock() || m.TryLock() || m.TryRLock() {
		t.Fatal("one writer alone")
	}
	m.Unlock()
	if !m.TryLock() {
		t.Fatal("not free in the end")
	}
}

func TestRWMisusePanicsAndChangesNothing(t *testing.T) {
	const (
		unlock    = "mutex: Unlock of an unlocked RWMutex"
		rUnlock   = "mutex: RUnlock of an unlocked RWMutex"
		downgrade = "mutex: Downgrade of an unlocked RWMutex"
	)
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.RWMutex
		panics := func(want string, f func()) { t.Helper(); schedtest.Panics(t, want, f) }
		for range 2 { // the second time with the waiting bit that a Select leaves behind
			panics(unlock, m.Unlock)
			panics(rUnlock, m.RUnlock)
			panics(downgrade, m.Downgrade)
			if m.TryLock(); m.TryRLock() {
				t.Fatal("not locked")
			}
			panics(rUnlock, m.RUnlock)
			waits := func() (got *bool) {
				got = new(bool)
				_ = s.Go(func() { m.Lock(); *got = true; m.Unlock() })
				suspend.Yield()
				return got
			}
			got := waits()
			panics(rUnlock, m.RUnlock)
			if schedtest.Yield(2); *got {
				t.Error("the failed RUnlock has unlocked")
			}
			m.Unlock()
			if schedtest.Yield(2); !*got {
				t.Fatal("not handed over")
			}
			m.TryRLock()
			panics(unlock, m.Unlock)
			panics(downgrade, m.Downgrade)
			got = waits()
			panics(unlock, m.Unlock)
			panics(downgrade, m.Downgrade)
			if schedtest.Yield(2); *got {
				t.Error("the failed Unlock has unlocked")
			}
			m.RUnlock()
			if schedtest.Yield(2); !*got {
				t.Fatal("not handed over")
			}
			// The lost Select leaves the waiting bit behind.
			m.TryLock()
			_, _ = suspend.TrySelect(bg, suspend.CaseOf(m.RLockOp()))
			m.Unlock()
			m.TryRLock()
			_, _ = suspend.TrySelect(bg, suspend.CaseOf(m.LockOp()))
			m.RUnlock()
		}
	})
}

func TestRWDoneContextFailsThoughFree(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	var m mutex.RWMutex
	for name, err := range map[string]error{"Lock": m.LockContext(ctx), "RLock": m.RLockContext(ctx)} {
		if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v", name, err)
		}
	}
	if !m.TryLock() {
		t.Error("held afterwards")
	}
}

// queue starts tasks that wait for m, one for each letter: w for a writer, r for a reader. holders returns the tasks that hold m,
// and letGo makes them unlock it.
func queue(s *fifo.Scheduler, m *mutex.RWMutex, ctx func(i int) context.Context, who string) (holders func() string, letGo func()) {
	var held []byte
	go1 := false
	for i, as := range who {
		_ = s.Go(func() {
			lock, unlock := m.LockContext, m.Unlock
			if as == 'r' {
				lock, unlock = m.RLockContext, m.RUnlock
			}
			if lock(ctx(i)) != nil {
				return
			}
			held = append(held, '0'+byte(i))
			for !go1 {
				suspend.Yield()
			}
			held = slices.DeleteFunc(held, func(b byte) bool { return b == '0'+byte(i) })
			unlock()
		})
	}
	schedtest.Yield(2)
	return func() string { schedtest.Yield(3); return string(held) }, func() { go1 = true; schedtest.Yield(1); go1 = false }
}

func noCtx(int) context.Context { return bg }

func TestRWFirstComeFirstServed(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.RWMutex
		m.Lock()
		holders, letGo := queue(s, &m, noCtx, "rrwrrwwr")
		m.Unlock()
		for _, want := range []string{"01", "2", "34", "5", "6", "7", ""} {
			if got := holders(); got != want {
				t.Fatalf("%q hold it, want %q", got, want)
			}
			if want != "" && want != "7" && m.TryRLock() {
				t.Fatal("TryRLock has overtaken")
			}
			letGo()
		}
		if !m.TryLock() {
			t.Error("not free in the end")
		}
	})
}

// A waiting writer keeps later readers out. Once it is cancelled, they are admitted.
func TestCancelledWriterLetsReadersIn(t *testing.T) {
	for _, then := range []string{"rr", "rrw", "rrwr"} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var m mutex.RWMutex
			m.RLock()
			ctx, cancel := context.WithCancel(bg)
			holders, letGo := queue(s, &m, func(i int) context.Context {
				if i == 0 {
					return ctx
				}
				return bg
			}, "w"+then)
			if got := holders(); got != "" || m.TryRLock() {
				t.Fatalf("%q passed the writer", got)
			}
			cancel()
			for i := 0; holders() != "12"; i++ { // the cancellation runs on another goroutine
				if i > 1e6 {
					t.Fatal("the readers are not let in")
				}
				runtime.Gosched()
			}
			if m.TryLock() {
				t.Error("free")
			}
			m.RUnlock()
			for range 4 {
				letGo()
				holders()
			}
			if !m.TryLock() {
				t.Error("not free in the end")
			}
		})
	}
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestRWCancelAtEachPoint(t *testing.T) {
	for name, c := range map[string]struct {
		meet func(m *mutex.RWMutex, cancel func())
		want error
	}{
		"while queued":              {func(m *mutex.RWMutex, cancel func()) { cancel(); schedtest.Yield(2); m.Unlock() }, context.Canceled},
		"just before the hand-over": {func(m *mutex.RWMutex, cancel func()) { cancel(); m.Unlock() }, context.Canceled},
		"just after the hand-over":  {func(m *mutex.RWMutex, cancel func()) { m.Unlock(); cancel() }, nil},
		"after the return":          {func(m *mutex.RWMutex, cancel func()) { m.Unlock(); schedtest.Yield(2); cancel() }, nil},
	} {
		for _, as := range []string{"r", "w"} {
			for _, next := range []string{"r", "w"} {
				t.Run(name+", "+as+next, func(t *testing.T) {
					schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
						var m mutex.RWMutex
						m.Lock()
						ctx, cancel := schedtest.WithCancel()
						holders, letGo := queue(s, &m, func(i int) context.Context {
							if i == 0 {
								return ctx
							}
							return bg
						}, as+next)
						c.meet(&m, cancel)
						want := "1"
						if c.want == nil {
							if want = "0"; as == "r" && next == "r" {
								want = "01"
							}
						}
						if got := holders(); got != want {
							t.Errorf("%q hold it, want %q", got, want)
						}
						letGo()
						holders()
						letGo()
						holders()
						if !m.TryLock() {
							t.Error("not free in the end")
						}
					})
				})
			}
		}
	}
}

func TestDowngrade(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.RWMutex
		m.Lock()
		m.Downgrade()
		if m.TryLock() || !m.TryRLock() {
			t.Fatal("not a reader")
		}
		m.RUnlock()
		m.RUnlock()
		m.Lock()
		holders, letGo := queue(s, &m, noCtx, "rrwr")
		m.Downgrade()
		if got := holders(); got != "01" {
			t.Fatalf("%q hold it, want 01", got)
		}
		letGo()
		if got := holders(); got != "" {
			t.Fatalf("%q together with the reader", got)
		}
		m.RUnlock()
		if got := holders(); got != "2" {
			t.Fatalf("%q hold it, want 2", got)
		}
		letGo()
		holders()
		letGo()
		holders()
		if !m.TryLock() {
			t.Error("not free in the end")
		}
	})
}

// No matter what is cancelled, and when, a writer holds the lock alone, and it is free in the end.
func TestRWStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const tasks, rounds = 24, 250
		var m mutex.RWMutex
		var other mutex.RWMutex
		var readers atomic.Int64
		var writing atomic.Bool
		var read, wrote, cancelled, lost, downgraded atomic.Int64
		reading := func(rng *rand.Rand) {
			readers.Add(1)
			if rng.IntN(4) == 0 {
				suspend.Yield()
			}
			if writing.Load() {
				t.Error("a reader together with a writer")
			}
			readers.Add(-1)
			m.RUnlock()
			read.Add(1)
		}
		covered := func() bool {
			for _, n := range []*atomic.Int64{&read, &wrote, &downgraded, &cancelled, &lost} {
				if n.Load() == 0 {
					return false
				}
			}
			return true
		}
		schedtest.Stress(t, next, tasks, func(_ int, rng *rand.Rand) {
			for k := 0; schedtest.More(k, rounds, covered); k++ {
				ctx, cancel := schedtest.MayCancel(rng)
				write := rng.IntN(4) == 0
				lock, op := m.RLockContext, m.RLockOp
				if write {
					lock, op = m.LockContext, m.LockOp
				}
				var err error
				if rng.IntN(3) == 0 {
					lose := suspend.CaseOf(other.LockOp())
					var won suspend.Selectable
					if won, err = suspend.Select(ctx, suspend.CaseOf(op()), lose); won == suspend.Selectable(lose) {
						suspend.Yield()
						other.Unlock()
						lost.Add(1)
						cancel()
						continue
					}
				} else {
					err = lock(ctx)
				}
				switch {
				case err != nil:
					cancelled.Add(1)
					if !errors.Is(err, context.Canceled) {
						t.Errorf("Lock = %v", err)
					}
				case !write:
					reading(rng)
				default:
					if writing.Swap(true) || readers.Load() != 0 {
						t.Error("a writer is not alone")
					}
					if rng.IntN(4) == 0 {
						suspend.Yield()
					}
					if readers.Load() != 0 || !writing.Swap(false) {
						t.Error("a writer was not alone")
					}
					wrote.Add(1)
					if rng.IntN(3) == 0 {
						m.Downgrade()
						downgraded.Add(1)
						reading(rng)
					} else {
						m.Unlock()
					}
				}
				cancel()
			}
		})
		t.Logf("%d read, %d wrote, %d downgraded, %d cancelled, %d lost", read.Load(), wrote.Load(), downgraded.Load(), cancelled.Load(), lost.Load())
		if !covered() {
			t.Error("an outcome was not covered")
		}
		if !m.TryLock() || !other.TryLock() {
			t.Error("not free in the end")
		}
	})
}

// A writer that is cancelled while a reader holds the lock keeps no later reader out.
func TestCancelledWriterStress(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const readers = 3
		var m mutex.RWMutex
		for i := range 300 {
			m.RLock() // waits until all have ended
			ctx, cancel := context.WithCancel(bg)
			var all sync.WaitGroup
			all.Add(1 + readers)
			_ = next().Go(func() {
				defer all.Done()
				if m.LockContext(ctx) == nil {
					t.Error("locked together with a reader")
				}
			})
			for range readers {
				_ = next().Go(func() {
					defer all.Done()
					m.RLock()
					suspend.Yield()
					m.RUnlock()
				})
			}
			if i%2 == 0 {
				suspend.Yield()
			}
			cancel()
			all.Wait()
			m.RUnlock()
		}
		if !m.TryLock() {
			t.Error("not free in the end")
		}
	})
}

// Readers do not starve writers, and writers do not starve readers, as long as each unlocks.
func TestNeitherSideStarves(t *testing.T) {
	for _, busy := range []string{"readers", "writers"} {
		t.Run(busy, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				var m mutex.RWMutex
				few, many := sync.Locker(&m), m.RLocker()
				if busy == "writers" {
					few, many = many, few
				}
				var stop atomic.Bool
				fs := []func(){func() {
					for range 50 {
						few.Lock()
						suspend.Yield()
						few.Unlock()
					}
					stop.Store(true)
				}}
				for range 6 {
					fs = append(fs, func() {
						for !stop.Load() {
							many.Lock()
							suspend.Yield()
							many.Unlock()
						}
					})
				}
				schedtest.Run(t, s, fs...)
				if !m.TryLock() {
					t.Error("not free in the end")
				}
			})
		})
	}
}

func TestRWOpInSelectAndThen(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var a, b mutex.RWMutex
		_, _ = a.RLockContext(bg), b.LockContext(bg)
		write, read := suspend.CaseOf(a.LockOp()), suspend.CaseOf(b.RLockOp())
		var won suspend.Selectable
		behind := false
		_ = s.Go(func() { won, _ = suspend.Select(bg, write, read) })
		_ = s.Go(func() { a.RLock(); behind = true })
		schedtest.Yield(2)
		if won != nil || behind {
			t.Fatal("no waiter could be served")
		}
		b.Unlock()
		schedtest.Yield(3)
		if won != suspend.Selectable(read) {
			t.Fatalf("won %v", won)
		}
		if !behind {
			t.Error("a case that has lost keeps readers out")
		}
		var got []error
		ctx, cancel := schedtest.WithCancel()
		k := func(_ struct{}, err error) { got = append(got, err) }
		suspend.Then(ctx, b.LockOp(), s, k)
		suspend.Then(bg, b.RLockOp(), s, k)
		if schedtest.Yield(2); len(got) != 0 {
			t.Fatal("overtaken")
		}
		cancel()
		if schedtest.Yield(3); len(got) != 2 || !errors.Is(got[0], context.Canceled) || got[1] != nil {
			t.Errorf("got %v", got)
		}
		b.RUnlock()
		b.RUnlock()
		if !b.TryLock() {
			t.Error("not free in the end")
		}
	})
}

// A waiting goroutine is durably blocked, so the clock of a bubble advances.
func TestRWInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m mutex.RWMutex
		m.RLock()
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		if err := m.LockContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock = %v after an hour", err)
		}
	})
}

// A value that is reachable only from a cancelled waiter is freed.
func TestRWNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.RWMutex
		m.Lock()
		var kept schedtest.Objects
		ctx, cancel := context.WithCancel(bg)
		failed := 0
		for _, lock := range []func(context.Context) error{m.LockContext, m.RLockContext} {
			captured := kept.New()
			_ = s.Go(func() {
				_ = lock(ctx)
				runtime.KeepAlive(captured)
				failed++
			})
		}
		suspend.Yield()
		cancel()
		for failed < 2 {
			suspend.Yield()
		}
		kept.Collected(t, 0)
		runtime.KeepAlive(&m)
	})
}

func TestRWAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var m mutex.RWMutex
	for name, f := range map[string]func(){
		"write":              func() { m.Lock(); m.Unlock() },
		"write, cancellable": func() { _ = m.LockContext(ctx); m.Unlock() },
		"read":               func() { m.RLock(); m.RUnlock() },
		"read, cancellable":  func() { _ = m.RLockContext(ctx); m.RUnlock() },
		"try":                func() { m.TryLock(); m.Unlock(); m.TryRLock(); m.RUnlock() },
	} {
		if got := testing.AllocsPerRun(100, f); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
	for name, ctx := range map[string]context.Context{"contended": bg, "contended, cancellable": ctx} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			stop := false
			_ = s.Go(func() {
				for !stop {
					_ = m.RLockContext(ctx)
					suspend.Yield()
					m.RUnlock()
				}
			})
			got := testing.AllocsPerRun(100, func() {
				_ = m.LockContext(ctx)
				suspend.Yield()
				m.Unlock()
			})
			if got > 0 {
				t.Errorf("%s: %v allocations", name, got)
			}
			stop = true
		})
	}
}
