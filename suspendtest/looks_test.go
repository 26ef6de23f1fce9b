package suspendtest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// Each of these mutants is found by one look of its check, and by no other.

// openTimed opens a Baton with all optional capabilities.
var openTimed = onBaton(func(b *Baton) suspend.Spawner { return &timed{Baton: b, after: forbidden} })

// endsNever opens a Baton on an executor that never ends.
func endsNever(testing.TB) (s suspend.Spawner, end, close func()) {
	b := &Baton{}
	return b, func() {}, b.Close
}

var endingMutants = []mutant{
	{"the scheduler relies on its executor for the last steps of its tasks", openEndable(nil), suspendtest.Options{}, []string{"Ending/a-task-that-is-cancelled-ends", "Ending/a-task-that-is-resumed-ends", "Ending/refused-or-run"}},
	{"Go drops f after the end", suspendtest.OpenEnding(func(testing.TB) (suspend.Spawner, func(), func()) {
		var ended atomic.Bool
		s := &patched{Baton: &Baton{}, run: func(s *patched, f func()) error {
			if ended.Load() {
				return nil
			}
			return s.Baton.Go(f)
		}}
		return s, func() { ended.Store(true) }, s.Close
	}), suspendtest.Options{}, []string{"Ending/refused-or-run"}},
}

// goes replaces one Go, or each for which wrong returns true.
func goes(wrong func(n int32) bool, f func(s *patched, f func()) error) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner {
		var n atomic.Int32
		return &patched{Baton: b, run: func(s *patched, g func()) error {
			if wrong(n.Add(1)) {
				return f(s, g)
			}
			return s.Baton.Go(g)
		}}
	})
}

// refuses runs f, and reports that it has refused it.
func refuses(s *patched, f func()) error {
	_ = s.Baton.Go(f)
	return errLie
}

func runsTwice(s *patched, f func()) error {
	_ = s.Baton.Go(f)
	return s.Baton.Go(f)
}

// nth returns a function that returns true in its n'th call.
func nth(n int32) func(int32) bool { return func(k int32) bool { return k == n } }

// timers replaces the n'th timer.
func timers(n int32, wrong func(d time.Duration, f func()) (stop func() bool)) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner {
		var k atomic.Int32
		return &timed{Baton: b, after: func(d time.Duration, f func()) func() bool {
			if n == 0 || k.Add(1) == n {
				return wrong(d, f)
			}
			return forbidden(d, f)
		}}
	})
}

// clocks replaces the clock.
func clocks(now func(n int32, begun time.Time) time.Time) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner {
		var n atomic.Int32
		begun := time.Now()
		return &timed{Baton: b, after: forbidden, now: func() time.Time { return now(n.Add(1), begun) }}
	})
}

func watches(after func(ctx context.Context, f func()) (stop func() bool)) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner { return &watching{b, after} })
}

func watchRightly(ctx context.Context, f func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { suspend.Bind(nil, f) })
}

// held is a Baton with a correct Hold, whose results the mutant changes.
type held struct {
	*Baton
	change func(release func(), err error) (func(), error)
}

func (h held) Hold() (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return h.change(nil, suspend.ErrClosed)
	}
	h.tasks.Add(1)
	return h.change(h.tasks.Done, nil)
}

func holds(change func(release func(), err error) (func(), error)) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner { return held{b, change} })
}

// blocker opens a Baton whose n'th Block fails.
func blocker(n int32) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner {
		var k atomic.Int32
		return &patched{Baton: b, task: func(s *patched, t suspend.Task) suspend.Task {
			return &patch{Task: t, s: s, spawner: blocking{s, func() bool { return k.Add(1) == n }}}
		}}
	})
}

type blocking struct {
	suspend.Spawner
	refuses func() bool
}

func (b blocking) Block(f func()) error {
	if b.refuses() {
		return errLie
	}
	go f()
	return nil
}

// registers wraps the contexts of all calls from the given one on.
func registers(from int32, wrap func(ctx afterFuncer) context.Context) func() suspendtest.SuspendFunc {
	return func() suspendtest.SuspendFunc {
		var calls atomic.Int32
		var mu sync.Mutex
		wrapped := map[context.Context]context.Context{}
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			if own, ok := ctx.(afterFuncer); ok && calls.Add(1) >= from {
				mu.Lock()
				if wrapped[ctx] == nil {
					wrapped[ctx] = wrap(own)
				}
				ctx = wrapped[ctx]
				mu.Unlock()
			}
			return suspendtest.Direct(ctx, block)
		}
	}
}

// retainsContexts keeps the last n contexts that end alive.
func retainsContexts(n int) func() suspendtest.SuspendFunc {
	return func() suspendtest.SuspendFunc {
		var mu sync.Mutex
		last := make([]context.Context, n)
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			if ctx.Done() != nil {
				mu.Lock()
				last = append(last[1:], ctx)
				mu.Unlock()
			}
			return suspendtest.Direct(ctx, block)
		}
	}
}

type afterFuncer interface {
	context.Context
	AfterFunc(f func()) (stop func() bool)
}

// A stopping context has an AfterFunc that a test chooses.
type stopping struct {
	context.Context
	after func(f func()) (stop func() bool)
}

func (s *stopping) AfterFunc(f func()) func() bool { return s.after(f) }

// panicking opens a scheduler whose tasks may panic.
func panicking(change func(s suspend.Spawner) suspend.Spawner, value func(v any) any) suspendtest.Options {
	return suspendtest.Options{Panics: func(_ testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
		s, end := openFifo(fifo.Options{OnPanic: func(v any, stack []byte) { onPanic(value(v), stack) }})
		return change(s), end
	}}
}

type spawnerFunc func(f func()) error

func (s spawnerFunc) Go(f func()) error { return s(f) }

func init() {
	const panicsCheck, timersCheck, stopCheck, clockCheck = "Go/panic-is-reported-and-ends-one-task-only", "Timers/calls-once-and-not-early",
		"Timers/stop-prevents-the-call-or-says-no", "Clock/does-not-go-back"
	const watcherCheck, holderCheck, stormCheck = "Watcher/tells-the-end-of-a-context-once", "Holder/close-waits-for-the-release", "Queue/cancel-storm-conserves"
	same := func(s suspend.Spawner) suspend.Spawner { return s }
	storm := func(change func(ops *suspendtest.StoreOps)) suspendtest.Options {
		ops := suspendtest.RightStore
		change(&ops)
		return suspendtest.Storing(ops)
	}
	schedulerMutants = append(schedulerMutants, []mutant{
		{"Go refuses a task, and runs it", goes(nth(2), refuses), suspendtest.Options{}, []string{"Park/each-task-has-its-own"}},
		{"Go runs a task twice", goes(nth(2), runsTwice), suspendtest.Options{}, []string{"Park/each-task-has-its-own"}},
		{"Go refuses a function, and runs it", goes(nth(700), refuses), suspendtest.Options{}, []string{"Go/every-task-runs-once"}},
		{"Go runs a function twice", goes(nth(700), runsTwice), suspendtest.Options{}, []string{"Go/every-task-runs-once"}},
		{"Go in a task refuses, and runs it", runs(func(s *patched, f func()) error {
			inside := suspend.Current() != nil
			err := s.Baton.Go(func() { suspend.Bind(&patch{Task: suspend.Self(), s: s}, f) })
			if inside {
				err = errLie
			}
			return err
		}), suspendtest.Options{}, []string{"Here/is-the-scheduler-of-the-task"}},
		{"Go refuses a task that panics, and runs it", suspendtest.Open(nil), panicking(func(s suspend.Spawner) suspend.Spawner {
			var n atomic.Int32
			return spawnerFunc(func(f func()) error {
				if err := s.Go(f); err != nil || n.Add(1) != 5 { // the fifth, after a waiter and three others
					return err
				}
				return errLie
			})
		}, func(v any) any { return v }), []string{panicsCheck}},
		{"another panic is reported", suspendtest.Open(nil), panicking(same, func(any) any { return errLie }), []string{panicsCheck}},

		{"Go in a callback refuses, and runs it", onBaton(func(b *Baton) suspend.Spawner {
			return &refusingInCallbacks{timed{Baton: b, after: forbidden}}
		}), suspendtest.Options{}, []string{"Timers/a-callback-must-not-suspend"}},
		{"a stop that is true again and again", timers(0, func(d time.Duration, f func()) func() bool {
			stop := forbidden(d, f)
			stopped := false
			return func() bool { stopped = stop() || stopped; return stopped }
		}), suspendtest.Options{}, []string{stopCheck}},
		{"a stop that is true after the call", timers(42, func(d time.Duration, f func()) func() bool {
			stop := forbidden(d, f)
			return func() bool { stop(); return true }
		}), suspendtest.Options{}, []string{stopCheck}},
		{"a stop that returns true although it is too late", timers(0, func(d time.Duration, f func()) func() bool {
			stop := forbidden(d, f)
			return func() bool { stop(); time.Sleep(time.Millisecond); return true }
		}), suspendtest.Options{}, []string{"Timers/under-locks"}},
		{"a clock that goes back once", clocks(func(n int32, _ time.Time) time.Time {
			if n == 500 {
				return time.Now().Add(-time.Second)
			}
			return time.Now()
		}), suspendtest.Options{}, []string{clockCheck}},
		{"a clock that stops", clocks(func(_ int32, begun time.Time) time.Time { return begun }), suspendtest.Options{}, []string{clockCheck}},
		{"a clock of another time", clocks(func(int32, time.Time) time.Time { return time.Now().Add(time.Hour) }), suspendtest.Options{}, []string{clockCheck}},
		{"Sleep is too short", tasks(func(t *patch) {
			t.spawner = &timed{Baton: t.s.Baton, after: func(d time.Duration, f func()) func() bool { return forbidden(d/4, f) }}
		}), suspendtest.Options{}, []string{"Sleep/suspends-for-as-long-or-until-cancelled"}},

		{"a Block that refuses the first", blocker(1), suspendtest.Options{}, []string{"Blocking/holds-nobody-up"}},
		{"a Block that refuses the second", blocker(2), suspendtest.Options{}, []string{"Blocking/holds-nobody-up"}},

		{"a Watcher whose stop returns false", watches(func(ctx context.Context, f func()) func() bool {
			stop := watchRightly(ctx, f)
			return func() bool { stop(); return false }
		}), suspendtest.Options{}, []string{watcherCheck}},
		{"a Watcher whose stop returns true again and again", watches(func(ctx context.Context, f func()) func() bool {
			stop := watchRightly(ctx, f)
			return func() bool { stop(); return true }
		}), suspendtest.Options{}, []string{watcherCheck}},
		{"a Watcher that calls twice", watches(func(ctx context.Context, f func()) func() bool {
			return context.AfterFunc(ctx, func() { suspend.Bind(nil, func() { f(); f() }) })
		}), suspendtest.Options{}, []string{watcherCheck}},
		{"a Watcher that calls early", onBaton(func(b *Baton) suspend.Spawner {
			var n atomic.Int32
			return &watching{b, func(ctx context.Context, f func()) func() bool {
				if n.Add(1) == 1 {
					suspend.Bind(nil, f)
					return never
				}
				return watchRightly(ctx, f)
			}}
		}), suspendtest.Options{}, []string{watcherCheck}},

		{"a Hold that is refused, and holds", holds(func(release func(), err error) (func(), error) {
			if err == nil {
				err = errLie
			}
			return release, err
		}), suspendtest.Options{}, []string{holderCheck}},
		{"a Hold that does not last", holds(func(release func(), err error) (func(), error) {
			if err != nil {
				return nil, err
			}
			release()
			return func() {}, nil
		}), suspendtest.Options{}, []string{holderCheck}},
		{"a Hold after the close", holds(func(release func(), _ error) (func(), error) { return release, nil }), suspendtest.Options{}, []string{holderCheck}},

		{"a value is put twice", suspendtest.Open(openBaton), storm(func(ops *suspendtest.StoreOps) {
			var n atomic.Int32
			ops.Put = func(s *suspendtest.Store, v *box) {
				suspendtest.RightStore.Put(s, v)
				if n.Add(1)%600 == 0 { // the last one of a storm
					suspendtest.RightStore.Put(s, v)
				}
			}
		}), []string{stormCheck}},
		{"a waiter is left in the queue", suspendtest.Open(openBaton), storm(func(ops *suspendtest.StoreOps) {
			var n atomic.Int32
			ops.Put = func(s *suspendtest.Store, v *box) {
				suspendtest.RightStore.Put(s, v)
				if n.Add(1)%600 == 0 { // the last one of a storm
					suspendtest.Leave(s)
				}
			}
		}), []string{stormCheck}},
	}...)

	const registrations = "09/registrations-are-few-and-end-with-the-task"
	suspendMutants = append(suspendMutants, []suspendMutant{
		{"the last registration is left", registers(58, func(ctx afterFuncer) context.Context {
			return &stopping{ctx, func(f func()) func() bool { ctx.AfterFunc(f); return func() bool { return true } }}
		}), []string{registrations}},
		{"two registrations for one", registers(0, func(ctx afterFuncer) context.Context {
			return &stopping{ctx, func(f func()) func() bool { ctx.AfterFunc(func() {})(); return ctx.AfterFunc(f) }}
		}), []string{registrations}},
		{"a value is retained", func() suspendtest.SuspendFunc {
			var last atomic.Pointer[box]
			return blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
				return block(func(v *box, err error) bool { last.Store(v); return r(v, err) })
			})()
		}, []string{"10/nothing-is-retained-of-what-was-delivered-or-cancelled", "10/nothing-is-retained-of-a-task-that-has-ended"}},
		{"a block is retained", func() suspendtest.SuspendFunc {
			var last atomic.Pointer[func(suspendtest.Resume) (*box, bool)]
			return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
				if ctx != context.Background() {
					last.Store(&block)
				}
				return suspendtest.Direct(ctx, block)
			}
		}, []string{"10/nothing-is-retained-of-what-was-delivered-or-cancelled", "10/nothing-is-retained-of-a-task-that-has-ended"}},
		{"a context is retained", retainsContexts(1), []string{"10/nothing-is-retained-of-a-task-that-has-ended"}},
		{"two contexts are retained", retainsContexts(2), []string{"10/nothing-is-retained-of-what-was-delivered-or-cancelled"}},
		{"a registration stays as long as the task", func() suspendtest.SuspendFunc {
			var first func() bool
			n := 0
			return registers(0, func(ctx afterFuncer) context.Context {
				return &stopping{ctx, func(f func()) func() bool {
					stop := ctx.AfterFunc(f)
					n++
					mine := n
					return func() bool {
						switch {
						case mine == 1:
							first = stop
							return true
						case mine == 20:
							first()
						}
						return stop()
					}
				}}
			})()
		}, []string{registrations}},
	}...)
}

// A refusingInCallbacks refuses tasks that callbacks start, but runs them.
type refusingInCallbacks struct{ timed }

func (s *refusingInCallbacks) Go(f func()) error {
	err := s.Baton.Go(f)
	if suspend.Forbidden() {
		return errLie
	}
	return err
}
