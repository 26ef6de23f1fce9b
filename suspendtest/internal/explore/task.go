package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A task belongs to the program or is a helper, which cancels a context or calls a function for the program's tasks.
type task struct {
	w       *World
	id      int
	name    string
	f       func()
	ctx     *taskContext
	cancels *taskContext // the context that the task cancels, if it is a canceller; a canceller need not run
	helps   bool         // the task is a helper, which does not suspend
	exits   bool         // the task may call runtime.Goexit
	begun   bool
	ended   bool

	parked   bool
	permit   bool
	spurious int             // the number of spurious returns from Park
	lock     locker          // the lock that the task waits for, or nil
	after    <-chan struct{} // the channel that the task waits for, or nil
	holds    []locker
	starved  map[*task]int // maps each other task that stayed runnable to the Yields since its last step
	worker   *worker
	timer    *task // the timer of the task's Sleep, until the Sleep begins to wait
	early    bool  // the task is the timer of a Sleep that has not begun to wait
	drawn    int   // how many random numbers the task has drawn
	loop     loop
	priority float64 // the task's priority in a random run; 0 before it is drawn

	reducible
}

type locker interface {
	TryLock() bool
	Unlock()
}

// add adds t to the tasks of the run. parent is the task that has started t, or nil for the program.
func (w *World) add(parent, t *task) {
	w.tasks = append(w.tasks, t)
	w.e.search.add(parent, t)
}

// enabled reports whether t can take a step.
func (t *task) enabled() bool {
	switch {
	case t.ended, t.parked, t.early, t.cancels != nil && !t.begun:
		return false
	case t.lock != nil:
		return t.lockIsFree()
	case t.after != nil:
		select {
		case <-t.after:
		default:
			return false
		}
	}
	return true
}

func (t *task) lockIsFree() bool {
	if !t.lock.TryLock() {
		return false
	}
	t.lock.Unlock()
	return true
}

// An accessKind determines which accesses conflict.
type accessKind uint8

const (
	nothing accessKind = iota
	read
	write
	parks
	locks
	called
	returned
)

// access is called before t, whose turn it is, accesses something that tasks share. The call may give t's turn to another task.
func access[T any](t *task, kind accessKind, at *T) { t.access(kind, unsafe.Pointer(at)) }

func (t *task) access(kind accessKind, at unsafe.Pointer) {
	w := t.w
	if w.dead {
		if w.spent++; w.spent > 1000 {
			runtime.Goexit()
		}
		return
	}
	t.pending = footprint{at, kind}
	t.goesRound()
	w.handOver(t, w.pick(t))
	t.quiet = false
}

// access performs an access by the calling task. It has no effect if the search is not reduced, or if the caller is not a task.
func (w *World) access(kind accessKind, at *[]event) {
	if t := w.running(); t != nil && w.e.Reduced {
		access(t, kind, at)
	}
}

// handOver gives the turn of t to the task next, and returns when t has another turn. If next is t, handOver returns at once.
func (w *World) handOver(t, next *task) {
	w.e.countStep()
	if next == t {
		return
	}
	w.chosen = next
	t.worker.yield(struct{}{})
	if w.dead {
		runtime.Goexit()
	}
}

// Park implements suspend.Task.
func (t *task) Park() {
	w := t.w
	if w.dead {
		runtime.Goexit()
	}
	t.waits()
	if w.e.Reduced {
		t.parkReduced()
		return
	}
	if t.permit {
		t.permit = false
		return
	}
	if t.spurious < w.e.Spurious && w.e.choose(2) == 1 {
		t.spurious++
		w.handOver(t, w.pick(t))
		return
	}
	t.parked = true
	t.eventHere("suspended")
	w.handOver(t, w.pick(nil))
}

// Unpark implements suspend.Task.
func (t *task) Unpark() {
	w := t.w
	u := w.running()
	if u != nil && w.e.Fine {
		access(u, write, &t.permit)
	}
	if w.e.Reduced {
		t.unparkReduced(u)
		return
	}
	if !t.parked {
		t.permit = true
		return
	}
	t.parked = false
	w.wakes(t)
}

func (w *World) wakes(t *task) {
	if c := w.current; c == nil || c.cancels == nil {
		w.event(c, "wakes %s", t.name)
	}
}

// Yield lets other tasks take a step. In a reduced search it is a step that commutes with all others.
func (t *task) Yield() {
	w := t.w
	if w.dead {
		runtime.Goexit()
	}
	t.eventHere("yields")
	if w.e.Reduced {
		t.access(nothing, nil)
		return
	}
	t.gaveWay()
	w.handOver(t, w.pick(nil))
}

// gaveWay counts a Yield or a Sleep of t in t.starved.
func (t *task) gaveWay() {
	for _, u := range t.w.tasks {
		if u != t && u.enabled() {
			if t.starved == nil {
				t.starved = map[*task]int{}
			}
			t.starved[u]++
		} else {
			delete(t.starved, u)
		}
	}
}

// Preempt is called where an operation that may suspend begins; see suspend.Preemptible. It always returns false, because it switches
// tasks itself.
func (t *task) Preempt() (yield bool) {
	t.PreemptPoint()
	return false
}

// PreemptPoint is called where any other operation of a primitive begins; see suspend.Point.
func (t *task) PreemptPoint() {
	w := t.w
	if !w.e.Points || w.dead || w.current != t {
		return
	}
	next := w.pick(t)
	if next != t && w.failure == "" {
		t.eventHere("lets others run")
	}
	w.handOver(t, next)
}

// A watcher implements preempt.Watcher for the tasks of an explorer.
type watcher struct{ *explorer }

// Runs implements preempt.Watcher.
func (e watcher) Runs() bool { return e.turn.Load() == gid.Get() }

// Points implements preempt.Watcher.
func (e watcher) Points() bool { return e.Config.Points }

// Starts starts f as a task of the run. Like a goroutine, f may call runtime.Goexit.
func (e watcher) Starts(f func()) { e.world.starts(f).exits = true }

// Looks records that the program looks at held objects of the kinds k.
func (e watcher) Looks(k preempt.Kinds) { e.looked |= k }

// A call of Releases is a scheduling point if the program looks at held objects of the kinds k.
func (e watcher) Releases(k preempt.Kinds) {
	if t := e.world.current; e.looks&k != 0 && t != nil && !suspend.Forbidden() {
		t.PreemptPoint()
	}
}

// If the program itself looks, Glances records the look, and the call is a scheduling point. A look by an operation needs no point, because
// it directly follows a point or its caller holds a lock.
func (e watcher) Glances(k preempt.Kinds) {
	if byProgram(6) { // frame 6 is the caller of Err
		e.looked |= k
		suspend.Point()
	}
}

// byProgram reports whether the first function that runtime.Callers(skip) returns belongs to the program. If this function is suspend.Err
// or context.Cause, byProgram examines its caller instead.
func byProgram(skip int) bool {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip, pcs[:])])
	f, _ := frames.Next()
	if f.Function == module+"suspend.Err" || f.Function == "context.Cause" {
		f, _ = frames.Next()
	}
	_, ours := inside(f.Function, f.File)
	return !ours && !strings.HasPrefix(f.Function, "context.")
}

// Spawner returns a Spawner that starts tasks in the same run.
func (t *task) Spawner() suspend.Spawner { return spawner{t.w} }

type spawner struct{ w *World }

// Go implements suspend.Spawner.
func (s spawner) Go(f func()) error {
	s.w.starts(f)
	return nil
}

func (w *World) starts(f func()) *task {
	t := &task{w: w, f: f}
	w.add(w.running(), t)
	t.name = fmt.Sprint("task", t.id)
	return t
}

// Execute implements suspend.Executor.
func (s spawner) Execute(f func()) error {
	s.w.help("callback", func() { suspend.Bind(nil, f) })
	return nil
}

// Block implements sched.Blocker. f runs at any time in a helper task, and must not suspend.
func (s spawner) Block(f func()) error {
	s.w.help("blocking", f)
	return nil
}

// Uint64 implements sched.Rand. The numbers that a task draws do not depend on other tasks.
func (s spawner) Uint64() uint64 {
	t := s.w.running()
	if t == nil {
		return 0
	}
	t.drawn++
	s.w.e.cut.Draws = true
	return rand.NewPCG(uint64(t.id), uint64(t.drawn)).Uint64()
}

// help calls f in a helper task. f must not suspend.
func (w *World) help(name string, f func()) *task {
	t := &task{w: w, name: name, helps: true, f: f}
	w.add(w.running(), t)
	return t
}

// Sleeps is called by suspend.Sleep. With Asleep, but not Fine, a Sleep that cannot be cancelled acts like a Yield. Otherwise Sleeps
// returns false, and suspend.Sleep uses a timer.
func (s spawner) Sleeps(ctx context.Context, d time.Duration) bool {
	t := s.w.running()
	if t == nil || !s.w.e.Asleep || s.w.e.Fine || suspend.Forbidden() { // suspend.Sleep itself panics if suspending is forbidden
		return false
	}
	t.gaveWay()
	if c, ok := ctx.(*taskContext); ctx.Done() != nil && !(ok && c.never()) {
		return false
	}
	t.eventHere("sleeps")
	t.priority = 0 // pct.pick then draws a new priority, as for a new task
	due := s.w.now.Add(d)
	s.w.handOver(t, s.w.pick(nil))
	s.w.passes(due)
	return true
}

// epoch is the time at which the clock of each run starts, so that all runs see the same times.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Now implements sched.Clock. A call by the program is a scheduling point. A call by an operation needs no point, because it directly
// follows a point or its caller holds a lock. With Fine, a call is an access to the clock.
func (s spawner) Now() time.Time {
	w := s.w
	if t := w.running(); t != nil && !w.dead {
		w.e.clock(t, read)
		if !w.e.Fine && byProgram(5) { // frame 5 is the caller of suspend.Now
			suspend.Point()
		}
	}
	return w.now
}

// passes is called when a timer fires. It advances the clock to the time due, unless the clock already shows a later time.
func (w *World) passes(due time.Time) {
	if t := w.running(); t != nil {
		w.e.clock(t, write)
	}
	if due.After(w.now) {
		w.now = due
	}
}

// clock performs an access to the run's clock. It has no effect without Fine, or if the program never reads the clock.
func (e *explorer) clock(t *task, kind accessKind) {
	if !e.Fine {
		return
	}
	if kind == read {
		e.looked |= preempt.Clocks
	}
	if e.looks&preempt.Clocks != 0 {
		access(t, kind, &t.w.now)
	}
}

// AfterFunc implements sched.Timers. f may be called at any time. The clock then shows the due time or a later time.
func (s spawner) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	over, due := new(bool), s.w.now.Add(d)
	t := s.w.help("timer", func() {
		if !*over {
			*over = true
			s.w.passes(due)
			f()
		}
	})
	t.pending = footprint{unsafe.Pointer(over), write}
	if u := s.w.running(); u != nil && s.w.e.Asleep && within(module+"suspend.Sleep") {
		u.timer, t.early = t, true
	}
	return func() bool {
		if u := s.w.running(); u != nil && s.w.e.Fine {
			access(u, write, over)
			u.waits()
		} else if byProgram(3) { // frame 3 is the caller of the function stop
			suspend.Point()
		}
		before := *over
		*over = true
		return !before
	}
}

// AfterDone implements sched.Watcher. f is called at any time after ctx has ended.
func (s spawner) AfterDone(ctx context.Context, f func()) (stop func() bool) {
	call := func() { suspend.Bind(nil, f) }
	if s.w.e.Fine { // a reduction does not see which step ends ctx
		return context.AfterFunc(ctx, call)
	}
	s.w.e.cut.Contexts = true
	t := s.w.help("after", call)
	t.after = ctx.Done()
	return func() bool {
		waits := !t.begun
		t.begun, t.ended = true, t.ended || waits
		return waits
	}
}

// within reports whether the named function is on the caller's stack.
func within(function string) bool {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function == function || !more {
			return more
		}
	}
}

// waits enables the timer of t's Sleep, if there is one. The timer can then fire after the current step.
func (t *task) waits() {
	if x := t.timer; x != nil {
		t.timer, x.early = nil, false
		if r, ok := t.w.e.search.(*reduction); ok {
			r.born |= one(x.id)
		}
	}
}

// eligible reports whether t can take a step, and has not yielded too often while another task was runnable. Otherwise a loop that yields
// would have endless runs.
func (t *task) eligible() bool {
	if !t.enabled() {
		return false
	}
	most := t.w.e.Yields
	if t.w.e.Fine {
		most = 0
	}
	for u, n := range t.starved {
		if n > most && u.enabled() {
			return false
		}
	}
	return true
}
