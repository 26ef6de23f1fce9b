package suspendtest_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest"
	"github.com/stretchr/testify/require"
)

// A mutant is a scheduler, or an executor, with one mistake. The named checks must find it.
type mutant struct {
	name  string
	open  suspendtest.Opener
	opts  suspendtest.Options
	kills []string
}

// patched is a scheduler whose Go or tasks are replaced.
type patched struct {
	*Baton
	run  func(s *patched, f func()) error
	task func(s *patched, t suspend.Task) suspend.Task
}

func (s *patched) Go(f func()) error {
	if s.run != nil {
		return s.run(s, f)
	}
	return s.Baton.Go(func() {
		t := s.task(s, suspend.Self())
		if e, ok := t.(*patch); ok && e.end != nil {
			defer e.end()
		}
		suspend.Bind(t, f)
	})
}

// A patch is a Task whose methods a test may replace. The other methods are those of the wrapped Task.
type patch struct {
	suspend.Task
	s                        *patched
	park, unpark, yield, end func()
	spawner                  suspend.Spawner
}

func (t *patch) Park() {
	if t.park != nil {
		t.park()
	} else {
		t.Task.Park()
	}
}

func (t *patch) Unpark() {
	if t.unpark != nil {
		t.unpark()
	} else {
		t.Task.Unpark()
	}
}

func (t *patch) Yield() {
	if t.yield != nil {
		t.yield()
	} else {
		t.Task.(interface{ Yield() }).Yield()
	}
}

func (t *patch) Spawner() suspend.Spawner {
	if t.spawner != nil {
		return t.spawner
	}
	return t.s
}

// onBaton opens a scheduler on a new Baton, and closes the Baton with it.
func onBaton(scheduler func(b *Baton) suspend.Spawner) suspendtest.Open {
	return func(testing.TB) (suspend.Spawner, func()) {
		b := &Baton{}
		return scheduler(b), b.Close
	}
}

// runs replaces Go and the tasks.
func runs(f func(s *patched, f func()) error) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner { return &patched{Baton: b, run: f} })
}

func tasks(f func(t *patch)) suspendtest.Open {
	return onBaton(func(b *Baton) suspend.Spawner {
		return &patched{Baton: b, task: func(s *patched, t suspend.Task) suspend.Task {
			p := &patch{Task: t, s: s}
			f(p)
			return p
		}}
	})
}

func openFifo(o fifo.Options) (suspend.Spawner, func()) {
	s := fifo.New(o)
	return s, suspendtest.Drive(s.Run)
}

var sink atomic.Pointer[[64]byte]

var schedulerMutants = []mutant{
	{"an Unpark that comes before Park is dropped", tasks(func(t *patch) {
		var parking atomic.Bool
		t.park = func() { parking.Store(true); t.Task.Park(); parking.Store(false) }
		t.unpark = func() {
			if parking.Load() {
				t.Task.Unpark()
			}
		}
	}), suspendtest.Options{}, []string{"Park/an-unpark-that-comes-first-counts"}},

	{"one Unpark in 50 is dropped", tasks(func(t *patch) {
		var n atomic.Int32
		t.unpark = func() {
			if n.Add(1)%50 != 0 {
				t.Task.Unpark()
			}
		}
	}), suspendtest.Options{}, []string{"Park/no-wake-up-is-lost"}},

	{"Unpark returns when the task has run", tasks(func(t *patch) {
		var mu sync.Mutex
		var parking bool
		ran := make(chan struct{})
		stopped := func(p bool) {
			mu.Lock()
			defer mu.Unlock()
			close(ran)
			ran, parking = make(chan struct{}), p
		}
		t.park = func() { stopped(true); t.Task.Park() }
		t.end = func() { stopped(false) }
		t.unpark = func() {
			mu.Lock()
			p, wait := parking, ran
			parking = false
			mu.Unlock()
			t.Task.Unpark()
			if p {
				<-wait
			}
		}
	}), suspendtest.Options{}, []string{"05/resume-under-a-lock-that-the-waiter-needs", "05/resume-by-a-task-under-a-lock-that-the-waiter-needs",
		"01/block-holds-nothing"}},

	{"Unpark takes the lock that tasks run under", tasks(func(t *patch) {
		t.unpark = func() {
			t.s.baton.Lock()
			defer t.s.baton.Unlock()
			t.Task.Unpark()
		}
	}), suspendtest.Options{}, []string{"05/resume-does-not-wait-for-a-busy-scheduler", "05/resume-before-block-returns",
		"01/a-failure-found-in-block-is-delivered"}},

	{"Unpark panics once the scheduler has closed", tasks(func(t *patch) {
		t.unpark = func() {
			t.s.mu.Lock()
			defer t.s.mu.Unlock()
			if t.s.closed {
				panic("closed")
			}
			t.Task.Unpark()
		}
	}), suspendtest.Options{}, []string{"05/resume-after-close-is-false"}},

	{"Park keeps the worker", tasks(func(t *patch) {
		native := sched.NewThread()
		t.park, t.unpark = native.Park, native.Unpark
	}), suspendtest.Options{}, []string{"Park/suspended-tasks-hold-nobody-up"}},

	{"Park returns at once", tasks(func(t *patch) {
		begin := time.Now()
		t.park = func() {
			if time.Since(begin) > 2*patience {
				runtime.Goexit() // all looks are over by then
			}
			time.Sleep(time.Millisecond)
		}
	}), suspendtest.Options{}, []string{"Park/suspended-tasks-hold-nobody-up"}},

	{"tasks are not bound", runs(func(s *patched, f func()) error {
		return s.Baton.Go(func() {
			done := make(chan struct{})
			go func() { defer close(done); f() }()
			<-done
		})
	}), suspendtest.Options{}, []string{"Park/suspended-tasks-hold-nobody-up"}},

	{"all tasks share one Task", onBaton(func(b *Baton) suspend.Spawner {
		var shared suspend.Task
		var once sync.Once
		return &patched{Baton: b, task: func(_ *patched, t suspend.Task) suspend.Task {
			once.Do(func() { shared = t })
			return shared
		}}
	}), suspendtest.Options{}, []string{"Park/each-task-has-its-own"}},

	{"a late Unpark runs its task again", runs(func(s *patched, f func()) error {
		return s.Baton.Go(func() {
			var ended atomic.Bool
			p := &patch{Task: suspend.Self(), s: s}
			p.unpark = func() {
				again := ended.Swap(false)
				if p.Task.Unpark(); again {
					_ = s.Baton.Go(f)
				}
			}
			defer ended.Store(true)
			suspend.Bind(p, f)
		})
	}), suspendtest.Options{}, []string{"08/late-unpark-does-not-disturb-the-next-task"}},

	{"Go runs f twice", runs(func(s *patched, f func()) error {
		_ = s.Baton.Go(f)
		return s.Baton.Go(f)
	}), suspendtest.Options{}, []string{"Go/every-task-runs-once"}},

	{"Go drops one f in 10", goes(func(n int32) bool { return n%10 == 0 }, func(*patched, func()) error { return nil }), suspendtest.Options{}, []string{"Go/every-task-runs-once"}},

	{"Go runs f inline", runs(func(s *patched, f func()) error {
		suspend.Bind(sched.NewThread(), f)
		return nil
	}), suspendtest.Options{}, []string{"Go/does-not-run-the-task-inline"}},

	{"Go waits for the worker", runs(func(s *patched, f func()) error {
		s.baton.Lock()
		defer s.baton.Unlock()
		return s.Baton.Go(f)
	}), suspendtest.Options{}, []string{"Go/does-not-wait-for-a-busy-scheduler"}},

	{"Go drops f silently after close", runs(func(s *patched, f func()) error {
		_ = s.Baton.Go(f)
		return nil
	}), suspendtest.Options{}, []string{"Go/refused-or-run-while-closing"}},

	{"Go runs f although it has refused it", runs(func(s *patched, f func()) error {
		err := s.Baton.Go(f)
		if err != nil {
			go f()
			runtime.Gosched()
		}
		return err
	}), suspendtest.Options{}, []string{"Go/refused-or-run-while-closing"}},

	{"close does not wait", suspendtest.Open(func(testing.TB) (suspend.Spawner, func()) { return &Baton{}, func() {} }),
		suspendtest.Options{}, []string{"Go/close-waits-for-suspended-tasks"}},

	{"a Goexit keeps the worker", runs(func(s *patched, f func()) error {
		return s.Baton.Go(func() {
			returned := false
			defer func() {
				if !returned {
					select {}
				}
			}()
			f()
			returned = true
		})
	}), suspendtest.Options{}, []string{"Go/goexit-ends-one-task-only", "07/goexit-in-block-ends-the-task-and-kills-the-resumer"}},

	{"Yield lets nobody run", tasks(func(t *patch) { t.yield = runtime.Gosched }),
		suspendtest.Options{}, []string{"Yield/lets-others-run"}},

	{"Yield waits for preemption", suspendtest.Open(func(testing.TB) (suspend.Spawner, func()) {
		s := new(hogs)
		return s, s.all.Wait
	}), suspendtest.Options{}, []string{yieldAlone}},
	{"Go in a task that yields refuses, and runs it", suspendtest.Open(func(testing.TB) (suspend.Spawner, func()) {
		s := &hogs{lies: true}
		return s, s.all.Wait
	}), suspendtest.Options{}, []string{yieldAlone}},

	{"Spawner is another scheduler", tasks(func(t *patch) { t.spawner = &Baton{} }),
		suspendtest.Options{}, []string{"Here/is-the-scheduler-of-the-task"}},

	{"the order is not FIFO", suspendtest.Open(func(testing.TB) (suspend.Spawner, func()) {
		s := random.New(random.Options{})
		return s, suspendtest.Drive(s.Run)
	}), inOrder, []string{"Go/tasks-run-in-order", "05/resumed-tasks-run-in-order"}},

	{"panics are not reported", suspendtest.Open(nil), suspendtest.Options{
		Panics: func(testing.TB, func(any, []byte)) (suspend.Spawner, func()) {
			return openFifo(fifo.Options{OnPanic: func(any, []byte) {}})
		}}, []string{"Go/panic-is-reported-and-ends-one-task-only"}},

	{"Park allocates", tasks(func(t *patch) {
		t.park = func() { sink.Store(new([64]byte)); t.Task.Park() }
	}), suspendtest.Options{NoAllocs: true}, []string{"11/suspend-and-resume-allocate-nothing"}},
}

// yieldAlone is a check that measures while it keeps the other processors busy.
const yieldAlone = "Yield/gives-way-without-preemption"

// hogs are goroutines that do not yield. The checks that only need others to run do not notice, because the runtime runs them.
// With lies, they yield, and Go returns an error in a task.
type hogs struct {
	all  sync.WaitGroup
	lies bool
}

func (s *hogs) Go(f func()) error {
	inside := suspend.Current() != nil
	s.all.Go(func() { suspend.Bind(&hog{sched.NewThread(), s}, f) })
	if s.lies && inside {
		return errLie
	}
	return nil
}

type hog struct {
	suspend.Task
	s *hogs
}

func (t *hog) Yield() {
	if t.s.lies {
		runtime.Gosched()
	}
}

func (t *hog) Spawner() suspend.Spawner { return t.s }

type executor func(f func()) error

func (x executor) Execute(f func()) error { return x(f) }

// executes replaces Execute.
func executes(broken func(s *fifo.Scheduler, f func()) error) suspendtest.OpenExecutor {
	return func(testing.TB) (suspend.Executor, func()) {
		s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
		return executor(func(f func()) error { return broken(s, f) }), suspendtest.Drive(s.Run)
	}
}

var inOrder = suspendtest.Options{FIFO: true}

var executorMutants = []mutant{
	{"f runs twice", executes(func(s *fifo.Scheduler, f func()) error {
		_ = s.Execute(f)
		return s.Execute(f)
	}), suspendtest.Options{}, []string{"Execute/every-callback-runs-once"}},
	{"f is dropped", executes(func(*fifo.Scheduler, func()) error { return nil }), suspendtest.Options{}, []string{"Execute/every-callback-runs-once"}},
	{"f runs inline", executes(func(_ *fifo.Scheduler, f func()) error { f(); return nil }), suspendtest.Options{}, []string{"Execute/does-not-run-inline"}},
	{"Execute waits until f begins", executes(func(s *fifo.Scheduler, f func()) error {
		began := make(chan struct{})
		err := s.Execute(func() { close(began); f() })
		if err == nil {
			<-began
		}
		return err
	}), suspendtest.Options{}, []string{"Execute/does-not-wait-for-a-busy-executor"}},
	{"f is a task", executes((*fifo.Scheduler).Go), suspendtest.Options{}, []string{"Execute/a-callback-must-not-suspend"}},
	{"f is dropped silently after close", executes(func(s *fifo.Scheduler, f func()) error {
		_ = s.Execute(f)
		return nil
	}), suspendtest.Options{}, []string{"Execute/refused-or-run-while-closing"}},
	{"the order is not FIFO", suspendtest.OpenExecutor(func(testing.TB) (suspend.Executor, func()) {
		s := random.New(random.Options{})
		return s, suspendtest.Drive(s.Run)
	}), inOrder, []string{"Execute/callbacks-run-in-order"}},
	{"a callback keeps the executor", executes(func(s *fifo.Scheduler, f func()) error {
		return s.Execute(func() { f(); select {} })
	}), suspendtest.Options{}, []string{"Execute/a-callback-may-resume"}},
}

// patience is the deadline of a check on a mutant. A mutant that hangs takes this long.
const patience = 700 * time.Millisecond

// A recorder is a test that may fail.
type recorder struct {
	testing.TB
	name   string
	mu     sync.Mutex
	failed bool
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
	r.TB.Logf("%s\n\t"+format, append([]any{r.name}, args...)...)
}

// A kill is a mutant and a check that finds it.
type kill struct {
	mutant, check string
	run           func(sees func(look string) bool)
}

// found returns the looks that find the mutant. All looks are blind meanwhile, so none of them ends the check. If found returns a
// single look, no other look would find the mutant without it.
func (k kill) found() (looks []string) {
	var mu sync.Mutex
	over := false
	k.run(func(look string) bool {
		mu.Lock()
		defer mu.Unlock()
		if !over && !slices.Contains(looks, look) {
			looks = append(looks, look)
		}
		return true
	})
	mu.Lock()
	defer mu.Unlock()
	over = true
	return looks
}

func kills(t *testing.T) (all []kill) {
	add := func(mutant, check string, run func(sees func(look string) bool)) {
		all = append(all, kill{mutant, check, run})
	}
	for _, m := range slices.Concat(schedulerMutants, executorMutants, endingMutants) {
		for _, name := range m.kills {
			add(m.name, name, func(sees func(look string) bool) {
				suspendtest.Check(t, name, patience, suspendtest.Direct, m.open, m.opts.Blind(sees))
			})
		}
	}
	for _, m := range suspendMutants {
		for _, name := range m.kills {
			add(m.name, name, func(sees func(look string) bool) {
				suspendtest.Check(t, name, patience, m.make(), suspendtest.Open(openBaton), suspendtest.Options{}.Blind(sees))
			})
		}
	}
	for _, l := range tolds { // these do not hang
		add(fmt.Sprintf("%s, in call %d", l.lie, l.n), l.check, func(sees func(look string) bool) {
			open := suspendtest.Opener(openTimed)
			switch kind, _, _ := strings.Cut(l.check, "/"); kind {
			case "Execute":
				open = executes((*fifo.Scheduler).Execute)
			case "Ending":
				open = suspendtest.OpenEnding(endsNever)
			}
			suspendtest.Check(t, l.check, 10*patience, lies[l.lie](l.n)(), open, suspendtest.Options{}.Blind(sees))
		})
	}
	return all
}

// Every mutant is killed by its checks, every check can kill, and every look of a check has a mutant that only this look finds.
// Without that look, the mutant would survive.
func TestMutantsAreKilled(t *testing.T) {
	all := kills(t)
	for _, name := range suspendtest.Names() {
		killer := slices.ContainsFunc(all, func(k kill) bool { return k.check == name })
		if killer == (name == "Blocking/panic-and-goexit-come-back") { // tests code of package suspend, see ofSuspend
			t.Errorf("a mutant shows that %s can fail: %v", name, killer)
		}
	}
	var mu sync.Mutex
	alone := map[string]bool{}     // the looks that have found a mutant alone
	killers := map[string][]kill{} // by the look that found the mutant
	attempt := func(k kill) {
		for range 20 { // a race does not show a mistake each time
			looks := k.found()
			if len(looks) == 0 {
				continue
			}
			t.Logf("%s: %s: %v", k.mutant, k.check, looks)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range looks {
				killers[l] = append(killers[l], k)
			}
			if len(looks) == 1 {
				alone[looks[0]] = true
			}
			return
		}
		t.Errorf("%s: survived %s", k.mutant, k.check)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16*runtime.GOMAXPROCS(0)) // most of them hang, and need no processor
	for _, k := range all {
		if k.check[:2] == "11" || k.check == yieldAlone { // these measure the whole process, so they run alone
			attempt(k)
		}
	}
	for _, k := range all {
		if k.check[:2] == "11" || k.check == yieldAlone {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			attempt(k)
		})
	}
	wg.Wait()
	for _, l := range looks(t) {
		breakable := !slices.Contains(ofSuspend, l.text) && !strings.HasPrefix(l.text, "uncovered: ")
		if by := killers[l.at]; breakable && len(by) > 0 { // while other tests keep the processors busy, another look may find the mutant, too
			for tries := 0; tries < 60 && !alone[l.at]; tries++ {
				attempt(by[tries%len(by)])
			}
		}
		if alone[l.at] != breakable {
			t.Errorf("%s finds a mutant that no other look finds: %v: %s", l.at, alone[l.at], l.text)
		}
	}
}

// ofSuspend lists the looks at code of package suspend that the kit does not get from its caller, so no mutant can break it. A look
// that reports that a check has tested nothing cannot be broken either.
var ofSuspend = []string{
	"Within is true on a goroutine without a scheduler",
	"under Bind(t), the current task is not t",
	"Blocking ran f although ctx had ended before",
	"Blocking with a cancelled context returned %v",
	"f panicked with %v, and Blocking with %v",
	"f called runtime.Goexit, but the task continued",
	"next returned %d, %v",
	"next returned a value after the last",
}

// A look is a place in the kit that reports a problem.
type look struct{ at, text string }

// looks returns all looks in the source of the kit.
func looks(t *testing.T) (all []look) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "errorf" || f.Sel.Name == "fatalf") {
					text, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					all = append(all, look{fmt.Sprintf("%s:%d", name, set.Position(call.Pos()).Line), text})
				}
			}
			return true
		})
	}
	return all
}

// A suspendMutant is a Suspend with one mistake.
type suspendMutant struct {
	name  string
	make  func() suspendtest.SuspendFunc
	kills []string
}

// blocks replaces the block that is passed to Suspend.
func blocks(f func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool)) func() suspendtest.SuspendFunc {
	return func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			return suspendtest.Direct(ctx, func(r suspendtest.Resume) (*box, bool) { return f(block, r) })
		}
	}
}

func returns(f func(ctx context.Context, v *box, err error) (*box, error)) func() suspendtest.SuspendFunc {
	return func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			v, err := suspendtest.Direct(ctx, block)
			return f(ctx, v, err)
		}
	}
}

// contexts replaces the context of a Suspend, given the contexts that the task has used before.
func contexts(f func(before []context.Context, ctx context.Context) context.Context) func() suspendtest.SuspendFunc {
	return func() suspendtest.SuspendFunc {
		var mu sync.Mutex
		before := map[suspend.Task][]context.Context{}
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			t := suspend.Self()
			mu.Lock()
			old := before[t]
			before[t] = append(old[:len(old):len(old)], ctx)
			mu.Unlock()
			return suspendtest.Direct(f(old, ctx), block)
		}
	}
}

type box = suspendtest.Box

var (
	holding  sync.Mutex
	retained struct {
		sync.Mutex
		all []any
	}
)

func retain(x any) {
	retained.Lock()
	retained.all = append(retained.all, x)
	retained.Unlock()
}

var suspendMutants = []suspendMutant{
	{"block runs twice", blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
		_, _ = block(r)
		return block(r)
	}), []string{"01/block-runs-once-on-the-caller"}},
	{"block runs on another goroutine", blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (v *box, ok bool) {
		done := make(chan struct{})
		go func() { defer close(done); v, ok = block(r) }()
		<-done
		return v, ok
	}), []string{"01/block-runs-once-on-the-caller", "01/suspend-inside-block-panics",
		"07/goexit-in-block-ends-the-task-and-kills-the-resumer"}},
	{"block runs under a lock", blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
		holding.Lock()
		defer holding.Unlock()
		return block(r)
	}), []string{"01/block-holds-nothing"}},
	{"block runs although ctx has ended", func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			if ctx.Err() != nil {
				_, _ = block(func(*box, error) bool { return false })
			}
			return suspendtest.Direct(ctx, block)
		}
	}, []string{"01/block-does-not-run-if-ctx-is-done"}},
	{"Resume inside block returns false", blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
		var returned atomic.Bool
		defer returned.Store(true)
		return block(func(v *box, err error) bool { return returned.Load() && r(v, err) })
	}), []string{"01/a-failure-found-in-block-is-delivered", "05/resume-before-block-returns"}},

	{"Resume always says true", blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
		return block(func(v *box, err error) bool { r(v, err); return true })
	}), []string{"02/one-winner", "02/resume-after-resume-is-false", "05/resume-after-close-is-false",
		"02/resume-after-cancellation-is-false-and-delivers-nothing", "05/resume-after-suspend-returned-is-false",
		"06/resumer-is-dead-after-a-value-of-block", "07/panic-in-block-propagates-and-kills-the-resumer",
		"Bind/a-goroutine-started-by-a-task-waits-by-itself"}},
	{"Resume waits for the waiter", func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			returned := make(chan struct{})
			defer close(returned)
			return suspendtest.Direct(ctx, func(r suspendtest.Resume) (*box, bool) {
				return block(func(v *box, err error) bool {
					ok := r(v, err)
					<-returned
					return ok
				})
			})
		}
	}, []string{"05/resume-before-block-returns", "05/resume-by-a-task-under-a-lock-that-the-waiter-needs"}},

	{"ctx is checked last", returns(func(ctx context.Context, v *box, err error) (*box, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return v, err
	}), []string{"03/resume-true-is-returned-even-if-ctx-is-done", "06/value-of-block-dominates-cancellation"}},
	{"an error comes without its value", returns(func(_ context.Context, v *box, err error) (*box, error) {
		if err != nil {
			v = nil
		}
		return v, err
	}), []string{"03/value-and-error-are-delivered-together"}},
	{"a cancellation is the cause only", returns(func(ctx context.Context, v *box, err error) (*box, error) {
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
		return v, err
	}), []string{"04/error-is-both-err-and-cause"}},
	{"a cancellation is ctx.Err() only", returns(func(ctx context.Context, v *box, err error) (*box, error) {
		if ctx.Err() != nil && err != nil {
			err = ctx.Err()
		}
		return v, err
	}), []string{"04/error-is-both-err-and-cause"}},

	{"a value after a Resume is accepted", func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (v *box, err error) {
			defer func() { _ = recover() }()
			return suspendtest.Direct(ctx, block)
		}
	}, []string{"06/resume-before-a-value-of-block-panics", "07/panic-in-block-propagates-and-kills-the-resumer"}},
	{"a resumer resumes whoever waits", func() suspendtest.SuspendFunc {
		var latest atomic.Pointer[suspendtest.Resume]
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			return suspendtest.Direct(ctx, func(r suspendtest.Resume) (*box, bool) {
				latest.Store(&r)
				return block(func(v *box, err error) bool { return (*latest.Load())(v, err) })
			})
		}
	}, []string{"08/stale-resumers-do-not-touch-a-later-suspension"}},
	{"an Unpark ends Suspend", func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			t := suspend.Self()
			var got atomic.Pointer[box]
			v, ok := block(func(v *box, _ error) bool { got.Store(v); t.Unpark(); return true })
			if ok {
				return v, nil
			}
			t.Park()
			return got.Load(), nil
		}
	}, []string{"08/unpark-does-not-end-a-suspension"}},
	{"Done is checked late", contexts(func(_ []context.Context, ctx context.Context) context.Context {
		late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		context.AfterFunc(ctx, func() { runtime.Gosched(); cancel(context.Cause(ctx)) })
		return late
	}), []string{"02/resume-after-cancel-has-returned-is-false"}},
	{"contexts of earlier waits cancel", contexts(func(before []context.Context, ctx context.Context) context.Context {
		merged, cancel := context.WithCancel(ctx)
		context.AfterFunc(ctx, cancel)
		for _, old := range before {
			context.AfterFunc(old, cancel)
		}
		return merged
	}), []string{"08/late-cancellation-does-not-touch-a-later-suspension", "09/a-context-that-is-never-done"}},
	{"only the first context of a task cancels", contexts(func(before []context.Context, ctx context.Context) context.Context {
		if len(before) > 0 && before[0].Done() != ctx.Done() {
			return context.WithoutCancel(ctx)
		}
		return ctx
	}), []string{"09/alternating-contexts"}},
	{"contexts are compared", func() suspendtest.SuspendFunc {
		var last any
		var mu sync.Mutex
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			mu.Lock()
			same := func() bool { defer mu.Unlock(); return last == any(ctx) }
			if !same() {
				mu.Lock()
				last = ctx
				mu.Unlock()
			}
			return suspendtest.Direct(ctx, block)
		}
	}, []string{"09/any-context-cancels"}},
	{"ctx is checked first and not again", contexts(func(_ []context.Context, ctx context.Context) context.Context {
		if ctx.Err() != nil {
			return ctx
		}
		return context.WithoutCancel(ctx)
	}), []string{"09/cancellation-at-every-point", "09/any-context-cancels", "04/error-is-both-err-and-cause"}},
	{"ctx is checked in the first wait only", contexts(func(before []context.Context, ctx context.Context) context.Context {
		if len(before) > 0 {
			return context.WithoutCancel(ctx)
		}
		return ctx
	}), []string{"09/cancellation-between-two-waits-is-not-lost", "09/cancellation-at-every-point"}},
	{"every wait leaves a registration", func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (*box, error) {
			if a, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
				a.AfterFunc(func() {})
			}
			return suspendtest.Direct(ctx, block)
		}
	}, []string{"09/registrations-are-few-and-end-with-the-task"}},

	{"contexts are retained", contexts(func(_ []context.Context, ctx context.Context) context.Context {
		retain(ctx)
		return ctx
	}), []string{"10/nothing-is-retained-of-what-was-delivered-or-cancelled", "10/nothing-is-retained-of-a-task-that-has-ended"}},
	{"values are retained", blocks(func(block func(suspendtest.Resume) (*box, bool), r suspendtest.Resume) (*box, bool) {
		return block(func(v *box, err error) bool { retain(v); return r(v, err) })
	}), []string{"10/nothing-is-retained-of-what-was-delivered-or-cancelled", "10/nothing-is-retained-of-a-task-that-has-ended"}},
	{"a block that suspends in Pull holds the worker", func() suspendtest.SuspendFunc {
		return func(ctx context.Context, block func(suspendtest.Resume) (*box, bool)) (v *box, err error) {
			done := make(chan struct{})
			go func() { defer close(done); v, err = suspendtest.Direct(ctx, block) }()
			<-done
			return v, err
		}
	}, []string{"Pull/the-body-suspends-the-caller-of-next"}},
}
