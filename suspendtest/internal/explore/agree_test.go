//go:build explore

package explore_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest/internal/explore"
	"github.com/braidgo/braid/watch"
)

// A search of single accesses and a search at operations have the same outcomes, if both report that they have seen all runs. Two
// tasks perform random operations on the objects of one package. BRAID_AGREE=2000 compares 2000 programs, and allows longer runs.
func TestOperationsAgreeWithAccesses(t *testing.T) {
	programs, _ := strconv.Atoi(cmp.Or(os.Getenv("BRAID_AGREE"), "80"))
	long := os.Getenv("BRAID_AGREE") != ""
	names := slices.Sorted(maps.Keys(groups))
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			total := agreement{t: t, name: name, most: 1000}
			if long {
				total.most = 5000
			}
			want := (programs - i + len(names) - 1) / len(names)
			// A program that is too long is replaced by another.
			for seed := 0; total.compared < want && seed < 4*want; seed++ {
				total.compare(uint64(seed))
			}
			t.Logf("%d programs, of which %d are compared; %d runs at operations, %d of accesses", total.programs, total.compared, total.atOperations, total.ofAccesses)
			if total.compared < want {
				t.Errorf("fewer than %d programs were compared: most are too long, or fail", want)
			}
		})
	}
}

// A part is the share of one task in a run: some operations on the objects of a scene.
type part struct {
	*scene
	ctx  context.Context
	me   int
	held map[string]func() // the functions that return what the task holds
}

// A scene holds the objects of one run.
type scene struct {
	mutex   mutex.Mutex
	rw      mutex.RWMutex
	permits *semaphore.Semaphore
	buffer  *chanx.Chan[int]
	state   watch.Value[int]
	place   *mvar.MVar[int]
	promise *promise.Promise[int]
	latch   *latch.Latch
	barrier *latch.Barrier
	lazy    *lazy.Lazy[int]
	topic   *broadcast.Topic[int]
	sub     *broadcast.Subscription[int]
	cond    *cond.Cond
	limiter *rate.Limiter
	keys    keyed.Mutex[int]
	each    *keyed.Semaphore[int]
	cache   *keyed.Cache[int, int]
	pool    *respool.Pool[int]
	cell    *stm.Var[int]
	group   *scope.Group
	inbox   *actor.Inbox[int]
	ctx     context.Context // some operations use ctx, and others end it
	stop    func(cause error)

	made  atomicx.Bool    // the first task has created the objects that only a task can create
	on    suspend.Spawner // the scheduler of the tasks
	tasks *idle.Group
	stage *stage.Stage[int, int]
	width *stage.Pool
}

func newScene(size int) *scene {
	s := &scene{
		permits: semaphore.New(1), buffer: chanx.New[int](size), place: mvar.New[int](), promise: promise.New[int](), latch: latch.New(1),
		barrier: latch.NewBarrier(2), topic: broadcast.New[int](), each: keyed.NewSemaphore[int](1), cell: stm.NewVar(1),
		limiter: rate.NewLimiter(rate.Every(time.Second), 1), inbox: actor.Open(bg, actor.Options[int]{Cap: 1 + size}),
		lazy:  lazy.New(func(context.Context) (int, error) { return 7, nil }, lazy.Restart),
		group: scope.Open(bg, scope.FirstError),
	}
	opened := 0 // only the holder of the only permit uses it
	s.pool = respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { opened++; return opened, nil }})
	s.cache = keyed.NewCache(func(context.Context, int) (int, error) { return 7, nil }, keyed.CacheOptions{TTL: time.Hour})
	s.cond = cond.New(&s.mutex)
	s.sub = s.topic.Subscribe(1, broadcast.Wait)
	s.ctx, s.stop = cancel.New(bg)
	return s
}

// byTasks lists the groups with objects that only a task can create.
var byTasks = []string{"idle", "limit", "stage"}

func (s *scene) make(group string) {
	s.on = suspend.Here()
	switch group {
	case "idle":
		s.tasks = idle.New(s.on, nil)
	case "stage":
		s.width = stage.NewPool("pool", 1, s.on)
		s.stage = stage.New("stage", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{Pool: s.width, Width: 1, Queue: 1})
	case "limit":
		s.on = scope.Limit(1, s.on)
	}
	s.made.Store(true)
}

// say makes a text of the results of an operation.
func say(results ...any) string {
	for i, x := range results {
		if err, ok := x.(error); ok {
			results[i], _, _ = strings.Cut(err.Error(), "\n")
		}
	}
	return strings.TrimSpace(fmt.Sprintln(results...))
}

// take performs an operation that takes something, unless the task already holds it.
func (p *part) take(what string, op func() (ok bool, err error), giveBack func()) string {
	if p.held[what] != nil {
		return "-"
	}
	ok, err := op()
	if ok && err == nil {
		p.held[what] = giveBack
	}
	return say(ok, err)
}

func (p *part) wait(what string, op func() error, giveBack func()) string {
	return p.take(what, func() (bool, error) { return true, op() }, giveBack)
}

func (p *part) try(what string, op func() bool, giveBack func()) string {
	return p.take(what, func() (bool, error) { return op(), nil }, giveBack)
}

func (p *part) giveBack(what string) string {
	f := p.held[what]
	if f == nil {
		return "-"
	}
	delete(p.held, what)
	f()
	return ""
}

// try performs op if it need not wait.
func try[T any](op suspend.Op[T]) string {
	c := suspend.CaseOf(op)
	won, err := suspend.TrySelect(bg, c)
	if won == nil {
		return say(err)
	}
	return say(c.Result())
}

func noError(context.Context) error { return nil }

// groups lists the operations by their group. The operations of a group use one object, or a few.
var groups = map[string]map[string]func(p *part) string{
	"mutex": {
		"TryLock": func(p *part) string { return p.try("mutex", p.mutex.TryLock, p.mutex.Unlock) },
		"Lock": func(p *part) string {
			return p.wait("mutex", func() error { return p.mutex.LockContext(p.ctx) }, p.mutex.Unlock)
		},
		"Unlock": func(p *part) string { return p.giveBack("mutex") },
		"Select": func(p *part) string {
			return p.wait("mutex", func() error { _, err := suspend.Do(p.ctx, p.mutex.LockOp()); return err }, p.mutex.Unlock)
		},
	},
	"cond": {
		"Wait": func(p *part) string {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			return say(p.cond.Wait(p.ctx))
		},
		"Signal":    func(p *part) string { p.cond.Signal(); return "" },
		"Broadcast": func(p *part) string { p.cond.Broadcast(); return "" },
	},
	"rwmutex": {
		"TryRLock": func(p *part) string { return p.try("rw", p.rw.TryRLock, p.rw.RUnlock) },
		"TryLock":  func(p *part) string { return p.try("rw", p.rw.TryLock, p.rw.Unlock) },
		"RLock": func(p *part) string {
			return p.wait("rw", func() error { return p.rw.RLockContext(p.ctx) }, p.rw.RUnlock)
		},
		"Lock": func(p *part) string {
			return p.wait("rw", func() error { return p.rw.LockContext(p.ctx) }, p.rw.Unlock)
		},
		"Unlock": func(p *part) string { return p.giveBack("rw") },
		"Downgrade": func(p *part) string {
			return p.wait("rw", func() error {
				err := p.rw.LockContext(p.ctx)
				if err == nil {
					p.rw.Downgrade()
				}
				return err
			}, p.rw.RUnlock)
		},
	},
	"semaphore": {
		"TryAcquire": func(p *part) string {
			return p.try("permit", func() bool { return p.permits.TryAcquire(1) }, func() { p.permits.Release(1) })
		},
		"Acquire": func(p *part) string {
			return p.wait("permit", func() error { return p.permits.Acquire(p.ctx, 1) }, func() { p.permits.Release(1) })
		},
		"Release":   func(p *part) string { return p.giveBack("permit") },
		"Resize(0)": func(p *part) string { p.permits.Resize(0); return "" },
		"Resize(2)": func(p *part) string { p.permits.Resize(2); return "" },
		"Close":     func(p *part) string { return say(p.permits.Close()) },
	},
	"chanx": {
		"TrySend":    func(p *part) string { return say(p.buffer.TrySend(p.me)) },
		"TryRecv":    func(p *part) string { return say(p.buffer.TryRecv()) },
		"Send":       func(p *part) string { return say(p.buffer.Send(p.ctx, 10+p.me)) },
		"Recv":       func(p *part) string { return say(p.buffer.Recv(p.ctx)) },
		"Len":        func(p *part) string { return say(p.buffer.Len()) },
		"Close":      func(p *part) string { return say(p.buffer.Close()) },
		"AwaitClose": func(p *part) string { return say(p.buffer.AwaitClose(p.ctx)) },
	},
	"watch": {
		"Store":   func(p *part) string { return say(p.state.Store(10 + p.me)) },
		"Load":    func(p *part) string { return say(p.state.Load()) },
		"Changed": func(p *part) string { return say(p.state.Changed(p.ctx, 1)) },
		"Modify":  func(p *part) string { return say(p.state.Modify(func(n int) int { return n + 1 })) },
		"UntilOp": func(p *part) string {
			return say(suspend.Do(p.ctx, p.state.UntilOp(func(n int) bool { return n%2 == 1 })))
		},
		"Close": func(p *part) string { return say(p.state.Close()) },
	},
	"mvar": {
		"TryPut":  func(p *part) string { return say(p.place.TryPut(p.me)) },
		"TryTake": func(p *part) string { return say(p.place.TryTake()) },
		"TryRead": func(p *part) string { return say(p.place.TryRead()) },
		"Put":     func(p *part) string { return say(p.place.Put(p.ctx, 10+p.me)) },
		"Take":    func(p *part) string { return say(p.place.Take(p.ctx)) },
		"Swap":    func(p *part) string { return say(p.place.Swap(p.ctx, 20+p.me)) },
		"Modify": func(p *part) string {
			return say(p.place.Modify(p.ctx, func(n int) (int, error) { return 2 * n, nil }))
		},
	},
	"promise": {
		"Fill":  func(p *part) string { return say(p.promise.Fill(p.me)) },
		"Try":   func(p *part) string { return say(p.promise.Try()) },
		"Await": func(p *part) string { return say(p.promise.Await(p.ctx)) },
		"All":   func(p *part) string { return say(suspend.Do(p.ctx, promise.All[int](p.promise, p.promise))) },
	},
	"latch": {
		"CountDown": func(p *part) string {
			return p.take("count", func() (bool, error) { p.latch.CountDown(); return true, nil }, func() {})
		},
		"TryWait": func(p *part) string { return say(p.latch.TryWait()) },
		"Wait":    func(p *part) string { return say(p.latch.Wait(p.ctx)) },
		"Barrier": func(p *part) string { return say(p.barrier.Wait(p.ctx)) },
	},
	"lazy": {
		"Force": func(p *part) string { return say(p.lazy.Force(p.ctx)) },
		"Value": func(p *part) string { return say(p.lazy.Value()) },
	},
	"keyed": {
		"TryLock": func(p *part) string {
			return p.try("key", func() bool { return p.keys.TryLock(1) }, func() { p.keys.Unlock(1) })
		},
		"Lock": func(p *part) string {
			return p.wait("key", func() error { return p.keys.LockContext(p.ctx, 1) }, func() { p.keys.Unlock(1) })
		},
		"Unlock": func(p *part) string { return p.giveBack("key") },
		"Len":    func(p *part) string { return say(p.keys.Len()) },
		"TryAcquire": func(p *part) string {
			return p.try("each", func() bool { return p.each.TryAcquire(1) }, func() { p.each.Release(1) })
		},
		"Acquire": func(p *part) string {
			return p.wait("each", func() error { return p.each.Acquire(p.ctx, 1) }, func() { p.each.Release(1) })
		},
	},
	"cache": {
		"Get":    func(p *part) string { return say(p.cache.Get(p.ctx, 1)) },
		"Forget": func(p *part) string { p.cache.Forget(1); return "" },
		"Stats":  func(p *part) string { s := p.cache.Stats(); return say(s.Kept + s.Loading) },
	},
	"broadcast": {
		"Publish":    func(p *part) string { return say(p.topic.Publish(p.ctx, p.me)) },
		"TryPublish": func(p *part) string { return try(p.topic.PublishOp(10 + p.me)) },
		"Recv":       func(p *part) string { return say(p.sub.Recv(p.ctx)) },
		"TryRecv":    func(p *part) string { return try(p.sub.RecvOp()) },
		"CloseSub":   func(p *part) string { p.sub.Close(); return "" },
		"Close":      func(p *part) string { return say(p.topic.Close()) },
	},
	"rate": {
		"Allow":    func(p *part) string { return say(p.limiter.Allow(1)) },
		"Wait":     func(p *part) string { return say(p.limiter.Wait(p.ctx)) },
		"SetLimit": func(p *part) string { p.limiter.SetLimit(rate.Inf); return "" },
		"SetBurst": func(p *part) string { p.limiter.SetBurst(p.me % 2); return "" },
	},
	"respool": {
		"Acquire": func(p *part) string {
			v := 0
			return p.wait("lease", func() error {
				l, err := p.pool.Acquire(p.ctx)
				if err == nil {
					v, p.held["discard"], p.held["release"] = l.Value, l.Discard, l.Release
				}
				return err
			}, func() { p.giveBack("release") }) + say(v)
		},
		"Release": func(p *part) string { return p.giveBack("lease") },
		"Discard": func(p *part) string { return p.giveBack("discard") + p.giveBack("lease") },
		"Stats": func(p *part) string {
			s := p.pool.Stats() // excludes the counts of a call, which change when it returns, without an operation
			return say([]int{s.Idle, s.Leased, s.Opened})
		},
		"TryAcquire": func(p *part) string {
			return p.wait("lease", func() error {
				l, ok := p.pool.TryAcquire()
				if !ok {
					return errOops
				}
				p.held["discard"], p.held["release"] = l.Discard, l.ReleaseUnused
				return nil
			}, func() { p.giveBack("release") })
		},
		"Reset":  func(p *part) string { p.pool.Reset(); return "" },
		"Expire": func(p *part) string { p.pool.Expire(); return "" },
		"Close":  func(p *part) string { return say(p.pool.Close()) },
	},
	"stm": {
		"Load": func(p *part) string { return say(p.cell.Load()) },
		"add":  func(p *part) string { return say(p.change(func(n int) int { return n + 1 })) },
		"mul":  func(p *part) string { return say(p.change(func(n int) int { return 2 * n })) },
		"wait": func(p *part) string {
			return say(stm.Atomically(p.ctx, func(tx *stm.Tx) error {
				if p.cell.Get(tx) == 1 {
					return stm.Retry
				}
				return nil
			}))
		},
	},
	"scope": {
		"Go": func(p *part) string { return say(recovered(func() { p.group.Go(suspend.Here(), noError) })) },
		"Start": func(p *part) string {
			_, err := scope.Start(p.group, suspend.Here(), func(context.Context) (int, error) { return 1, nil }).Await(bg)
			return say(err)
		},
		"Cancel":   func(p *part) string { p.group.Cancel(nil); return "" },
		"Shutdown": func(p *part) string { return say(p.group.Shutdown(p.ctx)) },
		"Hold": func(p *part) string {
			release, err := p.group.On(nil).(sched.Holder).Hold()
			if err == nil {
				release()
			}
			return say(err)
		},
	},
	"limit": {
		"Go":      func(p *part) string { return say(p.on.Go(func() { suspend.Yield() })) },
		"ScopeGo": func(p *part) string { return say(recovered(func() { p.group.Go(p.on, noError) })) },
		"Cancel":  func(p *part) string { p.group.Cancel(nil); return "" },
	},
	"idle": {
		"Go":       func(p *part) string { return say(p.tasks.Go(func() {})) },
		"GoYield":  func(p *part) string { return say(p.tasks.Go(suspend.Yield)) },
		"Live":     func(p *part) string { return say(p.tasks.Live()) },
		"Idle":     func(p *part) string { return say(p.tasks.Idle()) },
		"WaitIdle": func(p *part) string { return say(p.tasks.WaitIdle(p.ctx)) },
		"Wait":     func(p *part) string { return say(p.tasks.Wait(p.ctx)) },
	},
	"actor": {
		"Send":     func(p *part) string { return say(p.inbox.Ref().Send(p.me)) },
		"SendWait": func(p *part) string { return say(p.inbox.Ref().SendWait(p.ctx, 10+p.me)) },
		"Receive": func(p *part) string {
			if p.me > 0 { // only the owner of an Inbox may use it
				return say(p.inbox.Len())
			}
			return say(p.inbox.Receive(p.ctx))
		},
		"Len":  func(p *part) string { return say(p.inbox.Len()) },
		"Stop": func(p *part) string { p.inbox.Ref().Stop(); return "" },
		"Wait": func(p *part) string { return say(p.inbox.Ref().Wait(p.ctx)) },
	},
	"stage": {
		"Do":        func(p *part) string { return say(p.stage.Do(p.ctx, p.me)) },
		"Submit":    func(p *part) string { return say(p.stage.Submit(p.ctx, p.me)) },
		"TrySubmit": func(p *part) string { return say(p.stage.TrySubmit(p.ctx, p.me)) },
		"Stats": func(p *part) string {
			s := p.stage.Stats()
			return say(s.Accepted, s.Completed, s.Waiting, s.Busy, s.Handlers)
		},
		"Pool": func(p *part) string { s := p.width.Stats(); return say(s.Running, s.Workers, s.Idle) },
	},
	"cancel": {
		"stop": func(p *part) string { p.stop(nil); return "" },
		"Err":  func(p *part) string { return say(suspend.Err(p.scene.ctx)) },
		"Recv": func(p *part) string { return say(p.buffer.Recv(p.stopped())) },
		"Send": func(p *part) string { return say(p.buffer.TrySend(p.me)) },
		"Lock": func(p *part) string {
			return p.wait("mutex", func() error { return p.mutex.LockContext(p.stopped()) }, p.mutex.Unlock)
		},
		"Acquire": func(p *part) string {
			return p.wait("permit", func() error { return p.permits.Acquire(p.stopped(), 1) }, func() { p.permits.Release(1) })
		},
		"Await":  func(p *part) string { return say(p.promise.Await(p.stopped())) },
		"Fill":   func(p *part) string { return say(p.promise.Fill(p.me)) },
		"Unlock": func(p *part) string { return p.giveBack("mutex") + p.giveBack("permit") },
	},
}

// stopped returns the context of the scene for the first task. The second task ends this context.
func (p *part) stopped() context.Context {
	if p.me == 0 {
		return p.scene.ctx
	}
	return p.ctx
}

func (p *part) change(f func(n int) int) (n int, err error) {
	return stm.Do(bg, func(tx *stm.Tx) (int, error) {
		n := f(p.cell.Get(tx))
		p.cell.Set(tx, n)
		return n, nil
	})
}

// The group "mixed" has the operations of all groups that need no tasks.
func init() {
	mixed := map[string]func(p *part) string{}
	for group, ops := range groups {
		for name, op := range ops {
			if !slices.Contains(append(byTasks, "respool", "scope", "actor", "rate"), group) {
				mixed[group+"."+name] = op
			}
		}
	}
	groups["mixed"] = mixed
}

// An agreement compares the two searches for the programs of one group.
type agreement struct {
	t                                            *testing.T
	name                                         string
	most                                         int // a search that needs more runs is not compared
	programs, compared, atOperations, ofAccesses int
}

func (a *agreement) compare(seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(len(a.name))))
	ops := slices.Sorted(maps.Keys(groups[a.name]))
	var parts [2][]string
	for i := range parts {
		for range 1 + r.IntN(3-i) {
			parts[i] = append(parts[i], ops[r.IntN(len(ops))])
		}
	}
	size, cancellations := r.IntN(2), r.IntN(2)
	run := func(c explore.Config) (seen map[string]bool, result explore.Result) {
		seen = map[string]bool{}
		c.Asleep, c.Preemptions, c.Cancellations = true, explore.Unlimited, cancellations
		return seen, explore.Run(c, func(w *explore.World) {
			s := newScene(size)
			var said [2][]string
			for i, ops := range parts {
				w.Go(string(rune('a'+i)), func(ctx context.Context) {
					if !slices.Contains(byTasks, a.name) {
					} else if i == 0 {
						s.make(a.name)
					} else if !s.made.Load() {
						return
					}
					p := &part{scene: s, ctx: ctx, me: i, held: map[string]func(){}}
					for _, op := range ops {
						said[i] = append(said[i], op+"="+groups[a.name][op](p))
					}
					if a.name == "cancel" && i > 0 {
						p.stop(nil) // task a waits with its context
					}
					delete(p.held, "release") // as the operation "lease" does
					for _, what := range slices.Sorted(maps.Keys(p.held)) {
						p.giveBack(what)
					}
				})
			}
			w.Check(func() error { seen[fmt.Sprintf("%q", said)] = true; return nil })
		})
	}
	operations, atOperations := run(explore.Config{Points: true, Yields: 2, Executions: 3 * a.most})
	accesses, ofAccesses := run(explore.Config{Fine: true, Reduced: true, Executions: a.most})
	a.programs++
	a.atOperations += atOperations.Executions
	a.ofAccesses += ofAccesses.Executions
	switch {
	case (atOperations.Failure == nil) != (ofAccesses.Failure == nil):
		a.t.Errorf("seed %d, %v, capacity %d: at operations %v: %v; of accesses %v: %v", seed, parts, size, atOperations, atOperations.Failure, ofAccesses, ofAccesses.Failure)
		return
	case atOperations.Failure != nil || !atOperations.Exhausted || atOperations.Cut.Preemptions || atOperations.Cut.Yields:
		return
	}
	a.compared++
	for outcome := range accesses {
		// At operations, a cancellation is one step. At accesses, a timer may fire in the middle of it, before the cancelled
		// waiter has left the queue of a Limiter, so that other tokens are available.
		timed := strings.Contains(a.t.Name(), "/rate") && strings.Contains(outcome, "canceled")
		if !operations[outcome] && !timed {
			a.t.Errorf("seed %d, %v, capacity %d: at operations, %v, which leave out %s (%v)", seed, parts, size, atOperations, outcome, ofAccesses)
		}
	}
	for outcome := range operations {
		if ofAccesses.Exhausted && !ofAccesses.Cut.Cancellations && !accesses[outcome] {
			a.t.Errorf("seed %d, %v, capacity %d: of accesses, %v, which leave out %s (%v)", seed, parts, size, ofAccesses, outcome, atOperations)
		}
	}
}
