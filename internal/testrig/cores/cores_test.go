package cores_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var processors = []int{1, 2, 4, 8, 16}

// The steps of a For took these times in the run on sixteen, by the number of processors.
var step = map[int]time.Duration{1: 1345, 2: 1440, 4: 1440, 8: 1520, 16: 1680}

// locking returns the time for each of 10,000 times lock, unlock, and a step without the lock, by a thread on each core, and the least and the
// most of three runs. It adds up what the machines count.
func locking(cores int, anew func() locker, counts map[string]int) (mean, least, most time.Duration) {
	const n, seeds = 10_000, 3
	for seed := range seeds {
		l := anew()
		fs := make([]func(*thread), cores)
		for i := range fs {
			fs[i] = func(t *thread) {
				for range n / cores {
					l.lock(t)
					l.unlock(t)
					t.spend(t.about(step[cores]))
				}
			}
		}
		m := run(uint64(seed), cores, fs...)
		each := m.now / n
		mean, most = mean+each, max(most, each)
		if least == 0 || each < least {
			least = each
		}
		for what, k := range m.counts {
			counts[what] += k
		}
	}
	return mean / seeds, least, most
}

func std() locker { return newSyncMutex() }

func with(p policy) func() locker {
	if p.patience == nil {
		p.patience = func(int) int { return 4 }
	}
	return func() locker { return newBraidMutex(p) }
}

// TestTheRunOnSixteen compares the model with the run on sixteen processors (docs/maintainers/analysis.md), in nanoseconds: with a mutex.Mutex
// as it was then, which did not release the lock by an addition.
func TestTheRunOnSixteen(t *testing.T) {
	measured := map[string][]time.Duration{"sync.Mutex": {1347, 815, 382, 204, 225}, "mutex.Mutex": {1355, 834, 394, 552, 584}}
	for name, anew := range map[string]func() locker{"sync.Mutex": std, "mutex.Mutex": with(policy{})} {
		counts := map[string]int{}
		for i, cores := range processors {
			mean, least, most := locking(cores, anew, counts)
			t.Logf("%-11s %2d cores: modelled %4d (%d to %d), measured %4d", name, cores, mean, least, most, measured[name][i])
			require.InEpsilon(t, measured[name][i], mean, .45)
		}
		t.Log(name, counts)
		require.Zero(t, counts["hand-overs"], "the convoy needs none")
	}
}

// TestMutex prints what each policy of a Mutex makes of sixteen cores, and wants what package mutex has.
func TestMutex(t *testing.T) {
	const µs = time.Microsecond
	peer, _, _ := locking(16, std, map[string]int{})
	ratio := map[string]float64{}
	for _, c := range []struct {
		name string
		policy
	}{
		{before, policy{}},
		{"a hand-over after a millisecond", policy{starve: time.Millisecond}},
		{"as many nudges more as there are waiters", policy{patience: func(waiting int) int { return 4 + waiting }}},
		{adds, policy{adds: true}},
		{"Unlock gives way to the waiter", policy{adds: true, yields: true}},
		{"Lock looks 8 times in 11 µs", policy{spins: 8, spin: pause}},
		{"Lock looks 20 times in 8 µs", policy{spins: 20, spin: 8 * µs / 20}},
		{"Lock looks 40 times in 16 µs", policy{spins: 40, spin: 16 * µs / 40}},
		{"4 times in 5.6 µs, and Unlock adds", policy{adds: true, spins: 4, spin: pause}},
		{"20 times in 8 µs, and Unlock adds", policy{adds: true, spins: 20, spin: 8 * µs / 20}},
		{"40 times in 16 µs, and Unlock adds", policy{adds: true, spins: 40, spin: 16 * µs / 40}},
		{"8 times in 11 µs, and Unlock adds", policy{adds: true, spins: 8, spin: pause}},
		{"8 times in 11 µs, and Unlock gives way", policy{yields: true, spins: 8, spin: pause}},
	} {
		counts := map[string]int{}
		mean, least, most := locking(16, with(c.policy), counts)
		ratio[c.name] = float64(mean) / float64(peer)
		t.Logf("%-42s %.2f of sync.Mutex, %d ns (%d to %d), %v", c.name, ratio[c.name], mean, least, most, counts)
	}
	require.Less(t, ratio[adds], .8*ratio[before])
}

// These are the policies of package mutex, and of its first form.
const (
	adds   = "Unlock adds"
	before = "four nudges, then a hand-over"
)

// TestCommits prints what a transaction takes if commits are serial, in groups, or have a lock in each Var.
func TestCommits(t *testing.T) {
	measured := []time.Duration{158, 535, 641, 841, 920}
	for i, cores := range processors {
		t.Logf("%2d cores: serial %3d (measured %3d), in groups %3d, with locks %3d", cores, committing(cores, (*store).serial), measured[i],
			committing(cores, (*store).grouped), committing(cores, (*store).striped))
	}
	require.Greater(t, committing(16, (*store).grouped), committing(16, (*store).serial)/3, "groups are not three times as fast")
	require.Less(t, committing(16, (*store).striped), committing(16, (*store).serial)/3)
}

// TestLoops prints what a request of row http-loop takes, for a client of one thread and for one of eight.
func TestLoops(t *testing.T) {
	measured := map[int]string{2: "1.19", 8: "1.45", 16: "1.27"}
	one := serving(1, 1, 0)
	for _, n := range processors[1:] {
		ratio := float64(one) / float64(serving(1, 0, n))
		t.Logf("one reactor takes %.2f of goroutines on %2d processors, measured %s", ratio, n, measured[n])
	}
	for _, clients := range []int{1, 8} {
		for _, n := range []int{1, 2, 4, 8} {
			ours, peer := serving(clients, n, 0), serving(clients, 0, n)
			t.Logf("a client of %d threads, %d reactors: %5.1f µs, %.2f of goroutines on as many processors", clients, n,
				float64(ours)/1e3, float64(ours)/float64(peer))
			require.LessOrEqual(t, float64(ours), 1.1*float64(peer), fmt.Sprint(n))
		}
	}
}
