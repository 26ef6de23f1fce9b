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

// A task belongs to the program, or helps its tasks: it cancels a context, or calls a function.
type task struct {
	w       *World
	id      int
	name    string
	f       func()
	ctx     *taskContext // the context of the task
	cancels *taskContext // the context that a canceller cancels; it need not run
	helps   bool         // it does not belong to the program, and does not suspend
	exits   bool         // it may end by runtime.Goexit
	begun   bool
	ended   bool

	parked   bool // it is in Park
	permit   bool
	spurious int             // Parks that have returned for no reason
	lock     locker          // the lock that it waits for, if not nil
	after    <-chan struct{} // the channel that it waits for, if not nil
	holds    []locker
	starved  map[*task]int // Yields since another, which could run at each of them, has made a step
	worker   *worker
	timer    *task   // the timer of its Sleep, which does not wait yet
	early    bool    // it is such a timer
	drawn    int     // random numbers
	priority float64 // its priority in a random run

	reducible
}

type locker interface {
	TryLock() bool
	Unlock()
}

// add adds t to the tasks of the run, as the next task that parent, or the program, has started.
func (w *World) add(parent, t *task) {
	w.tasks = append(w.tasks, t)
	w.e.search.add(parent, t)
}

// enabled reports whether t can make a step.
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

// An accessKind says with which other accesses an access conflicts.
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

// access is a place where t, whose turn it is, can be made to wait, before an access to something that other tasks look at.
func access[T any](t *task, kind accessKind, at *T) { t.access(kind, unsafe.Pointer(at)) }

func (t *task) access(kind accessKind, at unsafe.Pointer) {
	w := t.w
	if w.dead {
		if w.spent++; w.spent > 1000 {
			panic(unwound{})
		}
		return
	}
	t.pending = footprint{at, kind}
	w.handOver(t, w.pick(t))
}

// access is for callers that may be no task.
func (w *World) access(kind accessKind, at *[]event) {
	if t := w.running(); t != nil && w.e.Reduced {
		access(t, kind, at)
	}
}

// handOver ends the turn of t, unless it is next.
func (w *World) handOver(t, next *task) {
	w.e.step()
	if next == t {
		return
	}
	w.chosen = next
	t.worker.yield(struct{}{})
	if w.dead {
		panic(unwound{})
	}
}

// Park implements suspend.Task.
func (t *task) Park() {
	w := t.w
	if w.dead {
		panic(unwound{})
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

// Yield lets other tasks make a step. In a reduced search it has no effect.
func (t *task) Yield() {
	w := t.w
	if w.dead {
		panic(unwound{})
	}
	t.eventHere("yields")
	if w.e.Reduced {
		return
	}
	t.gaveWay()
	w.handOver(t, w.pick(nil))
}

// gaveWay counts a Yield, or a Sleep.
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

// Preempt is where an operation begins that may suspend, see suspend.Preemptible. The task hands over its turn here, but never yields.
func (t *task) Preempt() (yield bool) {
	t.PreemptPoint()
	return false
}

// PreemptPoint is where any other operation of a primitive begins, see suspend.Point.
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

// A watcher notes the looks and the releases of an explorer's tasks, see preempt.Watcher.
type watcher struct{ *explorer }

// Runs implements preempt.Watcher.
func (e watcher) Runs() bool { return e.turn.Load() == gid.Get() }

// Points implements preempt.Watcher.
func (e watcher) Points() bool { return e.Config.Points }

// Starts starts a task of the run, which may exit as a goroutine may.
func (e watcher) Starts(f func()) { e.world.starts(f).exits = true }

// Looks notes that the program looks at objects that tasks hold.
func (e watcher) Looks(k preempt.Kinds) { e.looked |= k }

// Releases is a point if the program looks at objects of these kinds.
func (e watcher) Releases(k preempt.Kinds) {
	if t := e.world.current; e.looks&k != 0 && t != nil && !suspend.Forbidden() {
		t.PreemptPoint()
	}
}

// Glances is a look and a point if the program itself looks. A look of an operation is no point: it comes right after a point, or its
// caller holds a lock.
func (e watcher) Glances(k preempt.Kinds) {
	if byProgram(6) { // the caller of Err
		e.looked |= k
		suspend.Point()
	}
}

// byProgram reports whether the function that runtime.Callers finds after skip others is not Braid's. For suspend.Err and context.Cause,
// their caller counts.
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

// Spawner starts tasks of the same run.
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

// Block implements suspend.Blocker: f, which does not suspend, runs at any time.
func (s spawner) Block(f func()) error {
	s.w.help("blocking", f)
	return nil
}

// Uint64 implements suspend.Rand, so that a task draws the same numbers in each run, whatever other tasks do.
func (s spawner) Uint64() uint64 {
	t := s.w.running()
	if t == nil {
		return 0
	}
	t.drawn++
	s.w.e.cut.Draws = true
	return rand.NewPCG(uint64(t.id), uint64(t.drawn)).Uint64()
}

// help calls f in a separate task, which must not suspend.
func (w *World) help(name string, f func()) *task {
	t := &task{w: w, name: name, helps: true, f: f}
	w.add(w.running(), t)
	return t
}

// Sleeps is called by suspend.Sleep. A Sleep that cannot be cancelled is like a Yield: the task wakes up at any time.
func (s spawner) Sleeps(ctx context.Context, d time.Duration) bool {
	t := s.w.running()
	if t == nil || !s.w.e.Asleep || s.w.e.Fine || suspend.Forbidden() { // a Suspend panics then
		return false
	}
	t.gaveWay()
	if c, ok := ctx.(*taskContext); ctx.Done() != nil && !(ok && c.never()) {
		return false
	}
	t.eventHere("sleeps")
	t.priority = 0 // the next priority is random, as if another task began
	due := s.w.now.Add(d)
	s.w.handOver(t, s.w.pick(nil))
	s.w.passes(due)
	return true
}

// epoch is where the clock of each run begins, so that all runs see the same times.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Now implements suspend.Clock. A look of the program is a point. A look of an operation comes right after such a point, or its caller
// holds a lock. A search for single accesses follows the clock if a task looks at it.
func (s spawner) Now() time.Time {
	w := s.w
	if t := w.running(); t != nil && !w.dead {
		w.e.clock(t, read)
		if !w.e.Fine && byProgram(5) { // the caller of suspend.Now
			suspend.Point()
		}
	}
	return w.now
}

// passes moves the clock on to due, where a timer fires. A timer that fires late leaves the clock as it is.
func (w *World) passes(due time.Time) {
	if t := w.running(); t != nil {
		w.e.clock(t, write)
	}
	if due.After(w.now) {
		w.now = due
	}
}

// clock is an access to the clock, if the program looks at it.
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

// AfterFunc calls f at any time, and moves the clock on to then.
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
		} else if byProgram(3) { // the caller of stop
			suspend.Point()
		}
		before := *over
		*over = true
		return !before
	}
}

// AfterDone calls f at any time after a task of the program has ended ctx.
func (s spawner) AfterDone(ctx context.Context, f func()) (stop func() bool) {
	call := func() { suspend.Bind(nil, f) }
	if s.w.e.Fine { // a reduction does not see what ends ctx
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

// within reports whether a function has called the caller.
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

// waits lets the timer of t's Sleep fire, which comes after the present step then.
func (t *task) waits() {
	if x := t.timer; x != nil {
		t.timer, x.early = nil, false
		if r, ok := t.w.e.search.(*reduction); ok {
			r.born |= one(x.id)
		}
	}
}

// eligible reports whether t can make a step, and has not yielded too often while another task could run all the time. Otherwise a loop
// that yields would have endless runs.
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
