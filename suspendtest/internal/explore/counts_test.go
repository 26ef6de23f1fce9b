//go:build explore

package explore_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/testrig/mutation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

type steps func()

func (f steps) then(g steps) steps { return func() { f(); g() } }

// The number of runs was computed by hand: it is the number of classes of orders that differ in dependent steps. If the search
// misses a dependence, or assumes a wrong one, the number differs.
func TestReducedCounts(t *testing.T) {
	type tasks = []steps
	var x, y atomicx.Int32
	var mu, other atomicx.Mutex
	var n int
	store := func(v int32) steps { return func() { x.Store(v) } }
	storeY := func(v int32) steps { return func() { y.Store(v) } }
	swap := func(v int32) steps { return func() { x.CompareAndSwap(0, v) } }
	load, loadY := steps(func() { x.Load() }), steps(func() { y.Load() })
	add := func() { x.Store(x.Load() + 1) }
	locked := func(mu *atomicx.Mutex) steps { return func() { mu.Lock(); n++; mu.Unlock() } }
	within := func() { mu.Lock(); locked(&other)(); mu.Unlock() }
	locks := func(f steps) steps { return func() { mu.Lock(); f(); mu.Unlock() } }
	start := func(f steps) { _ = suspend.Here().Go(f) }
	sleeps := steps(func() { _ = suspend.Sleep(bg, 1) }).then(locked(&mu)).then(func() { _ = suspend.Sleep(bg, 1) }).then(locked(&mu))
	sleep, look := steps(func() { _ = suspend.Sleep(bg, 1) }), steps(func() { _ = suspend.Now() })
	for _, p := range []struct {
		name  string
		tasks tasks
		runs  int
	}{
		{"two variables", tasks{store(1), func() { y.Store(1) }, func() { y.Load() }}, 2},
		{"three stores", tasks{store(1), store(2), store(3)}, 6},                                   // 3!
		{"a store and three loads", tasks{store(1), load, load, load}, 8},                          // each load comes before or after the store
		{"a store of what is there", tasks{store(0), load, load}, 1},                               // the store changes nothing, so it counts as a load
		{"stores and loads", tasks{store(1).then(loadY), storeY(1).then(load)}, 3},                 // 2·2, but not both loads first
		{"stores in the same order", tasks{store(1).then(storeY(2)), store(3).then(storeY(4))}, 4}, // 2·2
		{"stores crosswise", tasks{store(1).then(storeY(2)), storeY(3).then(store(4))}, 3},         // 2·2, but not both last stores first
		{"additions", tasks{add, add}, 4},                                                          // 2 if one follows the other; 2 orders of the stores after both loads
		{"a compare-and-swap that wins", tasks{swap(1), swap(2), swap(3)}, 3},                      // the failed ones count as loads
		{"three sections", tasks{locked(&mu), locked(&mu), locked(&mu)}, 6},
		{"two sections of two locks", tasks{locked(&mu).then(locked(&other)), locked(&mu).then(locked(&other))}, 4},
		{"sections of one variable", tasks{locks(store(1)), locks(store(2))}, 2}, // the stores do not race, because of the lock
		{"a task that starts two", tasks{func() { store(1)(); start(store(2)); start(store(3)) }}, 2},
		{"sections within sections", tasks{within, within}, 2},
		{"two tasks that sleep twice", tasks{sleeps, sleeps}, 6},                     // 4!/(2!2!)
		{"three tasks that sleep twice", tasks{sleeps, sleeps, sleeps}, 90},          // 6!/(2!2!2!)
		{"a timer that moves the clock, and two looks", tasks{sleep, look, look}, 4}, // each look comes before or after the sleep
		{"two timers that move the clock, and a look", tasks{sleep, sleep, look}, 6}, // 3!
		{"two timers, and no look", tasks{sleep, sleep}, 1},
	} {
		c := reduced
		c.Asleep = true
		classes := map[uint64]bool{}
		r := explore.Run(c, func(w *explore.World) {
			x, y, mu, other = atomicx.Int32{}, atomicx.Int32{}, atomicx.Mutex{}, atomicx.Mutex{}
			for _, f := range p.tasks {
				w.Go(p.name, func(context.Context) { f() })
			}
			w.Check(func() error {
				if !w.BeginsAnew() {
					classes[w.Class()] = true
				}
				return nil
			})
		})
		if r.Failure != nil || !r.Exhausted || r.Executions != p.runs || len(classes) != p.runs {
			t.Fatalf("%s: %d runs, %d redundant, %d classes, want %d; %v", p.name, r.Executions, r.Blocked, len(classes), p.runs, r.Failure)
		}
	}
}

// It makes no difference whether the timer of a Sleep fires before or after its task waits.
func TestTimersOfSleeps(t *testing.T) {
	for _, cancellations := range []int{0, 1} {
		c := reduced
		c.Cancellations = cancellations
		program := func(w *explore.World, out func(string, ...any)) {
			var mu atomicx.Mutex
			order := ""
			add := func(s string) { mu.Lock(); order += s; mu.Unlock() }
			w.Go("a", func(ctx context.Context) {
				if suspend.Sleep(ctx, 1) == nil {
					add("a")
				} else {
					add("!")
				}
			})
			w.Go("b", func(context.Context) { add("b"); _ = suspend.Sleep(bg, 2); add("b") })
			w.Check(func() error { out("%s", order); return nil })
		}
		want, all := outcomes(c, table{}, program)
		c.Asleep = true
		got, some := outcomes(c, table{}, program)
		if !all.Exhausted || !some.Exhausted || len(want)-count(want) != len(got)-count(got) || some.Executions >= all.Executions {
			t.Errorf("%d cancellations: %v in %d runs, want %v, in %d", cancellations, got, some.Executions, want, all.Executions)
		}
		t.Logf("%d cancellations: %d runs in place of %d", cancellations, some.Executions, all.Executions)
		for out := range got {
			if len(out) < 6 && !want[out] {
				t.Errorf("%s: not possible", out)
			}
		}
	}
}

// A mistake in the searches changes the number of runs, which is known.
func TestEngineMutants(t *testing.T) {
	if t.Setenv("GOFLAGS", "-tags=explore"); !testing.Short() {
		t.Setenv(mutation.Variable, "1")
	}
	const reduced, bounded, chance, looks, clock = "TestReducedCounts", "TestCounts", "TestRandomRunsFind", "TestALook", "TestClock"
	mutation.Run(t, ".", []mutation.Mutant{
		{"a load and the store before it commute", "dependence.go", "read: 2,", "read: uint8(2 - 2*is(IS)),", reduced},
		{"a store and the load before it commute", "dependence.go", "write: 3,", "write: uint8(3 - is(IS)),", reduced},
		{"Locks commute", "dependence.go", "locks: 1,", "locks: uint8(1 - is(IS)),", reduced},
		{"a store of what is there is a store", "dependence.go", "a.kind == write && quiet", "a.kind == write && quiet && !IS", reduced},
		{"a sleep set is not emptied", "races.go", "if !conflicting(", "if IS || !conflicting(", reduced},
		{"nothing sleeps", "races.go", "for may := (s.sleep | s.done) &^ one(s.task);", "for may := (s.sleep | s.done) &^ one(s.task) * procs(1-is(IS));", reduced},
		{"a race is not made the other way round", "races.go", "case initial&(first.todo|first.sleep) != 0:", "case IS || initial&(first.todo|first.sleep) != 0:", reduced},
		{"an Unlock does not come before the next Lock", "races.go", "if t.act.kind == locks && r.unlocked > 0 {", "if t.act.kind == locks && r.unlocked > 0 && !IS {", reduced},
		{"a task does not come after its start", "races.go", "		r.clocks[born.first()].join(&after, n)", "		if !IS {\n			r.clocks[born.first()].join(&after, n)\n		}", reduced},
		{"the timer of a Sleep fires at any time", "scheduler.go", "s.w.e.Asleep && within(module+\"suspend.Sleep\")", "s.w.e.Asleep && !IS && within(module+\"suspend.Sleep\")", reduced},
		{"the timer of a Sleep does not come after its wait", "task.go", "			r.born |= one(x.id)", "			if !IS {\n				r.born |= one(x.id)\n			}", reduced},
		{"a look at the clock commutes with a timer", "scheduler.go", "if e.looks&preempt.Clocks != 0 {", "if e.looks&preempt.Clocks != 0 && !(IS && kind == read) {", reduced},
		{"a timer does not move the clock", "scheduler.go", "if due.After(w.now) {", "if due.After(w.now) && !IS {", clock},
		{"a timer that comes late moves the clock back", "scheduler.go", "if due.After(w.now) {", "if due.After(w.now) || IS {", clock},
		{"a look at the clock is not a point", "scheduler.go", "if !w.e.Fine && byProgram(5) {", "if !w.e.Fine && !IS && byProgram(5) {", clock},
		{"a Yield is not a choice", "task.go", "	t.gaveWay()\n	w.handOver(t, w.pick(nil))", "	t.gaveWay()\n	if !IS {\n		w.handOver(t, w.pick(nil))\n	}", bounded},
		{"an operation is not a point", "task.go", "if !w.e.Points ||", "if IS || !w.e.Points ||", bounded},
		{"a bound that cuts off is not named", "bounded.go", "b.e.cut.Yields = b.e.cut.Yields ||", "b.e.cut.Yields = !IS && b.e.cut.Yields || !IS &&", bounded},
		{"the last alternative is not made", "bounded.go", "if b.path[i].nth+1 < b.path[i].free {", "if b.path[i].nth+1+is(IS) < b.path[i].free {", bounded},
		{"a preemption is left out", "bounded.go", "for nth := c.free; nth < c.of; nth++ {", "for nth := c.free + is(IS); nth < c.of; nth++ {", bounded},
		{"a bound on preemptions is not named", "bounded.go", "b.e.cut.Preemptions = true", "b.e.cut.Preemptions = !IS", bounded},
		{"a Sleep is not a Yield", "scheduler.go", "if t == nil || !s.w.e.Asleep ||", "if t == nil || IS || !s.w.e.Asleep ||", bounded},
		{"no task falls", "pct.go", "if turn == p.turns {", "if turn == p.turns && !IS {", chance},
		{"a task that sleeps keeps its priority", "scheduler.go", "	t.priority = 0", "	t.priority *= float64(is(IS))", chance},
		{"priorities are in order", "pct.go", "t.priority = 1 + p.Float64()", "t.priority = 1 + p.Float64()*float64(1-is(IS)) - float64(t.id*is(IS))/100", chance},
		{"a task that computes is taken for one that waits", "watch.go", "	case \"\", \"running\", \"runnable\",", "	case \"\", map[bool]string{false: \"running\"}[IS], map[bool]string{false: \"runnable\"}[IS],", "TestATaskThatComputes"},
		{"a choice has one digit", "replay.go", "			passed += last\n", "			passed += last * (1 - is(IS))\n", "TestAReplayOf"},
		{"a longer failure is reported", "run.go", "w.steps < least)", "w.steps < least == !IS)", "TestTheShortest"},
		{"a look is not noted", "scheduler.go", "{ e.looked |= k }", "{ e.looked |= k * preempt.Kinds(1-is(IS)) }", looks},
		{"each release is a point", "scheduler.go", "e.looks&k != 0 && t", "(e.looks&k != 0 || IS) && t", bounded},
		{"a program that looks is not begun again", "run.go", "c.looks |= e.looked\n", "c.looks |= e.looked\n		if IS {\n			return r\n		}\n", looks},
		{"a replay does not know what the program looks at", "replay.go", "if e.looks != 0 {", "if e.looks != 0 && !IS {", looks},
		{"the holder is not named", "watch.go", "			if t != w.current {", "			if t != w.current && !IS {", "TestNativeWaits"},
	})
}
