//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// The tasks of these programs repeat a loop until another task changes something. Each calls see with the values that its tasks
// have read.
var loops = map[string]struct {
	program func(w *explore.World, see func(string, ...any))
	want    string // what is seen in all runs, or the failure
}{
	"a seqlock, the reader tries again": {seqlock(false, nothing), "0 0, 1 1"},
	"a seqlock, the reader yields":      {seqlock(false, suspend.Yield), "0 0, 1 1"},
	"a seqlock, read once":              {seqlock(true, nothing), "check: torn"},
	"a spin lock":                       {spinLock(3, false, suspend.Yield), "3"},
	"a spin lock without a Yield":       {spinLock(2, false, nothing), "2"},
	"a spin lock that two tasks hold":   {spinLock(2, true, suspend.Yield), "check: lost"},
	"a flag that is polled": {func(w *explore.World, see func(string, ...any)) {
		var flag, x atomicx.Bool
		w.Go("sets", func(context.Context) { x.Store(true); flag.Store(true) })
		w.Go("polls", func(context.Context) {
			for !flag.Load() {
				runtime.Gosched()
			}
			see("%v", x.Load())
		})
	}, "true"},
	"a flag that no task sets": {func(w *explore.World, _ func(string, ...any)) {
		var flag atomicx.Bool
		w.Go("polls", func(context.Context) {
			for !flag.Load() {
				suspend.Yield()
			}
		})
		w.Go("reads", func(context.Context) { flag.Load() })
	}, "livelock"},
	"two flags, crosswise": {func(w *explore.World, see func(string, ...any)) {
		var flags [2]atomicx.Bool
		for i := range flags {
			w.Go(fmt.Sprint(i), func(context.Context) {
				for !flags[i].Load() {
				}
				flags[1-i].Store(true)
			})
		}
	}, "livelock"},
	"a Yield forever": {func(w *explore.World, _ func(string, ...any)) {
		w.Go("yields", func(context.Context) {
			for {
				suspend.Yield()
			}
		})
	}, "livelock"},
	// A loop that gives up sees each stage of the change.
	"a loop with a counter": {func(w *explore.World, see func(string, ...any)) {
		var x atomicx.Uint32
		w.Go("sets", func(context.Context) { x.Store(1) })
		w.Go("counts", func(context.Context) {
			n := 0
			for range 5 {
				n += int(x.Load())
			}
			see("%d", n)
		})
	}, "0, 1, 2, 3, 4, 5"},
	// The loop reads two words, each of which another task sets. It can continue between the two stores.
	"a loop that two tasks end": {func(w *explore.World, see func(string, ...any)) {
		var x, y atomicx.Uint32
		w.Go("x", func(context.Context) { x.Store(1) })
		w.Go("y", func(context.Context) { y.Store(1) })
		w.Go("polls", func(context.Context) {
			for {
				if a, b := x.Load(), y.Load(); a+b > 0 {
					see("%d %d", a, b)
					return
				}
			}
		})
	}, "0 1, 1 0, 1 1"},
	"a loop under a lock": {func(w *explore.World, see func(string, ...any)) {
		var mu atomicx.Mutex
		ready := false
		w.Go("sets", func(context.Context) { mu.Lock(); ready = true; mu.Unlock() })
		w.Go("polls", func(context.Context) {
			for done := false; !done; {
				mu.Lock()
				done = ready
				mu.Unlock()
			}
			see("done")
		})
	}, "done"},
}

func nothing() {}

func seqlock(once bool, pause func()) func(w *explore.World, see func(string, ...any)) {
	return func(w *explore.World, see func(string, ...any)) {
		var n, x, y atomicx.Uint32
		torn := false
		w.Go("writes", func(context.Context) { n.Add(1); x.Store(1); y.Store(1); n.Add(1) })
		w.Go("reads", func(context.Context) {
			for {
				v := n.Load()
				a, b := x.Load(), y.Load()
				if once || v%2 == 0 && n.Load() == v {
					torn = a != b
					see("%d %d", a, b)
					return
				}
				pause()
			}
		})
		w.Check(func() error {
			if torn {
				return errors.New("torn")
			}
			return nil
		})
	}
}

func spinLock(tasks int, broken bool, pause func()) func(w *explore.World, see func(string, ...any)) {
	return func(w *explore.World, see func(string, ...any)) {
		var locked atomicx.Bool
		var n atomicx.Uint32
		for i := range tasks {
			w.Go(fmt.Sprint(i), func(context.Context) {
				for !locked.CompareAndSwap(false, true) {
					pause()
				}
				v := n.Load()
				if broken {
					locked.Store(false)
				}
				n.Store(v + 1)
				locked.Store(false)
			})
		}
		w.Check(func() error {
			see("%d", n.Load())
			if n.Load() != uint32(tasks) {
				return errors.New("lost")
			}
			return nil
		})
	}
}

// A search ends even if a loop could be repeated forever, and misses no outcome. It has the same outcomes as a search that
// reduces nothing.
func TestLoops(t *testing.T) {
	for name, p := range loops {
		for kind, c := range map[string]explore.Config{
			"reduced": {Fine: true, Reduced: true, Yields: 2}, "two rounds": {Fine: true, Reduced: true},
			"all orders": explore.Brute(explore.Config{Fine: true, Executions: 7000}),
			"at random":  {Fine: true, Depth: 3, Executions: 300},
		} {
			c.Preemptions, c.Cancellations, c.Steps = explore.Unlimited, explore.Never, 5000
			seen := map[string]bool{}
			r := explore.Run(c, func(w *explore.World) {
				p.program(w, func(format string, args ...any) { seen[fmt.Sprintf(format, args...)] = true })
			})
			got := strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
			if r.Failure != nil {
				got = r.Failure.Reason
			}
			t.Logf("%s, %s: %v: %s", name, kind, r, got)
			if got != p.want && !(r.Failure != nil && strings.HasPrefix(got, p.want)) {
				t.Errorf("%s, %s: %v, saw %s, want %s; %v", name, kind, r, got, p.want, r.Failure)
			}
			if r.Failure != nil {
				again := explore.Run(explore.Config{Fine: true, Replay: r.Failure.Replay, Steps: c.Steps}, func(w *explore.World) { p.program(w, func(string, ...any) {}) })
				if again.Failure == nil || again.Failure.Reason != r.Failure.Reason {
					t.Errorf("%s, %s, replayed: %v", name, kind, again.Failure)
				}
			}
		}
	}
}

// For random programs with loops, the reduced search has the same outcomes as the search of all orders.
func TestRandomLoops(t *testing.T) {
	for seed := range uint64(20) {
		outcomes := func(c explore.Config) (seen map[string]bool, r explore.Result) {
			c.Fine, c.Preemptions, c.Cancellations, c.Steps = true, explore.Unlimited, explore.Never, 3000
			seen = map[string]bool{}
			return seen, explore.Run(c, func(w *explore.World) {
				r := rand.New(rand.NewPCG(seed, 2))
				var words [2]atomicx.Uint32
				var saw [3]string
				w.Go("polls", func(context.Context) {
					a, b, want := &words[r.IntN(2)], &words[r.IntN(2)], uint32(1+r.IntN(2))
					for n := a.Load(); n < want; n = a.Load() {
						saw[0] += fmt.Sprint(b.Load(), " ")
						if len(saw[0]) > 100 {
							saw[0] = saw[0][50:]
						}
					}
					saw[0] = fmt.Sprint(saw[0][max(0, len(saw[0])-2):], "then ", b.Load()) // only the last rounds
				})
				for i := range 2 {
					ops := []int{r.IntN(6), r.IntN(6)}
					w.Go(fmt.Sprint(i), func(context.Context) {
						for _, op := range ops {
							if word := &words[op%2]; op < 4 {
								word.Add(1)
							} else {
								saw[1+i] += fmt.Sprint(word.Load(), " ")
							}
						}
					})
				}
				w.Check(func() error { seen[fmt.Sprintf("%q", saw)] = true; return nil })
			})
		}
		want, every := outcomes(explore.Brute(explore.Config{Executions: 10_000}))
		got, r := outcomes(explore.Config{Reduced: true})
		if (every.Failure == nil) != (r.Failure == nil) || r.Failure == nil && every.Exhausted && !maps.Equal(got, want) {
			t.Errorf("seed %d: %v saw %v; %v saw %v; %v, %v", seed, r, slices.Sorted(maps.Keys(got)), every, slices.Sorted(maps.Keys(want)), r.Failure, every.Failure)
		}
	}
}
