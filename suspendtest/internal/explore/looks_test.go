package explore_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// A task holds something without performing an operation, and another task looks at it. Some run must show that it is held. Only
// in such programs is a release a point.
func TestALookSeesWhatIsHeld(t *testing.T) {
	is := map[bool]string{true: "free", false: "held"}
	tries := func(try func() bool, undo func()) string {
		ok := try()
		if ok {
			undo()
		}
		return is[ok]
	}
	selected := func(op suspend.Op[struct{}]) func() bool {
		return func() bool { won, _ := suspend.TrySelect(bg, suspend.CaseOf(op)); return won != nil }
	}
	first := func(op suspend.Op[struct{}]) func() bool {
		p := promise.New[int]()
		_ = p.Fill(1)
		lock := suspend.CaseOf(op)
		return func() bool {
			won, _ := suspend.SelectOrdered(bg, lock, suspend.CaseOf(p.AwaitOp()))
			return won == lock
		}
	}
	type pair struct{ holds, looks func() string }
	locks := func(look func(m *mutex.Mutex) string) func() pair {
		return func() pair {
			m := new(mutex.Mutex)
			return pair{func() string { m.Lock(); m.Unlock(); return "" }, func() string { return look(m) }}
		}
	}
	rw := func(write bool, look func(m *mutex.RWMutex) string) func() pair {
		return func() pair {
			m := new(mutex.RWMutex)
			lock, unlock := m.RLockContext, m.RUnlock
			if write {
				lock, unlock = m.LockContext, m.Unlock
			}
			return pair{func() string { _ = lock(bg); unlock(); return "" }, func() string { return look(m) }}
		}
	}
	permits := func(try func(s *semaphore.Semaphore) func() bool) func() pair {
		return func() pair {
			s := semaphore.New(1)
			return pair{func() string { _ = s.Acquire(bg, 1); s.Release(1); return "" }, func() string { return tries(try(s), func() { s.Release(1) }) }}
		}
	}
	for name, p := range map[string]struct {
		each func() pair
		runs int // 0 if it was not computed by hand
		want string
	}{
		// The holder has three turns: begin, take, release. The looker has two turns, and a third if it finds the object free.
		// The look comes between take and release in 3 runs, and after the release in 4. Before the take, it comes in 4 runs if
		// the third turn does, too. Otherwise the take has two points, and the third turn is at the second of them or later: 3·2
		// runs. The sum is 17. A take of an RWMutex or a Semaphore has one point even if it has to wait: 3·1 runs, and a sum of 14.
		"Mutex.TryLock":          {locks(func(m *mutex.Mutex) string { return tries(m.TryLock, m.Unlock) }), 17, "free held"},
		"Mutex, TrySelect":       {locks(func(m *mutex.Mutex) string { return tries(selected(m.LockOp()), m.Unlock) }), 17, "free held"},
		"Mutex, SelectOrdered":   {locks(func(m *mutex.Mutex) string { return tries(first(m.LockOp()), m.Unlock) }), 0, "free held"},
		"RWMutex.TryLock":        {rw(true, func(m *mutex.RWMutex) string { return tries(m.TryLock, m.Unlock) }), 14, "free held"},
		"RWMutex.TryRLock":       {rw(true, func(m *mutex.RWMutex) string { return tries(m.TryRLock, m.RUnlock) }), 14, "free held"},
		"RWMutex.TryLock, read":  {rw(false, func(m *mutex.RWMutex) string { return tries(m.TryLock, m.Unlock) }), 14, "free held"},
		"RWMutex, TrySelect":     {rw(true, func(m *mutex.RWMutex) string { return tries(selected(m.RLockOp()), m.RUnlock) }), 14, "free held"},
		"RWMutex, SelectOrdered": {rw(false, func(m *mutex.RWMutex) string { return tries(first(m.LockOp()), m.Unlock) }), 0, "free held"},
		"RWMutex.Downgrade": {func() pair {
			m := new(mutex.RWMutex)
			return pair{func() string { m.Lock(); m.Downgrade(); m.RUnlock(); return "" }, func() string {
				if m.TryLock() {
					m.Unlock()
					return "free"
				} else if m.TryRLock() {
					m.RUnlock()
					return "read"
				}
				return "held"
			}}
		}, 0, "free held read"},
		"Semaphore.TryAcquire":     {permits(func(s *semaphore.Semaphore) func() bool { return func() bool { return s.TryAcquire(1) } }), 14, "free held"},
		"Semaphore, TrySelect":     {permits(func(s *semaphore.Semaphore) func() bool { return selected(s.AcquireOp(1)) }), 14, "free held"},
		"Semaphore, SelectOrdered": {permits(func(s *semaphore.Semaphore) func() bool { return first(s.AcquireOp(1)) }), 0, "free held"},
		"keyed.Mutex.TryLock": {func() pair {
			m := new(keyed.Mutex[int])
			return pair{func() string { m.Lock(1); m.Unlock(1); return "" }, func() string { return tries(func() bool { return m.TryLock(1) }, func() { m.Unlock(1) }) }}
		}, 0, "free held"},
		"keyed.Mutex.Len": {func() pair {
			m := new(keyed.Mutex[int])
			return pair{func() string { m.Lock(1); m.Unlock(1); return "" }, func() string { return is[m.Len() == 0] }}
		}, 0, "free held"},
		"keyed.Semaphore.TryAcquire": {func() pair {
			s := keyed.NewSemaphore[int](1)
			return pair{func() string { _ = s.Acquire(bg, 1); s.Release(1); return "" }, func() string { return tries(func() bool { return s.TryAcquire(1) }, func() { s.Release(1) }) }}
		}, 0, "free held"},

		// One resource is opened, leased and idle, and another one is closed. Stats never counts a resource twice.
		"Pool.Stats": {func() pair {
			p := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
			return pair{func() string {
				for range 2 {
					l, _ := p.Acquire(bg)
					l.Release()
				}
				return ""
			}, func() string { s := p.Stats(); return fmt.Sprint(s.Idle, s.Leased, s.Opened) }}
		}, 0, "0 0 0 0 1 0 0 1 1 1 0 1"},
		"Pool.Stats, a lease that is discarded": {func() pair {
			p := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
			return pair{func() string { l, _ := p.Acquire(bg); l.Discard(); l.Release(); return "" }, func() string { s := p.Stats(); return fmt.Sprint(s.Idle, s.Leased, s.Opened) }}
		}, 0, "0 0 0 0 0 1 0 1 0 0 1 1"},

		// These have no release that is not already a point.
		"MVar.TryRead in a Modify": {func() pair {
			m := mvar.NewFull(1)
			return pair{func() string { _ = m.Modify(bg, func(n int) (int, error) { return n, nil }); return "" }, func() string { _, ok := m.TryRead(); return is[ok] }}
		}, 10, "free held"}, // 5!/(3!2!)
		"MVar.TryPut": {func() pair {
			m := mvar.NewFull(1)
			return pair{func() string { _, _ = m.Take(bg); m.TryPut(1); return "" }, func() string { _, ok := m.TryRead(); return is[ok] }}
		}, 10, "free held"},
		"Chan.TrySend and CloseWith": {func() pair {
			c := chanx.New[int](1)
			return pair{func() string { _ = c.Send(bg, 1); _ = c.Close(); return "" }, func() string {
				_, ok, err := c.TryRecv()
				if err != nil {
					return "closed"
				}
				return is[ok]
			}}
		}, 10, "free held"},
		"Chan.Len": {func() pair {
			c := chanx.New[int](1)
			return pair{func() string { _ = c.Send(bg, 1); _, _ = c.Recv(bg); return "" }, func() string { return is[c.Len() == 0] }}
		}, 10, "free held"},
		"Latch.TryWait": {func() pair {
			l := latch.New(2)
			return pair{func() string { l.CountDown(); l.CountDown(); return is[l.TryWait()] }, func() string { return is[l.TryWait()] }}
		}, 15, "free held"}, // 6!/(4!2!)
	} {
		seen := map[string]bool{}
		r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}, func(w *explore.World) {
			of := p.each()
			var held, looked string
			w.Go("holds", func(context.Context) { held = of.holds() })
			w.Go("looks", func(context.Context) { looked = of.looks() })
			w.Check(func() error { seen[looked] = true; _ = held; return nil })
		})
		got := strings.Join(slices.Sorted(maps.Keys(seen)), " ")
		if r.Failure != nil || !r.Exhausted || r.Cut != (explore.Cut{}) || got != p.want || p.runs > 0 && r.Executions != p.runs {
			t.Errorf("%s: %v, saw %s; %v", name, r, got, r.Failure)
		}
	}
}

// A task first waits for the Mutex, and then holds it. A third task looks at it.
func TestALookSeesWhatWasHandedOver(t *testing.T) {
	for name, lock := range map[string]func(ctx context.Context, m *mutex.Mutex){
		"nudged":      func(ctx context.Context, m *mutex.Mutex) { _ = m.LockContext(ctx) },
		"handed over": func(ctx context.Context, m *mutex.Mutex) { _, _ = suspend.Do(ctx, m.LockOp()) },
	} {
		seen := false
		r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}, func(w *explore.World) {
			m, queued, waited, holds := new(mutex.Mutex), false, false, false
			m.Lock()
			w.Go("holds", func(context.Context) { waited = queued; m.Unlock() })
			w.Go("waits", func(context.Context) {
				lock(queueing{bg, &queued}, m)
				holds = true
				m.Unlock()
				holds = false
			})
			w.Go("looks", func(context.Context) {
				if m.TryLock() {
					m.Unlock()
				} else if waited && holds {
					seen = true
				}
			})
		})
		if r.Failure != nil || !r.Exhausted || !seen {
			t.Errorf("%s: %v, seen: %v; %v", name, r, seen, r.Failure)
		}
	}
}

// A queueing context notifies the test when a task has queued with it.
type queueing struct {
	context.Context
	queued *bool
}

func (q queueing) Done() <-chan struct{} { return make(chan struct{}) }

func (q queueing) AfterFunc(func()) (stop func() bool) {
	*q.queued = true
	return func() bool { return true }
}

// A caller starts tasks on the scheduler of the calling task.
type caller struct{}

func (caller) Go(f func()) error { return suspend.Here().Go(f) }

// Go counts its task first as running, and then as live. Idle and Live may be called in between.
func TestALookSeesAGo(t *testing.T) {
	seen := map[string]bool{}
	r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}, func(w *explore.World) {
		g := idle.New(caller{}, nil)
		w.Go("goes", func(context.Context) { _ = g.Go(func() {}) })
		w.Go("looks", func(context.Context) { seen[fmt.Sprint(g.Idle(), g.Live(), g.Live())] = true })
	})
	if r.Failure != nil || !r.Exhausted || !seen["false 0 1"] {
		t.Errorf("%v, seen: %v; %v", r, seen, r.Failure)
	}
}

// A key becomes used after the operation before its Lock, and unused after the one before its Unlock. Len may be called in
// between.
func TestALookSeesKeys(t *testing.T) {
	for keys, ops := range map[int]func(m *keyed.Mutex[int], fill func()){
		0: func(m *keyed.Mutex[int], fill func()) { fill(); m.Lock(1) },
		1: func(m *keyed.Mutex[int], fill func()) { m.Lock(1); fill(); m.Unlock(1) },
	} {
		seen := false
		r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}, func(w *explore.World) {
			var m keyed.Mutex[int]
			p := promise.New[int]()
			w.Go("uses", func(context.Context) { ops(&m, func() { _ = p.Fill(1) }) })
			w.Go("looks", func(context.Context) {
				_, filled, _ := p.Try()
				if n := m.Len(); filled && n == keys {
					seen = true
				}
			})
		})
		if r.Failure != nil || !r.Exhausted || !seen {
			t.Errorf("%d keys: %v, seen: %v; %v", keys, r, seen, r.Failure)
		}
	}
}

// recovered calls f and returns the value with which f panics, or nil.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// A member ends after the operation before its end. A Go that the scope refuses, or a look at the Group, may come in between.
func TestALookSeesMembers(t *testing.T) {
	for name, each := range map[string]func(body func(add func(f func()), look func() string)){
		"Scope.Go": func(body func(add func(f func()), look func() string)) {
			_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				child := func(f func()) { s.Go(suspend.Here(), func(context.Context) error { f(); return nil }) }
				body(child, func() string { return fmt.Sprint(recovered(func() { child(func() {}) }) == nil) })
				return nil
			})
		},
		"Hold of a Scope": func(body func(add func(f func()), look func() string)) {
			_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				members := s.On(nil).(sched.Holder)
				release, _ := members.Hold()
				body(func(f func()) { _ = suspend.Here().Go(func() { f(); release() }) }, func() string {
					release, err := members.Hold()
					if err == nil {
						release()
					}
					return fmt.Sprint(err == nil)
				})
				return nil
			})
		},
		"Group.Live": func(body func(add func(f func()), look func() string)) {
			g := idle.New(suspend.Here(), nil)
			body(func(f func()) { _ = g.Go(f) }, func() string { return fmt.Sprint(g.Live() == 1) })
		},
		"Group.Idle": func(body func(add func(f func()), look func() string)) {
			g := idle.New(suspend.Here(), nil)
			body(func(f func()) { _ = g.Go(f) }, func() string { return fmt.Sprint(!g.Idle()) })
		},
	} {
		seen := map[string]bool{}
		r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}, func(w *explore.World) {
			w.Go("main", func(context.Context) {
				p := promise.New[int]()
				each(func(add func(f func()), look func() string) {
					add(func() { _ = p.Fill(1) })
					_ = suspend.Here().Go(func() {
						_, filled, _ := p.Try()
						seen[fmt.Sprint(filled, " ", look())] = true
					})
				})
			})
		})
		if r.Failure != nil || !r.Exhausted || !seen["true true"] || !seen["true false"] || !seen["false true"] {
			t.Errorf("%s: %v, seen: %v; %v", name, r, seen, r.Failure)
		}
	}
}

// OnIdle may look at objects. It is called in a turn of the last task that has begun to wait.
func TestALookWhileAllWait(t *testing.T) {
	held := false
	r := explore.Run(explore.Config{Points: true, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}, func(w *explore.World) {
		m := new(mutex.Mutex)
		w.Go("waits", func(ctx context.Context) { m.Lock(); _, _ = promise.New[int]().Await(ctx) })
		w.OnIdle(func([]string) error { held = !m.TryLock(); return nil })
	})
	if r.Failure != nil || !r.Exhausted || !held {
		t.Error(r, held, r.Failure)
	}
}

// A run of a program with looks can be repeated from its string.
func TestALookIsReplayed(t *testing.T) {
	program := func(w *explore.World) {
		var s = semaphore.New(1)
		w.Go("holds", func(context.Context) { _ = s.Acquire(bg, 1); s.Release(1) })
		w.Go("looks", func(context.Context) {
			if !s.TryAcquire(1) {
				panic("held")
			}
			s.Release(1)
		})
	}
	c := explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}
	first := explore.Run(c, program)
	if first.Failure == nil || !strings.Contains(first.Failure.Reason, "held") || strings.Contains(first.Failure.Reason, "run again") {
		t.Fatal(first, first.Failure)
	}
	if c.Replay = first.Failure.Replay; strings.Count(c.Replay, ".") != 3 {
		t.Errorf("%s does not name what is looked at", c.Replay)
	}
	if again := explore.Run(c, program); again.Failure == nil || again.Failure.Reason != first.Failure.Reason {
		t.Error(again.Failure)
	}
}

// A task that another package wraps has the same points.
func TestTasksOfAGroup(t *testing.T) {
	r := explore.Run(explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Executions: 1000}, func(w *explore.World) {
		n := 0
		w.Go("main", func(context.Context) {
			g, m := idle.New(suspend.Here(), nil), new(mutex.Mutex)
			for range 2 {
				_ = g.Go(func() {
					v := n
					m.Lock()
					m.Unlock()
					n = v + 1
				})
			}
			_ = g.Wait(bg)
			if n != 2 {
				panic("lost")
			}
		})
	})
	if r.Failure == nil || !strings.Contains(r.Failure.Reason, "lost") {
		t.Error(r, r.Failure)
	}
}
