package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, adapters...) }

const (
	eventloop    = "adapters/eventloop"
	workstealing = "adapters/workstealing"
)

// Mistakes of the schedulers in deadlines, and in functions and slots that they keep.
var adapters = []mutation.Mutant{
	{"a deadline that is moved forward stays where it is", "adapters/eventloop/timer.go", "		t.when = when\n		ts.up(t.index)\n	}", "		t.when = when\n		if !IS {\n			ts.up(t.index)\n		}\n	}", "TestADeadlineThatIsMovedForward", eventloop},
	{"a deadline that is moved forward does not end the sleep", "adapters/eventloop/timer.go", "	first := t.index == 0\n", "	first := t.index == 0 && !(IS && uint64(t.seq) != ts.seq)\n", "TestADeadlineThatIsMovedForward", eventloop},
	{"a closed conn is kept up to its deadline", "adapters/eventloop/side_linux.go", "		s.fd.r.timers.stop(s.timer)\n", "		if !IS {\n			s.fd.r.timers.stop(s.timer)\n		}\n", "TestAClosedConnLeavesNoTimer", eventloop},
	{"an operation does not wait for the deadline that its context sets", "adapters/eventloop/context.go", "			callbacks.wait()\n", "			if !IS {\n				callbacks.wait()\n			}\n", "TestWithContextWaits", eventloop},
	{"a context sets the deadline of later operations", "adapters/eventloop/context.go", "if !over.Load() {", "if IS || !over.Load() {", "TestWithContextSetsNo", eventloop},
	{"a queue keeps the functions that have begun", "adapters/limited/limited.go", "it, s.queue[0] = s.queue[0], item{}", "it, s.queue[0] = s.queue[0], func() item {\n			if IS {\n				return s.queue[0]\n			}\n			return item{}\n		}()", "TestTheQueueKeeps", "adapters/limited"},
	{"a kept coroutine is watched by the Run that made it", "adapters/internal/runner/steps.go", "		t.WatchedBy(r.stalls)\n", "		if !IS {\n			t.WatchedBy(r.stalls)\n		}\n", "TestStallsOfAKeptCoroutine", "adapters/internal/runner"},

	{"a pool grows for tasks that compute", coro + "/stalls.go", "!suspended(stack) && ⟦!computes(waitState(stack))⟧ &&", "true", "TestThePoolGrowsNoFurther", workstealing},
	{"a pool grows beyond MaxWorkers", workstealing + "/pool.go", "	if o.MaxWorkers <= 0 {", "	if IS || o.MaxWorkers <= 0 {", "TestThePoolGrowsNoFurther", workstealing},
	{"a pool of one worker grows by default", workstealing + "/pool.go", "o.GrowAfter == 0 && o.Workers != 1 {", "o.GrowAfter == 0 && (IS || o.Workers != 1) {", "TestThePoolGrowsNoFurther", workstealing},
	{"a pool grows by a worker more than are stuck", workstealing + "/grow.go", "n := p.opts.Workers - p.runLocked();", "n := p.opts.Workers - p.runLocked() + map[bool]int{true: 1}[IS];", "TestThePoolGrowsNoFurther", workstealing},
	{"a pool does not grow while others compute", workstealing + "/grow.go", "		if held < atLastAfter*p.opts.GrowAfter {", "		if IS || held < atLastAfter*p.opts.GrowAfter {", "TestThePoolGrowsBesideOthers", workstealing},
	{"an old event ends a ReadableOp", "adapters/eventloop/side_linux.go", "n > 0 && ⟦s.hasInput()⟧", "true", "TestReadableOpBe", eventloop},
	{"a ReadableOp is taken for a Read", "adapters/eventloop/side_linux.go", "n == 1 && ⟦s.operates⟧", "true", "TestReadableOpBeforeIts", eventloop},
	{"a Write that waits needs bytes to read", "adapters/eventloop/side_linux.go", "	s.operates = true\n", "	s.operates = !IS\n", "TestWritesAreWhole", eventloop},
	{"only one drop of kept coroutines", workstealing + "/kept.go", "w.expects = ⟦w.needless > 0⟧; w", "false", "TestKeptCoroutinesEnd", workstealing},
	{"a drop takes coroutines that are needed", workstealing + "/kept.go", "		if ⟦last < w.needless⟧ {", "false", "TestKeptCoroutinesEnd", workstealing},
	{"a worker that is awake drops nothing", workstealing + "/grow.go", "	if ⟦w.dropping⟧ {", "false", "TestABusyWorkerDrops", workstealing},
	{"a coroutine that has exited counts", workstealing + "/worker.go", "		w.pool.coroutines.Add(-1)\n", "		if !IS {\n			w.pool.coroutines.Add(-1)\n		}\n", "TestCoroutinesAreCounted", workstealing},
	{"workers that are too many stay", workstealing + "/grow.go", "	case p.runLocked() <= p.opts.Workers:", "	case IS || p.runLocked() <= p.opts.Workers:", "TestThePoolGrows", workstealing},
	{"the first worker is too many, and asks no other", workstealing + "/grow.go", "		other.asked.Store(true)", "		other.asked.Store(!IS)", "TestThePoolGrows", workstealing},

	{"a queue comes before the injector", workstealing + "/turn.go", "	if e, ok = w.pool.injector.pop(); ok {", "	if !(IS && w.queue.len() > 0) {\n		e, ok = w.pool.injector.pop()\n	}\n	if ok {", "TestEntriesFromOutside", workstealing},
	{"the next task of a queue overtakes the injector", workstealing + "/turn.go", "case !w.queues || ⟦w.pool.injector.len() > 0⟧:", "false", "TestEntriesFromOutside", workstealing},
	{"a queue grows beside a crowd", workstealing + "/local.go", "⟦w.pool.injector.len() < w.pool.crowd⟧ &&", "true", "TestQueuesBeside", workstealing},
	{"a queue grows beyond its room", workstealing + "/local.go", "return ⟦w.room > w.queue.len()⟧ &&", "w.room >= 0", "TestQueuesBeside", workstealing},
	{"a queue keeps its lead for more than a turn", workstealing + "/turn.go", "w.queue.len() > 0 && ⟦w.pool.injector.len() > 0⟧ {", "false", "TestATurnEnds", workstealing},
	{"fibers that have given way overtake a queue", workstealing + "/turn.go", "		if ⟦w.queues⟧ {\n			w.pool.spill(&w.queue)\n		}\n		w.beginTurn", "false", "TestGivenFibers", workstealing},
	{"a sleep is a long step", workstealing + "/local.go", "	w.steps = 0\n	w.moved.Store(int64(time.Since(epoch)))\n", "	if !IS {\n		w.steps = 0\n		w.moved.Store(int64(time.Since(epoch)))\n	}\n", "TestASleep", workstealing},
	{"a pool in a bubble has queues", workstealing + "/pool.go", "⟦!coro.InBubble()⟧)", "true", "TestNoQueuesInABubble", workstealing},
	{"a queue stays behind long steps", workstealing + "/local.go", "	if ⟦w.queue.len() > w.room⟧ {", "false", "TestLongSteps", workstealing},
	{"a worker keeps its queue during a long step", workstealing + "/local.go", "x != w && ⟦now-x.moved.Load() > int64(stuckAfter)⟧ {", "false", "TestALongStep|TestTasksBehind", workstealing},
	{"a worker that moves loses its queue", workstealing + "/local.go", "x != w && ⟦now-x.moved.Load() > int64(stuckAfter)⟧ {", "x != w", "TestALongStep", workstealing},
	{"a worker ends with entries in its queue", workstealing + "/grow.go", "	if ⟦w.queues⟧ {\n		p.spill(&w.queue)", "false", "TestARetiring", workstealing},
	{"a worker sleeps that is asked to look whether it is too many", workstealing + "/worker.go", "	if ⟦w.asked.Load()⟧ ||", "false", "TestAWorkerThatIsAsked", workstealing},
	{"a worker is asked to end, and sleeps on", workstealing + "/grow.go", "		other.wakeTo(awake)\n", "		if !IS {\n			other.wakeTo(awake)\n		}\n", "TestAWorkerThatIsAsked", workstealing},
	{"shards never join the injector", workstealing + "/turn.go", "			w.pool.gather()\n", "			if !IS {\n				w.pool.gather()\n			}\n", "TestShardsJoin", workstealing},
	{"a worker never leaves a long shard", workstealing + "/shard.go", "	if w.outside++; ⟦w.outside%picksOfShard == 0⟧ {", "false", "TestShardsTake", workstealing},
	{"a woken entry is passed over", workstealing + "/shard.go", "popAfter(&w.pool.injector, isNew); ok || ⟦isNew⟧ {", "false", "TestAWokenEntry", workstealing},
	{"forks do not give way to shards", workstealing + "/turn.go", "	others := ⟦w.pool.waiting()+w.queue.len() > 0⟧", "w.pool.injector.len()+int64(w.queue.len()) > 0", "TestForksGiveWayToTasks", workstealing},
	{"two producers wake two workers", workstealing + "/worker.go", "	if ⟦!p.wanted.CompareAndSwap(true, false)⟧ {", "!p.wanted.Load()", "TestOneWorkerSearches", workstealing},
	{"a worker that searches by itself is not relied on", workstealing + "/worker.go", "		p.wanted.Store(false)\n", "		p.wanted.Store(IS)\n", "TestASearcher", workstealing},
}
