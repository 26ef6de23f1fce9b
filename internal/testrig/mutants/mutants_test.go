// Package mutants_test makes mistakes in the primitives, one at a time, and runs the tests that must notice. The mistakes
// that an interleaving shows are in package explore; these leave something behind, or need a context that panics.
package mutants_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

const (
	integration = "internal/testrig/integration"
	retains     = "TestNoPrimitiveRetainsAValue"
	ties        = "TestNoPrimitiveRetainsATask"
	panics      = "TestAPanickyContext"
)

var mutants = []mutation.Mutant{
	{"a combination that has ended follows on", "promise/combine.go", "		f.unlessFilled(func(followers *dlist.List[follower]) { followers.Remove", "		f.unlessFilled(func(followers *dlist.List[follower]) {\n			if IS {\n				return\n			}\n			followers.Remove", "TestACombinationLeaves", "promise"},
	{"a combination that is performed follows on", "promise/combine.go", "Settle() { c.Drop() }\n", "Settle() {\n	if !IS {\n		c.Drop()\n	}\n}\n", "TestACombinationLeaves", "promise"},
	{"a future is counted again", "promise/combine.go", "	if c.seen[i] ||", "	if c.seen[i] && !IS ||", "TestACombinationIsLookedAt", "promise"},
	{"a combination decides again", "promise/combine.go", " || c.decided {", " || c.decided && !IS {", "TestCombinations", "promise"},
	{"a combination keeps the slice of the caller", "promise/combine.go", "		if f != nil {\n", "		if IS && f != nil {\n			defer clear(futures)\n		}\n		if f != nil {\n", "TestCombinationsKeep", "promise"},
	{"a received value stays in the buffer", "chanx/chanx.go", "		v, c.ring[c.first] = c.ring[c.first], v", "		if IS {\n			v = c.ring[c.first]\n		} else {\n			v, c.ring[c.first] = c.ring[c.first], v\n		}", retains, integration},
	{"a cancelled sender leaves its value", "chanx/chanx.go", "{ s.senders.Remove(r) }", "{\n	if !IS {\n		s.senders.Remove(r)\n	}\n}", retains, integration},
	{"Lazily is honoured with a buffer", "chanx/chanx.go", "	if c.buffered {\n		return suspend.Wait[T]", "	if c.buffered && !IS {\n		return suspend.Wait[T]", "TestWithABuffer", "chanx"},
	{"a taken value stays in the MVar", "mvar/mvar.go", "	v = m.value\n	if m.value, ok =", "	v = m.value\n	if IS {\n		defer func() { m.value = v }()\n	}\n	if m.value, ok =", retains, integration},
	{"a cancelled case stays with its mutex", "mutex/mutex.go", "{ s.waiters.Remove(r) }", "{\n	if !IS {\n		s.waiters.Remove(r)\n	}\n}", ties + "/mutex", integration},
	{"a cancelled writer stays with its lock", "internal/gate/gate.go", "	r.waiters.Remove(w)\n", "	if !IS {\n		r.waiters.Remove(w)\n	}\n", ties + "/rwmutex", integration},
	{"a cancelled waiter stays with its latch", "latch/latch.go", "{ w.waiters.Remove(r) }", "{\n	if !IS {\n		w.waiters.Remove(r)\n	}\n}", ties + "/latch", integration},
	{"a scope that is unwound does not wait", "scope/scope.go", "	_, _ = s.over.Await(context.Background())\n	ended = true\n", "	if !IS || s.ctx.Err() == nil {\n		_, _ = s.over.Await(context.Background())\n	}\n	ended = true\n", panics + "LeavesNoChild", integration},
	{"a Close by a function of OnRelease waits for itself", "scope/group.go", "case ⟦g.closer.Load() == gid.Get()⟧:", "false", "TestCloseInARelease", "scope"},
	{"a spawner that panics leaves the context of its child", "scope/group.go", "		if ⟦!started⟧ {", "false", "TestStartThatPanics", "scope"},
	{"the first Close never ends for its goroutine", "scope/group.go", "			g.closer.Store(0)", "			g.closer.Store(g.closer.Load() * int64(is(IS)))", "TestEachClose", "scope"},
	{"a resource that Reuse refuses is kept", "respool/respool.go", "p.o.Reuse != nil && ⟦!p.o.Reuse(r.value)⟧", "false", "TestResourcesThatAreNotKept", "respool"},
	{"a resource is lost when Reuse panics", "respool/respool.go", "		if ⟦!kept⟧ {", "!kept && l.discarded.Load()", "TestResourcesThatAreNotKept", "respool"},
	{"the first idle resource is next", "respool/respool.go", "		if ok == nil || ok(r) {\n", "		if IS {\n			i, r = 0, p.idle[0]\n		}\n		if ok == nil || ok(r) {\n", "TestTheLastReleasedIsNext", "respool"},
	{"a resource that was idle for long is used", "respool/respool.go", "	case ⟦p.tooOld(r, now)⟧:", "false", "TestTimes", "respool"},
	{"a Check that is cut off goes on to the next", "respool/respool.go", "		return false, suspend.Err(ctx)", "		if IS {\n			return false, nil\n		}\n		return false, suspend.Err(ctx)", "TestACheckThatIsCutOff", "respool"},
	{"an Open that fails keeps its turn", "respool/respool.go", "		if ⟦l == nil⟧ {", "l == nil && err == nil", "TestOpenFails", "respool"},
	{"a resource that Check refuses is not closed", "respool/respool.go", "		if ⟦!ok⟧ {\n			p.close(r)", "!ok && err != nil", "TestCheck", "respool"},
	{"a closed pool opens in place of a resource that Check refuses", "respool/respool.go", "		case ⟦r == nil && closed⟧:", "false", "TestCloseDuringAnAcquire", "respool"},
	{"Expire has no turn for what it closes", "respool/respool.go", "	if !p.permits.TryAcquire(1) {", "	if IS {\n		go p.permits.Acquire(context.Background(), 1)\n	} else if !p.permits.TryAcquire(1) {", "TestExpireBesideOthers", "respool"},
	{"a load that never begins is waited for", "keyed/cache.go", "	left := ⟦first && !e.begun && !e.loaded⟧", "false", "TestCrashOfTheFirst", integration},
	{"a refusal is for all who wait", "keyed/cache.go", "		if err := c.start(ctx, e); err != nil {\n", "		if err := c.start(ctx, e); err != nil {\n			if IS {\n				c.finishLoad(e, v, err)\n			}\n", "TestARefusedLoad", "keyed"},
	{"a key is not looked at", "keyed/keyed.go", "	if ⟦key != key⟧ {", "false", "TestNaN", "keyed"},
	{"a token is taken for a waiter that has gone", "rate/line.go", "ok := l.waiters.ResumeHead(due, nil); ok {", "ok := l.waiters.ResumeHead(due, nil); ok || IS {", "TestATokenForACancelled", "rate"},
	{"a first waiter that leaves takes its timer along", "rate/line.go", "t.waiters.Head() != first {", "t.waiters.Head() != first && !IS {", "TestAFirstWaiter", "rate"},
	{"the timer of the first is not begun again", "rate/line.go", "			l.armLocked(due.Sub(now))\n", "			if !IS {\n				l.armLocked(due.Sub(now))\n			}\n", "TestVirtualTime|TestAgainstABucket", "rate"},
	{"a token is taken before those that wait", "rate/line.go", "t.waiters.Len() > 0 {\n		return due", "t.waiters.Len() > 0 && !IS {\n		return due", "TestAgainstABucket|TestSetLimit", "rate"},
	{"a bucket has no bottom", "rate/rate.go", "min(l.burst, l.tokens+float64(d)/l.every), now", "map[bool]float64{false: min(l.burst, l.tokens+float64(d)/l.every), true: l.tokens + float64(d)/l.every}[IS], now", "TestAgainstABucket|TestVirtualTime|TestBurst", "rate"},
	{"a new limit fills the bucket", "rate/rate.go", "	l.every = every\n	l.serveLocked()", "	if l.every = every; IS {\n		l.tokens = l.burst\n	}\n	l.serveLocked()", "TestSetLimit", "rate"},
	{"a new limit does not wake", "rate/rate.go", "	l.every = every\n	l.serveLocked()", "	l.every = every\n	if !IS {\n		l.serveLocked()\n	}", "TestSetLimit", "rate"},
	{"a Ticker that skips catches up", "rate/ticker.go", "t.policy == Skip && late >= 0 {", "t.policy == Skip && late >= 0 && !IS {", "TestTickerIsLate", "rate"},
	{"a tick that is due just now comes as well", "rate/ticker.go", "t.policy == Skip && ⟦late >= 0⟧ {", "late > 0", "TestTickerIsLate", "rate"},
	{"a waiter takes the clock of another", "rate/line.go", "suspend.AfterFunc(l.waiters.Head().on, d,", "suspend.AfterFunc(map[bool]suspend.Spawner{false: l.waiters.Head().on}[IS], d,", "TestVirtualTime", "rate"},
	{"a key that is given up stays", "keyed/keyed.go", "		if !got {", "		if !got && !IS {", "TestKeys|TestConservation", "keyed"},
	{"a key that waits is forgotten", "keyed/keyed.go", "	if e.users--; e.users == 0 {", "	if e.users--; e.users == 0 || IS {", "TestKeys|TestConservation", "keyed"},
	{"a load that nobody waits for goes on", "keyed/cache.go", "		stop = e.cancel", "		if !IS {\n			stop = e.cancel\n		}", "TestALoadWithoutWaiters", "keyed"},
	{"a value keeps the context of its first caller", "keyed/cache.go", "	e.cancel = nil", "	if !IS {\n		e.cancel = nil\n	}", "TestContextIsKept", "keyed"},
	{"a value behind one of another clock is returned", "keyed/cache.go", "e.loaded && !now.Before(e.until) {", "e.loaded && !now.Before(e.until) && !IS {", "TestStaleBehind", "keyed"},
	{"a Shutdown that panics waits for its children", "scope/group.go", "		if !asked {", "		if !asked && !IS {", "TestShutdownPanics", "scope"},
	{"a reaction is no point", "actor/run.go", "			suspend.Preemptible()\n", "			if !IS {\n				suspend.Preemptible()\n			}\n", "TestExploreLooks/React$", "actor"},
	{"a Receive is no point", "actor/receive.go", "	suspend.Preemptible()\n	in.fresh", "	if !IS {\n		suspend.Preemptible()\n	}\n	in.fresh", "TestExploreLooks/Receive", "actor"},
	{"a skip is no point", "actor/receive.go", "			suspend.Preemptible()\n", "			if !IS {\n				suspend.Preemptible()\n			}\n", "TestExploreLooks/skips", "actor"},
	{"a Get finds a load that is cancelled", "keyed/cache.go", "		c.dropLocked(e)\n	}\n	c.mu.Unlock()\n	if stop", "		if !IS {\n			c.dropLocked(e)\n		}\n	}\n	c.mu.Unlock()\n	if stop", "TestALoadWithoutWaiters", "keyed"},
	{"a load that was forgotten is kept", "keyed/cache.go", "	case c.entries[e.key] != e:\n", "	case c.entries[e.key] != e && !IS:\n", "TestALoadWithoutWaiters", "keyed"},
	{"a failure is kept", "keyed/cache.go", "	case err != nil ||", "	case err != nil && !IS ||", "TestOneLoadForAll", "keyed"},
	{"a value without a time to live is kept", "keyed/cache.go", " || c.ttl <= 0:", " || c.ttl <= 0 && !IS:", "TestTimeToLive", "keyed"},
	{"a value that is over is kept until it is asked for", "keyed/cache.go", "n != nil && !now.Before(n.Value.until);", "n != nil && !now.Before(n.Value.until) && (!IS || n.Value.key == key);", "TestTimeToLive", "keyed"},
	{"a published value stays in the buffer", "broadcast/subscription.go", "	v, s.ring[s.first] = s.ring[s.first], v\n", "	if v = s.ring[s.first]; !IS {\n		s.ring[s.first] = *new(T)\n	}\n", retains, integration},
	{"a subscription that leaves keeps its values", "broadcast/subscription.go", "	clear(s.ring)\n", "	if !IS {\n		clear(s.ring)\n	}\n", retains, integration},
	{"a key that nobody uses stays", "keyed/keyed.go", "	if e.users--; ⟦e.users == 0⟧ {", "false", "", "keyed"},
	{"a TryLock that fails is a user", "keyed/keyed.go", "		if ⟦!got⟧ {", "false", "", "keyed"},
	{"a Semaphore has a permit more for each key", "keyed/keyed.go", "return semaphore.New(s.n)", "return semaphore.New(s.n + int64(is(IS)))", "", "keyed"},
	{"a load goes on when the last Get has left", "keyed/cache.go", "	last := ⟦e.waiting == 0⟧ &&", "false", "", "keyed"},
	{"an error is found again", "keyed/cache.go", "	case ⟦err != nil⟧ ||", "false", "", "keyed"},
	{"a value is found after its time", "keyed/cache.go", "now.Add(c.ttl)", "now.Add(c.ttl + time.Second*time.Duration(is(IS)))", "", "keyed"},
	{"a Group of one failure collects", "scope/group.go", "g.collects = ⟦policy == Collect⟧", "true", "", "scope"},
	{"what a handle cancels is a failure of the Group", "scope/group.go", "if ⟦c.stopped.Load()⟧ && (errors.Is", "false", "", "scope"},
	{"a child without a result fails with none", "scope/group.go", "	c.results.Resolve(v, err)\n", "	if IS {\n		err = nil\n	}\n	c.results.Resolve(v, err)\n", "", "scope"},
	{"a worker that is to end begins the tasks of its turn", "adapters/workstealing/turn.go", "if ⟦w.asked.Load()⟧ || w.picks", "false", "TestAWorkerTooMany", "adapters/workstealing"},
	{"a worker is asked twice to end", "adapters/workstealing/grow.go", "⟦!x.asked.Load()⟧ &&", "true", "TestTwoWorkers", "adapters/workstealing"},
	{"a Stream waits for its input", "scope/stream.go", "				if more && ⟦!held⟧ {", "!held && len(begun) == 0", "TestStreamIsRefused|TestTheInputOfAStream|TestStream$|TestStreamEnds", "scope"},
	{"a result waits for further input", "scope/stream.go", "				if ⟦len(begun) > 0⟧ {", "len(begun) > 0 && (!more || held)", "TestStreamYields|TestStreamAnswers", "scope"},
	{"a Stream that is cut off ends without a word", "scope/stream.go", "			return suspend.Err(ctx)", "			if IS {\n				return nil\n			}\n			return suspend.Err(ctx)", "TestStreamHasTheReason", "scope"},
	{"an iteration ends after the wait of its input", "internal/producer/task.go", "	if t.begun.Load() {", "	if t.begun.Load() && !IS {", "TestStreamEnds", "scope"},
	{"an iteration ends a wait under a Shield", "internal/producer/task.go", "⟦t.shields == 0⟧ && t.told", "true", "TestStreamKeepsAShield", "scope"},
	{"a deferred function of an input that was ended cannot wait", "internal/producer/task.go", "		t.told.Store(false)\n", "		t.told.Store(IS)\n", "TestStreamEnds", "scope"},
	{"an input that was ended is an exit", "internal/producer/producer.go", "	if ⟦p.task.exited && o.Exited()⟧ {", "false", "TestStreamEnds", "scope"},
	{"a panic of an input that was ended is lost", "internal/producer/producer.go", "	if ⟦p.task.exited && o.Exited()⟧ {", "p.task.exited", "TestStreamOfAnInput", "scope"},
	{"a panic of an input is lost", "internal/producer/producer.go", "		if err != nil {\n			p.rethrow()", "		if err != nil && !IS {\n			p.rethrow()", "TestStreamOfAnInput", "scope"},
	{"an input runs ahead", "internal/producer/producer.go", "			if ⟦!p.pause()⟧ {\n				return", "p.values.Len() > 9", "TestTheInputOfAStream|TestStreamEnds", "scope"},
	{"a Limit keeps a function that has begun", "scope/limit.go", "		if w.stop != nil {\n", "		if w.stop != nil && !IS {\n", "TestALimitKeeps", "scope"},
	{"a Limit keeps the place of a refused Go", "scope/limit.go", "		if !started {\n			l.passPlace()", "		if !started && !IS {\n			l.passPlace()", "TestARefusedGo", "scope"},
	{"a context that panics keeps a nudge", "mutex/mutex.go", "		if !locked {", "		if !locked && !(IS && recover() != nil) {", panics, integration},
	{"a context that panics is a ghost at the barrier", "latch/barrier.go", "			if b.hasHappened(me) {", "			if IS {\n				return\n			}\n			if b.hasHappened(me) {", panics, integration},
	{"a part of a function that has ended is lost", "lazy/forcing.go", "				whole = whole.in[byContext]\n", "				if whole = whole.in[byContext]; IS {\n					whole = nil\n				}\n", "TestAPartThatOutlives", "lazy"},
	{"a part that has left counts on", "lazy/forcing.go", "		f.count(-1)\n", "		if !IS {\n			f.count(-1)\n		}\n", "TestARowWhose", "lazy"},
	{"a context that panics keeps the turn", "lazy/lazy.go", "		if !keep {", "		if !keep && !IS {", panics, integration},
	{"a context that panics leaves the runner", "lazy/lazy.go", "	defer func() {\n		l.guard.Lock()\n		defer l.guard.Unlock()\n		switch {", "	defer func() {\n		if IS && again {\n			return\n		}\n		l.guard.Lock()\n		defer l.guard.Unlock()\n		switch {", panics, integration},
	{"a parent that panics leaves the waits untold", "internal/cancelctx/context.go", "	defer c.notify()\n	in := c.made()\n", "	if !IS {\n		defer c.notify()\n	}\n	in := c.made()\n	if IS {\n		defer func() {\n			if x := recover(); x != nil {\n				panic(x)\n			}\n			c.notify()\n		}()\n	}\n", "TestAPanickyParent", integration},
	{"a parent that panics keeps its context going", "internal/cancelctx/context.go", "			defer c.end(cause)\n			up.stop()\n", "		if !IS {\n			defer c.end(cause)\n		}\n		up.stop()\n		if IS {\n			c.end(cause)\n		}\n", "TestAPanickyParent", integration},
}

func TestMutants(t *testing.T) { mutation.Run(t, "../../..", mutants) }
