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
