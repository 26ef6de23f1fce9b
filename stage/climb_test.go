package stage_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
)

// A knee is a resource that serves n tasks at a time in the time base. Beyond n it only gets slower: the throughput falls by half
// of the excess.
type knee struct {
	mu   sync.Mutex
	rand *rand.Rand
	at   int
	base time.Duration
	in   int
	done int
}

func (k *knee) set(at int, base time.Duration) {
	k.mu.Lock()
	k.at, k.base = at, base
	k.mu.Unlock()
}

func (k *knee) use() {
	k.mu.Lock()
	k.in++
	d := float64(k.base) * math.Exp(0.47*k.rand.NormFloat64()-0.11)
	if over := float64(k.in) / float64(k.at); over > 1 {
		d *= over * (1 + 0.5*(over-1))
	}
	k.mu.Unlock()
	time.Sleep(time.Duration(d))
	k.mu.Lock()
	k.in--
	k.done++
	k.mu.Unlock()
}

func (k *knee) capacity() float64 { return float64(k.at) / k.base.Seconds() }

type phase struct {
	at   int
	base time.Duration
}

var phases = []phase{{40, 10 * time.Millisecond}, {20, 10 * time.Millisecond}, {80, 30 * time.Millisecond}, {40, 10 * time.Millisecond}}

// limited offers three times the capacity to a stage with a limiter, in phases of the given length. It returns the part of the
// capacity that was used in the second half of each phase, and the width at its end.
func limited(t *testing.T, width int, l stage.Limiter, each time.Duration) (used []float64, widths []int) {
	k := &knee{rand: rand.New(rand.NewPCG(1, 1))}
	s := stage.New("resource", func(context.Context, int) (int, error) { k.use(); return 0, nil },
		stage.Options{Width: width, Queue: 160, Reject: true, Limit: l})
	r := rand.New(rand.NewPCG(2, 2))
	for _, p := range phases {
		k.set(p.at, p.base)
		start := time.Now()
		at, half, before := start, false, 0
		for {
			at = at.Add(time.Duration(r.ExpFloat64() / (3 * k.capacity()) * float64(time.Second)))
			if at.Sub(start) > each {
				break
			}
			if !half && at.Sub(start) > each/2 {
				half, before = true, int(s.Stats().Completed)
			}
			time.Sleep(time.Until(at))
			_ = s.Submit(bg, 0)
		}
		used = append(used, float64(int(s.Stats().Completed)-before)/(each/2).Seconds()/k.capacity())
		widths = append(widths, s.Stats().Width)
	}
	require.NoError(t, s.Shutdown(bg))
	return used, widths
}

// TestClimb prints the table of widths. Each cell must reach its minimum.
func TestClimb(t *testing.T) {
	widths := []int{10, 400}
	if schedtest.Race {
		widths = nil // takes minutes, and TestClimbFromBelow shows the race detector the same code
	}
	for _, width := range widths {
		synctest.Test(t, func(t *testing.T) {
			used, widths := limited(t, width, stage.Climb(0, 400), 20*time.Second)
			t.Logf("from %d: used %.2f, widths %d", width, used, widths)
			for i := range used {
				must := 0.9
				if i == 2 && width == 400 {
					must = 0.85
				}
				require.GreaterOrEqual(t, used[i], must, "phase %d from %d", i+1, width)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		used, _ := limited(t, 400, nil, 4*time.Second)
		t.Logf("fixed 400: used %.2f", used)
		require.Less(t, used[0], 0.25)
	})
}

// From a width of 2, the limiter reaches the knee within five seconds.
func TestClimbFromBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &knee{rand: rand.New(rand.NewPCG(1, 1))}
		k.set(40, 10*time.Millisecond)
		s := stage.New("resource", func(context.Context, int) (int, error) { k.use(); return 0, nil },
			stage.Options{Width: 2, Queue: 160, Reject: true, Limit: stage.Climb(0, 0)})
		start := time.Now()
		for s.Stats().Width < 36 {
			require.Less(t, time.Since(start), 5*time.Second)
			time.Sleep(100 * time.Microsecond)
			_ = s.Submit(bg, 0)
		}
		t.Logf("after %v", time.Since(start))
		require.NoError(t, s.Shutdown(bg))
	})
}

// If there is less work than the stage could do, the width does not change, and no task is rejected.
func TestClimbWithoutNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &knee{rand: rand.New(rand.NewPCG(1, 1))}
		k.set(40, 10*time.Millisecond)
		s := stage.New("resource", func(context.Context, int) (int, error) { k.use(); return 0, nil },
			stage.Options{Width: 40, Queue: 160, Reject: true, Limit: stage.Climb(0, 0)})
		r := rand.New(rand.NewPCG(2, 2))
		for range 20_000 {
			time.Sleep(time.Duration(r.ExpFloat64() / (0.8 * k.capacity()) * float64(time.Second)))
			_ = s.Submit(bg, 0)
		}
		require.NoError(t, s.Shutdown(bg))
		require.Equal(t, 40, s.Stats().Width)
		require.Zero(t, s.Stats().Rejected)
	})
}

// If the width is far too large, and there is little work and no queue, the width shrinks to what is in use, plus some reserve.
func TestClimbNarrowsAtRest(t *testing.T) {
	for _, width := range []int{100, 1000} {
		synctest.Test(t, func(t *testing.T) {
			r := offer(t, 0.7, 20*time.Second, 10*time.Second, stage.Options{Width: width, Queue: 160, Delay: 5 * time.Millisecond, Limit: stage.Climb(0, 0)})
			t.Logf("from %d: width %d, good %.2f, p99 %v, p99 of a no %v", width, r.width, r.good, r.yes, r.no)
			require.LessOrEqual(t, r.width, 50)
			require.GreaterOrEqual(t, r.width, 16)
			require.GreaterOrEqual(t, r.good, 0.69)
		})
	}
}

// A few tasks give no information about the width, so it stays as it is, for a possible burst.
func TestClimbKeepsASmallWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, 0.05, time.Minute, 10*time.Second, stage.Options{Width: 16, Queue: 160, Limit: stage.Climb(0, 0)})
		require.Equal(t, 16, r.width)
	})
}

// From a width that is far too large, the knee is reached within five seconds of the load, even if the stage was idle before.
func TestClimbFromRest(t *testing.T) {
	for _, rest := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			k := &knee{rand: rand.New(rand.NewPCG(1, 1))}
			k.set(20, 10*time.Millisecond)
			s := stage.New("resource", func(context.Context, int) (int, error) { k.use(); return 0, nil },
				stage.Options{Width: 200, Queue: 160, Reject: true, Limit: stage.Climb(0, 0)})
			for end := time.Now().Add(rest); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
				_ = s.Submit(bg, 0)
			}
			start := time.Now()
			before := 0
			for time.Since(start) < 8*time.Second {
				if before == 0 && time.Since(start) > 5*time.Second {
					before = int(s.Stats().Completed)
				}
				time.Sleep(time.Duration(float64(time.Second) / (3 * k.capacity())))
				_ = s.Submit(bg, 0)
			}
			used := float64(int(s.Stats().Completed)-before) / 3 / k.capacity()
			t.Logf("after 5 s: width %d, used %.2f", s.Stats().Width, used)
			require.GreaterOrEqual(t, used, 0.8)
			require.NoError(t, s.Shutdown(bg))
		})
	}
}

// Failures do not count as throughput. In an outage in which each call fails after a timeout, a larger width would only cause
// more failures. After half a minute the width is what it was, so the resource can serve at its capacity after the outage.
func TestClimbThroughAnOutage(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 60 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			k := &knee{rand: rand.New(rand.NewPCG(1, 1))}
			k.set(20, 20*time.Millisecond)
			var down atomic.Bool
			var failing atomic.Int64 // the number of windows in which every handler failed
			climb := stage.Climb(0, 400)
			s := stage.New("resource", func(context.Context, int) (int, error) {
				if down.Load() {
					time.Sleep(took)
					return 0, errOops
				}
				k.use()
				return 0, nil
			}, stage.Options{Width: 20, Queue: 100, Reject: true, Limit: limiter(func(s stage.Sample) int {
				if s.Failed == s.Done {
					failing.Add(1)
				}
				return climb.Update(s)
			})})
			load := func(d time.Duration) (good float64) {
				before := s.Stats().Completed
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(330 * time.Microsecond) { // three times the capacity
					_ = s.Submit(bg, 0)
				}
				return float64(s.Stats().Completed-before) / d.Seconds() / k.capacity()
			}
			load(20 * time.Second)
			width := s.Stats().Width
			down.Store(true)
			load(30 * time.Second)
			after := s.Stats().Width
			down.Store(false)
			good := load(2 * time.Second)
			t.Logf("failures after %v: width %d, after the outage %d, good %.2f in two seconds", took, width, after, good)
			require.Positive(t, failing.Load())
			require.InDelta(t, width, after, 4)
			require.GreaterOrEqual(t, good, 0.85)
			require.NoError(t, s.Shutdown(bg))
		})
	}
}

// A stage that refuses tasks while its queue is often empty becomes wider. If it then refuses as many tasks as before, it becomes narrower
// again.
func TestClimbGivesBack(t *testing.T) {
	climb := stage.Climb(0, 0)
	second := func(width, refused int) (to int) {
		for range 8 {
			to = climb.Update(stage.Sample{Width: width, Busy: width, Done: 100, Refused: refused, Elapsed: 125 * time.Millisecond, Service: 100 * time.Millisecond})
		}
		return to
	}
	require.Equal(t, 20, second(16, 10), "a quarter wider")
	require.Equal(t, 25, second(20, 5), "it refuses half as many, and becomes wider again")
	require.Equal(t, 20, second(25, 4), "which has brought little")
	require.Equal(t, 20, second(20, 0))
}
