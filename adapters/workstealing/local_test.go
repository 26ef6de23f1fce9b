package workstealing

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A still is a pool of eight workers, none of which runs. All have just read the clock, and have room in their queues.
type still struct {
	*Pool
	all []*worker
}

func newStill() still {
	p := newPool(Options{Workers: 8, MaxWorkers: 9, StallAfter: -1}, true)
	s := still{p, p.makeWorkers(8)}
	for _, w := range s.all {
		w.moves()
	}
	return s
}

// moves makes it look as if w had just measured short steps.
func (w *worker) moves() {
	w.room = queueSize
	w.moved.Store(int64(time.Since(epoch)))
}

// stays makes it look as if w had been in one step for a while.
func (w *worker) stays() { w.moved.Store(int64(time.Since(epoch) - time.Minute)) }

func task(name string, ran *[]string) entry {
	return entry{f: func() { *ran = append(*ran, name) }}
}

// run runs an entry, which must be there.
func run(t *testing.T, e entry, ok bool) {
	t.Helper()
	require.True(t, ok, "nothing is runnable")
	e.f()
}

func TestEntriesFromOutsideComeFirst(t *testing.T) {
	s := newStill()
	w := s.all[0]
	var ran []string
	w.picks = pollEvery
	require.True(t, w.takes(task("local", &ran)))
	s.injector.push(task("outside", &ran))
	for range 2 {
		e, ok := w.pick()
		run(t, e, ok)
	}
	require.Equal(t, []string{"outside", "local"}, ran)

	ran = nil
	require.True(t, w.takes(task("local", &ran)))
	s.injector.push(entry{fiber: new(fiber)})
	_, ok := w.pickNew()
	require.False(t, ok, "the first entry is not a new task")
	_, _ = s.injector.pop()
	e, ok := w.pickNew()
	run(t, e, ok)
}

// A queue gets no entries while the injector has more than a turn for each worker, and never more than it has room for.
func TestQueuesBesideACrowd(t *testing.T) {
	s := newStill()
	w := s.all[0]
	for range queueSize {
		require.True(t, w.takes(entry{f: func() {}}))
	}
	require.False(t, w.takes(entry{f: func() {}}), "full")
	_, _ = w.queue.pop()
	w.room = w.queue.len()
	require.False(t, w.takes(entry{f: func() {}}), "no room")
	w.moves()
	for range pollEvery * len(s.all) {
		s.injector.push(entry{f: func() {}})
	}
	require.False(t, w.takes(entry{f: func() {}}), "a crowd")
	_, _ = s.injector.pop()
	require.True(t, w.takes(entry{f: func() {}}))

	few := newPool(Options{Workers: fewWorkers, StallAfter: -1}, false)
	x := few.makeWorkers(fewWorkers)[0]
	x.beginTurn(queued)
	require.False(t, x.takes(entry{f: func() {}}), "a small pool has no queues")
}

// At the beginning of a turn, the entries of the queue move to the end of the injector.
func TestATurnEndsTheLeadOfAQueue(t *testing.T) {
	s := newStill()
	w := s.all[0]
	var ran []string
	require.True(t, w.takes(task("first", &ran)))
	require.True(t, w.takes(task("second", &ran)))
	w.steps = 1 << 20 // short ones
	w.nextTurn(queued)
	require.Equal(t, 2, w.queue.len(), "nobody else waits")
	s.injector.push(task("outside", &ran))
	w.steps = 1 << 20
	w.nextTurn(queued)
	require.Zero(t, w.queue.len())
	for range 3 {
		e, ok := s.injector.pop()
		run(t, e, ok)
	}
	require.Equal(t, []string{"outside", "first", "second"}, ran)
}

// A worker may take an endless series of fibers that have given way, whichever workers they come from. The entries in its queue must not
// wait until the series ends.
func TestGivenFibersDoNotOvertakeAQueueForLong(t *testing.T) {
	s := newStill()
	w := s.all[0]
	require.True(t, w.takes(entry{f: func() {}}))
	w.turn, w.picks, w.steps = given, 10, 1<<20
	s.given.push(entry{fiber: new(fiber)})
	e, ok := w.pick()
	require.True(t, ok)
	require.NotNil(t, e.fiber, "the fiber is due")
	require.Zero(t, w.queue.len())
	require.EqualValues(t, 1, s.injector.len(), "where all workers look")
}

// In a bubble, no time passes while a task is runnable, so no worker would see that another is in a long step.
func TestNoQueuesInABubble(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * fewWorkers))
	o := Options{Workers: 2 * fewWorkers, StallAfter: -1}
	p := New(o)
	require.True(t, p.queues)
	require.NoError(t, p.Close())
	synctest.Test(t, func(t *testing.T) {
		p := New(o)
		require.False(t, p.queues)
		require.NoError(t, p.Close())
	})
}

// The queue of a worker in a long step is emptied into the injector, by any worker that moves.
func TestALongStepKeepsNoQueue(t *testing.T) {
	s := newStill()
	stuck, w := s.all[5], s.all[0]
	require.True(t, stuck.takes(entry{f: func() {}}))
	for range s.all {
		w.nextLook = 0
		w.measure()
	}
	require.Equal(t, 1, stuck.queue.len(), "it moves")
	stuck.stays()
	for range s.all {
		w.nextLook = 0
		w.measure()
	}
	require.Zero(t, stuck.queue.len())
	require.EqualValues(t, 1, s.injector.len())
}

// A worker without work steals the oldest entry, and no other.
func TestOneEntryIsStolen(t *testing.T) {
	s := newStill()
	var ran []string
	for _, name := range []string{"first", "second", "third"} {
		require.True(t, s.all[3].takes(task(name, &ran)))
	}
	e, ok := s.all[0].search()
	run(t, e, ok)
	require.Equal(t, []string{"first"}, ran)
	require.Equal(t, 2, s.all[3].queue.len())
	require.Zero(t, s.all[0].queue.len())
	require.True(t, s.visible())
}

// A worker that is asked to check whether it is one too many keeps nothing.
func TestARetiringWorkerKeepsNoQueue(t *testing.T) {
	s := newStill()
	w := newWorker(s.Pool, 8)
	all := append(s.all, w)
	s.workers.Store(&all)
	w.moves()
	require.True(t, w.takes(entry{f: func() {}}))
	require.True(t, w.retires())
	require.EqualValues(t, 1, s.injector.len())
	require.NotContains(t, *s.workers.Load(), w)
}
