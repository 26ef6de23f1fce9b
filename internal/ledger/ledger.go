// Package ledger records, while package census is on, the tasks that live, their waits, and the locks that they hold. While it is off nothing
// is recorded, and a place that would record costs one load of a word that is hardly ever written.
//
// A record holds addresses, program counters and types. So it keeps no task and no object alive; only the scheduler of a task is there itself,
// as long as the task waits. Entries belong to goroutines: a task is one, and so is a coroutine.
package ledger

import (
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/splitmix"
)

// On reports whether the ledger is kept.
func On() bool { return preempt.Recorded() }

// A Who names a task, or a goroutine without one. A coroutine runs one task after another, so its tasks are numbered.
type Who struct {
	Goroutine int64  // 0: a continuation, which has none
	Task      uint64 // 0: not known, since it began earlier, or on a scheduler that does not say
}

// A Task has begun and not ended.
type Task struct {
	Who
	Since time.Time
	Stack []uintptr // the stack of its Go
}

// A Wait has begun. Nothing reports its end, so the waits that do not last are swept.
type Wait struct {
	Who
	Seq      uint64 // no other wait has it
	Waiter   any    // weak; with Began, it identifies the wait
	Began    uint64
	Lasts    func() bool // it has not been resumed and not been cancelled
	Since    time.Time
	Stack    []uintptr    // the call's stack, innermost function first
	On       any          // the suspend.Spawner of the task; nil: it has none, or does not say
	Executor reflect.Type // the continuation's executor
	For      []Object     // more than one: the cases of a Select
	MayEnd   bool         // its context can end it
}

// An Object is waited for.
type Object struct {
	Addr  uintptr      // points into the object; 0 for a timer, or something else without a lock
	Kind  reflect.Type // the Source's type; nil if unknown
	Wants uint64       // permits; 1 where there are none
}

// The ledger is in parts, so that tasks of different processors seldom meet.
type part struct {
	mu    sync.Mutex
	tasks map[int64]Task
	waits map[int64]Wait // the last one by goroutine; a continuation's key is its negative address
	swept int            // how many were left of them by the last sweep
	lent  map[int64]int64
	held  held // keyed by address
	_     [64]byte
}

var (
	parts [64]part
	seq   atomic.Uint64 // numbers waits and holds, so that it changes whenever anything moves
	users struct {
		mu  sync.Mutex
		n   int
		end func()
		at  time.Time // when the first came
	}
	tell atomic.Pointer[func(goroutine int64) string]
)

func partOf(id int64) *part { return &parts[uint64(id)*splitmix.Golden>>58] }

// Start keeps the ledger until stop is called, which may be called again. When the last user stops, everything is forgotten. about describes the
// locks of a goroutine, for Tell.
func Start(about func(goroutine int64) string) (stop func()) {
	users.mu.Lock()
	defer users.mu.Unlock()
	if users.n++; users.n == 1 {
		users.at = time.Now()
		users.end = preempt.Record()
		tell.Store(&about)
	}
	return sync.OnceFunc(func() {
		users.mu.Lock()
		defer users.mu.Unlock()
		if users.n--; users.n > 0 {
			return
		}
		tell.Store(nil)
		users.end() // before the parts are emptied: an entry is made under the lock of its part, and only while On
		for i := range parts {
			p := &parts[i]
			p.mu.Lock()
			p.tasks, p.waits, p.lent, p.held, p.swept = nil, nil, nil, held{}, 0
			p.mu.Unlock()
		}
	})
}

// Tell returns a text about the task of a goroutine, "" if nothing is known.
func Tell(goroutine int64) string {
	if f := tell.Load(); f != nil {
		return (*f)(goroutine)
	}
	return ""
}

// Since returns when the ledger was begun, and whether it is kept.
func Since() (at time.Time, on bool) {
	users.mu.Lock()
	defer users.mu.Unlock()
	return users.at, users.n > 0
}

// ID returns the goroutine of the calling task. The body of a suspend.Pull is on another, which is lent.
func ID() int64 {
	id := gid.Get()
	p := partOf(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if by, ok := p.lent[id]; ok {
		return by
	}
	return id
}

// caller returns the calling task.
func caller() Who {
	id := ID()
	p := partOf(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return Who{id, p.tasks[id].Task}
}

// Lend says that the goroutine id runs for the task of by, until by is 0.
func Lend(id, by int64) {
	p := partOf(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case by == 0:
		delete(p.lent, id)
	case On():
		put(&p.lent, id, by)
	}
}

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// Begin returns f as a task that was started by the caller of the caller, for the time in which it runs.
func Begin(f func()) func() {
	t := Task{Stack: callers()}
	return func() {
		t.Who, t.Since = Who{gid.Get(), seq.Add(1)}, time.Now()
		p := partOf(t.Goroutine)
		p.mu.Lock()
		if On() {
			put(&p.tasks, t.Goroutine, t)
		}
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			if p.tasks[t.Goroutine].Who == t.Who {
				delete(p.tasks, t.Goroutine)
				seq.Add(1)
			}
			p.mu.Unlock()
		}()
		f()
	}
}

// Waits says that the calling task waits. A wait that is known already stays as it is.
func Waits(w Wait) {
	w.Who = caller()
	w.Since, w.Stack = time.Now(), callers()
	w.enter(w.Goroutine, func(old Wait) bool { return old.Waiter == w.Waiter && old.Began == w.Began })
}

// ThenWaits says that the continuation t waits. It has no goroutine. The next round of its wait changes nothing but the number.
func ThenWaits[T any](t *T, w Wait) {
	w.Since, w.Stack = time.Now(), callers()
	w.enter(-int64(Addr(t)), func(old Wait) bool {
		if old.Waiter == w.Waiter {
			w.Since, w.Stack = old.Since, old.Stack
		}
		return false
	})
}

func (w *Wait) enter(key int64, known func(old Wait) bool) {
	p := partOf(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !On() {
		return
	}
	if old, ok := p.waits[key]; ok && known(old) {
		return
	}
	if len(p.waits) > 2*p.swept+16 {
		p.sweep()
	}
	w.Seq = seq.Add(1)
	put(&p.waits, key, *w)
}

func (p *part) sweep() {
	for key, w := range p.waits {
		if !w.Lasts() {
			delete(p.waits, key)
		}
	}
	p.swept = len(p.waits)
}

// Addr returns the address of what p points to.
func Addr(p any) uintptr { return reflect.ValueOf(p).Pointer() }

// Depth is how many frames of a stack are kept, from the innermost one on.
const Depth = 48

// callers returns the stack of the caller of the exported function.
func callers() []uintptr {
	var buf [Depth]uintptr
	return append([]uintptr(nil), buf[:runtime.Callers(3, buf[:])]...)
}

// Read returns all that is known. The entries are of slightly different times.
func Read() (tasks []Task, waits []Wait) {
	for i := range parts {
		p := &parts[i]
		p.mu.Lock()
		p.sweep()
		for _, t := range p.tasks {
			tasks = append(tasks, t)
		}
		for _, w := range p.waits {
			waits = append(waits, w)
		}
		p.mu.Unlock()
	}
	return tasks, waits
}

// Moves returns a number that changes whenever a task begins or ends, a wait begins, or a lock is taken or given back.
func Moves() uint64 { return seq.Load() }
