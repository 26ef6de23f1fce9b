package workstealing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// push adds an entry to a shard, as a goroutine outside does whose shard it is.
func (s still) push(shard int, e entry) { s.shards[shard].push(e) }

// The tasks of a goroutine outside stay in order, whether a worker takes them from the shard or has moved some to the injector. A pool without
// shards has the same order.
func TestAGoroutinesTasksStayInOrder(t *testing.T) {
	small := newPool(Options{Workers: fewWorkers, StallAfter: -1}, false)
	for name, s := range map[string]still{"large": newStill(), "small": {small, small.makeWorkers(fewWorkers)}} {
		t.Run(name, func(t *testing.T) {
			const n = 3 * queueSize
			w := s.all[0]
			var ran []int
			for i := range n {
				require.NoError(t, s.Go(func() { ran = append(ran, i) }))
				if i == queueSize {
					s.gather()
				}
			}
			w.picks = 2 * n
			for i := range n {
				e, ok := w.pick()
				require.True(t, ok)
				e.f()
				require.Equal(t, i, ran[i])
			}
			require.Zero(t, s.waiting())
			require.EqualValues(t, n, s.live.Live(), "until the worker counts their ends")
		})
	}
}

// Goroutines outside have different shards, and a shard has the entries of all kinds.
func TestGoroutinesHaveShards(t *testing.T) {
	s := newStill()
	for range 64 {
		done := make(chan int)
		go func() {
			defer close(done)
			_ = s.Go(func() {})
			_ = s.Execute(func() {})
			sleeper := &fiber{pool: s.Pool}
			sleeper.state.Store(parked)
			sleeper.Unpark()
		}()
		<-done
	}
	used := 0
	for i := range s.shards {
		n := s.shards[i].len()
		require.Zero(t, n%3, "a goroutine has one shard")
		if n > 0 {
			used++
		}
	}
	require.Greater(t, used, numShards/2)
	require.Zero(t, s.injector.len())
	require.Equal(t, 3*64, s.waiting())
	require.True(t, s.visible())
}

// A worker takes from the shards in rotation, so a long one does not keep others waiting.
func TestShardsTakeTurns(t *testing.T) {
	s := newStill()
	w := s.all[0]
	var ran []string
	for range 2 * picksOfShard {
		s.push(3, task("long", &ran))
	}
	s.push(5, task("short", &ran))
	w.picks = pollEvery
	for range picksOfShard + 1 {
		e, ok := w.pick()
		run(t, e, ok)
	}
	require.Contains(t, ran, "short")
}

// Turns of any length, with tasks that end without a suspension, let a worker go on to the next shard.
func TestShardsTakeTurnsInTurnsOfAnyLength(t *testing.T) {
	for length := 1; length <= pollEvery; length++ {
		s := newStill()
		w := s.all[0]
		overtaken, isTaken := 0, false
		s.push(5, entry{f: func() { isTaken = true }})
		w.shard = 3
		for !isTaken {
			for len(s.shards) > 0 && s.shards[3].len() < 2 {
				s.push(3, entry{f: func() { overtaken++ }})
			}
			if w.picks--; w.picks <= 0 {
				w.picks = length
			}
			e, ok := w.takeOutside(w.picks > 1)
			run(t, e, ok)
			require.Less(t, overtaken, 4*picksOfShard, "turns of %d picks", length)
		}
	}
}

// A move of entries from the shards to the injector is no progress.
func TestAMoveIsNoProgress(t *testing.T) {
	s := newStill()
	for range 5 {
		s.push(1, entry{f: func() {}})
	}
	s.gather()
	watched := (*common)(s.Pool)
	require.Equal(t, [2]int{0, 5}, [2]int{watched.Passed(), watched.Waiting()})
	_, _ = s.all[0].pick()
	require.Equal(t, [2]int{1, 4}, [2]int{watched.Passed(), watched.Waiting()})
}

// A fiber at the head of a shard is not passed over by a worker that wants new tasks.
func TestAWokenEntryIsNextInItsShard(t *testing.T) {
	s := newStill()
	w := s.all[0]
	w.picks = pollEvery
	s.push(1, entry{fiber: new(fiber)})
	for range 4 {
		s.push(2, entry{f: func() {}})
	}
	w.shard = 1
	_, ok := w.pickNew()
	require.False(t, ok)
	e, ok := w.pick()
	require.True(t, ok)
	require.NotNil(t, e.fiber)
	_, ok = w.pickNew()
	require.True(t, ok, "a new task is next")
}

// What the worker has itself comes first, but only until its turn ends: then the shards come before its queue, and behind the injector.
func TestShardsJoinTheInjector(t *testing.T) {
	s := newStill()
	w := s.all[0]
	var ran []string
	s.push(7, task("outside", &ran))
	s.injector.push(task("injector", &ran))
	require.True(t, w.takes(task("local", &ran)))
	w.steps = 1 << 20 // short ones
	w.nextTurn(queued)
	for range 3 {
		e, ok := w.pick()
		run(t, e, ok)
	}
	require.Equal(t, []string{"injector", "outside", "local"}, ran)

	s.push(7, task("outside", &ran))
	w.steps = 1 << 20
	w.nextTurn(queued)
	require.Zero(t, s.injector.len(), "w has nothing else, so it takes the entry from the shard")
	e, ok := w.pick()
	run(t, e, ok)
}

// A producer wakes one worker, and no other while that one searches. When the first has found work, it wakes the next for the rest.
func TestOneWorkerSearches(t *testing.T) {
	s := newStill()
	for _, w := range s.all {
		w.mode.Store(asleep)
	}
	modes := func() [2]int { search, sleep := s.modes(); return [2]int{search, sleep} }
	require.True(t, s.want())
	require.NoError(t, s.Go(func() {}))
	require.NoError(t, s.Go(func() {}))
	require.Equal(t, [2]int{1, 7}, modes())
	require.False(t, s.want())
	_, ok := s.all[0].search()
	require.True(t, ok)
	require.Equal(t, [2]int{1, 6}, modes())
	_, ok = s.all[1].search()
	require.True(t, ok)
	require.Equal(t, [2]int{0, 6}, modes(), "nothing is left")
	require.True(t, s.wanted.Load())
}

// A worker that searches by itself is relied on, too.
func TestASearcherIsEnough(t *testing.T) {
	s := newStill()
	s.all[3].mode.Store(asleep)
	require.True(t, s.want())
	_, ok := s.all[0].search()
	require.False(t, ok)
	require.False(t, s.wanted.Load())
	require.NoError(t, s.Go(func() {}))
	require.Equal(t, asleep, s.all[3].mode.Load())
}

// A worker that is asked to look whether it is superfluous does so at once, also from its sleep.
func TestAWorkerThatIsAskedDoesNotSleep(t *testing.T) {
	s := newStill()
	w := newWorker(s.Pool, 8)
	all := append(s.all, w)
	s.workers.Store(&all)
	w.mode.Store(asleep)
	require.False(t, s.all[0].retires(), "the first worker stays")
	require.Equal(t, awake, w.mode.Load())
	require.True(t, w.asked.Load())
	require.True(t, w.sleep(), "it returns")
}
