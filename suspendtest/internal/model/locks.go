package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// Mutex is the interface of an object checked with Mutexes.
type Mutex interface {
	LockContext(ctx context.Context) error
	LockOp() suspend.Op[struct{}]
	TryLock() bool
	Unlock()
}

// Mutexes returns the Spec of a Mutex.
func Mutexes(anew func() Mutex) Spec {
	return Spec{Name: "mutex", New: func(Choose) *System {
		return &System{
			Title: "m is a Mutex",
			Parts: []Part{mutexPart(anew())},
			Probe: []Call{{0, 2, 0}, {0, 1, 0}, {0, 2, 0}, {0, 1, 0}, {0, 1, 0}},
		}
	}}
}

// RealMutex returns a Mutex of package mutex.
func RealMutex() Mutex { return new(mutex.Mutex) }

func mutexPart(m Mutex) Part {
	unlock := Kind{Name: "Unlock", Try: true, Seen: "ok,panic: mutex: Unlock of an unlocked Mutex",
		Run: func(context.Context, int) string { m.Unlock(); return "ok" }}
	return Part{Name: "m", Model: &mutexModel{nudged: -1}, Kinds: []Kind{
		{Name: "Lock", Seen: "ok",
			Run: func(ctx context.Context, _ int) string { return result("ok", m.LockContext(ctx)) },
			Op:  func(int) suspend.Op[string] { return done(m.LockOp()) }},
		unlock,
		{Name: "TryLock", Try: true, Seen: "ok,no", Run: func(context.Context, int) string { return tried("ok", m.TryLock()) }},
		unlock,
	}}
}

// The waiters of a mutexModel get the lock in order. A new operation can overtake them only while the lock is free and the first waiter,
// which was nudged, has not taken it yet.
type mutexModel struct {
	held   bool
	nudged int   // the id of the nudged waiter that will compete for the lock, or -1
	nudges []int // the id of a waiter for each nudge
}

// patience is the number of nudges after which the lock is handed over to the waiter.
const patience = 4

func (m *mutexModel) Copy() Object { c := *m; return &c }

func (m *mutexModel) Serve(w *World) bool {
	for _, o := range w.Waiting() {
		switch {
		case o.Kind == "Unlock" && !m.held:
			w.End(o, "panic: mutex: Unlock of an unlocked Mutex")
		case o.Kind == "Unlock":
			w.End(o, "ok")
			m.passOn(w)
		case !m.held && w.Arriving(o.ID):
			m.held = true
			w.End(o, "ok")
		default:
			continue
		}
		return true
	}
	return false
}

// passOn unlocks the lock. It nudges the first waiter, or hands the lock over to this waiter.
func (m *mutexModel) passOn(w *World) {
	m.held = false
	all := w.Waiting()
	if m.nudged >= 0 || len(all) == 0 {
		return
	}
	first := all[0]
	n := 0
	for _, id := range m.nudges {
		if id == first.ID {
			n++
		}
	}
	if first.AsOp || n >= patience {
		m.held = true
		w.End(first, "ok")
		return
	}
	m.nudged, m.nudges = first.ID, append(slices.Clip(m.nudges), first.ID)
}

func (m *mutexModel) Moves() bool { return m.nudged >= 0 }

func (m *mutexModel) Move(w *World) {
	if !m.held {
		m.held = true
		w.Finish(m.nudged, "ok")
	}
	m.nudged = -1 // the waiter now has the lock, or is still the first waiter
}

func (m *mutexModel) Quit(w *World, id int) {
	if m.nudged == id {
		if m.nudged = -1; !m.held {
			m.passOn(w)
		}
	}
}

// RWMutex is the interface of an object checked with RWMutexes.
type RWMutex interface {
	LockContext(ctx context.Context) error
	RLockContext(ctx context.Context) error
	LockOp() suspend.Op[struct{}]
	RLockOp() suspend.Op[struct{}]
	TryLock() bool
	TryRLock() bool
	Unlock()
	RUnlock()
	Downgrade()
}

// RWMutexes returns the Spec of an RWMutex.
func RWMutexes(anew func() RWMutex) Spec {
	return Spec{Name: "rwmutex", New: func(Choose) *System {
		m := anew()
		sys := &System{Title: "m is an RWMutex", Parts: []Part{{Name: "m", Model: &rwModel{}, Kinds: []Kind{
			{Name: "RLock", Seen: "ok",
				Run: func(ctx context.Context, _ int) string { return result("ok", m.RLockContext(ctx)) },
				Op:  func(int) suspend.Op[string] { return done(m.RLockOp()) }},
			{Name: "Lock", Seen: "ok",
				Run: func(ctx context.Context, _ int) string { return result("ok", m.LockContext(ctx)) },
				Op:  func(int) suspend.Op[string] { return done(m.LockOp()) }},
			{Name: "RUnlock", Try: true, Seen: "ok,panic: mutex: RUnlock of an unlocked RWMutex",
				Run: func(context.Context, int) string { m.RUnlock(); return "ok" }},
			{Name: "Unlock", Try: true, Seen: "ok,panic: mutex: Unlock of an unlocked RWMutex",
				Run: func(context.Context, int) string { m.Unlock(); return "ok" }},
			{Name: "TryRLock", Try: true, Seen: "ok,no", Run: func(context.Context, int) string { return tried("ok", m.TryRLock()) }},
			{Name: "TryLock", Try: true, Seen: "ok,no", Run: func(context.Context, int) string { return tried("ok", m.TryLock()) }},
			{Name: "Downgrade", Try: true, Seen: "ok,panic: mutex: Downgrade of an unlocked RWMutex",
				Run: func(context.Context, int) string { m.Downgrade(); return "ok" }},
		}}}}
		for _, kind := range []int{3, 2, 2, 5, 3, 4, 2, 2} {
			sys.Probe = append(sys.Probe, Call{0, kind, 0})
		}
		return sys
	}}
}

// RealRWMutex returns an RWMutex of package mutex.
func RealRWMutex() RWMutex { return new(mutex.RWMutex) }

type rwModel struct {
	writer  bool
	readers int
}

func (m *rwModel) Copy() Object { c := *m; return &c }

func (m *rwModel) Serve(w *World) bool {
	blocked := false // a request for the lock behind a waiter must also wait
	for _, o := range w.Waiting() {
		misuse := "panic: mutex: " + o.Kind + " of an unlocked RWMutex"
		switch o.Kind {
		case "Lock", "TryLock":
			if m.writer || m.readers > 0 || blocked {
				blocked = true
				continue
			}
			m.writer = true
			w.End(o, "ok")
		case "RLock", "TryRLock":
			if m.writer || blocked {
				blocked = true
				continue
			}
			m.readers++
			w.End(o, "ok")
		case "Unlock", "Downgrade":
			if !m.writer {
				w.End(o, misuse)
				break
			}
			if m.writer = false; o.Kind == "Downgrade" {
				m.readers++
			}
			w.End(o, "ok")
		case "RUnlock":
			if m.readers == 0 {
				w.End(o, misuse)
				break
			}
			m.readers--
			w.End(o, "ok")
		}
		return true
	}
	return false
}

// Semaphore is the interface of an object checked with Semaphores.
type Semaphore interface {
	Acquire(ctx context.Context, n int64) error
	AcquireOp(n int64) suspend.Op[struct{}]
	TryAcquire(n int64) bool
	Release(n int64)
	Resize(n int64)
	Close() error
}

// Semaphores returns the Spec of a Semaphore.
func Semaphores(anew func(n int64) Semaphore) Spec {
	return Spec{Name: "semaphore", New: func(choose Choose) *System {
		n := 1 + choose(3)
		return &System{
			Title: fmt.Sprintf("s is a semaphore of %d", n),
			Parts: []Part{semaphorePart(n, anew(int64(n)))},
			Probe: []Call{{0, 2, 3}, {0, 2, 2}, {0, 2, 1}, {0, 1, 1}, {0, 1, 2}, {0, 1, 3}, {0, 2, n}, {0, 2, 1}},
		}
	}}
}

// RealSemaphore returns a Semaphore of package semaphore.
func RealSemaphore(n int64) Semaphore { return semaphore.New(n) }

func semaphorePart(size int, s Semaphore) Part {
	release := Kind{Name: "Release", Args: 3, Try: true, Seen: "ok,panic: semaphore: released more than held",
		Run: func(_ context.Context, n int) string { s.Release(int64(n)); return "ok" }}
	closed := "," + semaphore.ErrClosed.Error()
	return Part{Name: "s", Model: &semaphoreModel{size: size, free: size}, Kinds: []Kind{
		{Name: "Acquire", Args: 4, Seen: "ok," + semaphore.ErrTooLarge.Error() + closed,
			Run: func(ctx context.Context, n int) string { return result("ok", s.Acquire(ctx, int64(n))) },
			Op:  func(n int) suspend.Op[string] { return done(s.AcquireOp(int64(n))) }},
		release,
		{Name: "TryAcquire", Args: 4, Try: true, Seen: "ok,no",
			Run: func(_ context.Context, n int) string { return tried("ok", s.TryAcquire(int64(n))) }},
		release,
		{Name: "Resize", Args: 4, Try: true, Seen: "ok", Run: func(_ context.Context, n int) string { s.Resize(int64(n - 1)); return "ok" }},
		{Name: "Close", Try: true, Seen: "ok" + closed, Run: func(context.Context, int) string { return result("ok", s.Close()) }},
	}}
}

// The field free of a semaphoreModel is negative after a Resize to fewer permits than are held.
type semaphoreModel struct {
	size, free int
	closed     bool
}

func (s *semaphoreModel) Copy() Object { c := *s; return &c }

func (s *semaphoreModel) Serve(w *World) bool {
	blocked := false
	for _, o := range w.Waiting() {
		switch o.Kind {
		case "Acquire", "TryAcquire":
			switch tried := o.Kind == "TryAcquire"; {
			case s.closed && !tried:
				w.End(o, semaphore.ErrClosed.Error())
				return true
			case o.Arg > s.size && !tried && (!blocked || w.Arriving(o.ID)):
				w.End(o, semaphore.ErrTooLarge.Error())
				return true
			case o.Arg > s.free || blocked || s.closed:
				blocked = true
				continue
			}
			s.free -= o.Arg
			w.End(o, "ok")
		case "Release":
			if o.Arg > s.size-s.free {
				w.End(o, "panic: semaphore: released more than held")
				return true
			}
			s.free += o.Arg
			w.End(o, "ok")
		case "Resize":
			s.free += o.Arg - 1 - s.size
			s.size = o.Arg - 1
			w.End(o, "ok")
		case "Close":
			if s.closed {
				w.End(o, semaphore.ErrClosed.Error())
				return true
			}
			s.closed = true
			w.End(o, "ok")
		}
		return true
	}
	return false
}
