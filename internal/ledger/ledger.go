// Package ledger records the live tasks, their waits, and the locks that they hold, while the census (package census) is
// on. While the census is off, nothing is recorded, and each place that could record something costs one load of a word
// that rarely changes.
//
// A record holds addresses, program counters and types, so it keeps no task and no object alive. The exception is the
// scheduler of a task, which is kept alive while the task waits. Records belong to goroutines, because every task and every
// coroutine runs on a separate goroutine.
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

// A Who identifies a task, or a goroutine without a task. Tasks are numbered, because a coroutine runs one task after
// another.
type Who struct {
	Goroutine int64  // 0 for a continuation
	Task      uint64 // 0 if unknown: the task began before Start, or its scheduler does not call Begin
}

// A Task is a task that has begun and has not ended.
type Task struct {
	Who
	Since time.Time
	Stack []uintptr // the stack at the call of Go
}

// A Wait is a wait that has begun. The end of a wait is not recorded, so sweep removes the waits that have ended.
type Wait struct {
	Who
	Seq      uint64 // a unique number
	Waiter   any    // a weak pointer; Waiter and Began identify the wait
	Began    uint64
	Lasts    func() bool // reports whether the wait has neither been resumed nor cancelled
	Since    time.Time
	Stack    []uintptr    // the stack of the call, innermost function first
	On       any          // the suspend.Spawner of the task, or nil if unknown
	Executor reflect.Type // the continuation's executor
	For      []Object     // one Object for each case of a Select
	MayEnd   bool         // the context can end the wait
}

// An Object is an object for which a task waits.
type Object struct {
	Addr  uintptr      // points into the object; 0 for a timer, or another Source without a lock
	Kind  reflect.Type // the Source's type; nil if unknown
	Wants uint64       // the number of permits; 1 for other objects
	Owner Owner        // the task that has to end the wait; its fields are nil if unknown
}

// An Owner is the task that has to end a wait, such as the task of the actor to which a request was sent. The task may change during
// the wait.
type Owner struct {
	Kind reflect.Type // the type of the object that the task has to produce

	// Task returns the goroutine of the task and its name, or 0 if there is no task. It must keep no object alive.
	Task func() (goroutine int64, name string)
}

// An Owned is a Source whose wait a certain task has to end.
type Owned interface{ OwnedBy() Owner }

// The ledger is divided into parts, so that tasks on different processors rarely contend for a lock.
type part struct {
	mu     sync.Mutex
	tasks  map[int64]Task
	waits  map[int64]Wait // the last wait of each goroutine; the key of a continuation is its negative address
	swept  int            // the number of waits after the last sweep
	lent   map[int64]int64
	held   held // keyed by address
	scopes scopes
	in     map[int64]uint64 // the number of the innermost scope of each goroutine
	_      [64]byte
}

var (
	parts [64]part
	seq   atomic.Uint64 // numbers waits and holds, and changes with every event
	users struct {
		mu  sync.Mutex
		n   int
		end func()
		at  time.Time // the time of the first Start
	}
	tell atomic.Pointer[func(goroutine int64) string]
)

func partOf(id int64) *part { return &parts[uint64(id)*splitmix.Golden>>58] }

// Start keeps the ledger until stop is called. A second call of stop has no effect. When the last user has called stop,
// all records are dropped. The argument is a function that describes the locks of a goroutine.
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
		users.end() // must precede the loop: a record is added under the lock of its part, and only while On returns true
		for i := range parts {
			p := &parts[i]
			p.mu.Lock()
			p.tasks, p.waits, p.lent, p.held, p.scopes, p.in, p.swept = nil, nil, nil, held{}, scopes{}, nil, 0
			p.mu.Unlock()
		}
	})
}

// Tell returns a text about the locks of a goroutine, or "" if no locks are recorded.
func Tell(goroutine int64) string {
	if f := tell.Load(); f != nil {
		return (*f)(goroutine)
	}
	return ""
}

// Since returns the time of the first Start, and reports whether the ledger is kept.
func Since() (at time.Time, on bool) {
	users.mu.Lock()
	defer users.mu.Unlock()
	return users.at, users.n > 0
}

// ID returns the id of the calling task's goroutine. The body of a suspend.Pull runs on another goroutine; for it, ID
// returns the id that Lend has recorded.
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

// Lend records that the goroutine with the first id runs for the task of the goroutine with the second id. If the second
// id is 0, Lend removes this record.
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

// Begin returns a function that calls f and records it as a task while it runs. The stack recorded for the task is the
// stack at the call of Begin.
func Begin(f func()) func() {
	t := Task{Stack: callers(0)}
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

// Waits records the wait w of the calling task. If the wait is recorded already, Waits changes nothing.
func Waits(w Wait) {
	w.Who = caller()
	w.Since, w.Stack = time.Now(), callers(0)
	w.record(w.Goroutine, func(old Wait) bool { return old.Waiter == w.Waiter && old.Began == w.Began })
}

// ThenWaits records the wait w of the continuation t, which has no goroutine. If t waits again with the same Waiter, the
// record keeps its time and stack.
func ThenWaits[T any](t *T, w Wait) {
	w.Since, w.Stack = time.Now(), callers(0)
	w.record(-int64(Addr(t)), func(old Wait) bool {
		if old.Waiter == w.Waiter {
			w.Since, w.Stack = old.Since, old.Stack
		}
		return false
	})
}

func (w *Wait) record(key int64, known func(old Wait) bool) {
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

// Forget drops the records of all waits that have ended.
func Forget() {
	for i := range parts {
		p := &parts[i]
		p.mu.Lock()
		p.sweep()
		p.mu.Unlock()
	}
}

// Addr returns the address in the pointer p.
func Addr(p any) uintptr { return reflect.ValueOf(p).Pointer() }

// Depth is the largest number of frames in a recorded stack. Outer frames are dropped.
const Depth = 48

// callers returns the stack of the exported function's caller. The parameter inner is the number of unexported functions between the
// exported function and callers.
func callers(inner int) []uintptr {
	var buf [Depth]uintptr
	return append([]uintptr(nil), buf[:runtime.Callers(3+inner, buf[:])]...)
}

// Read returns all recorded tasks and waits. It reads the parts one after another, so the records are not a consistent
// snapshot.
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

// Moves returns a number that changes whenever a task begins or ends, a wait begins, or a lock is taken or released.
func Moves() uint64 { return seq.Load() }
