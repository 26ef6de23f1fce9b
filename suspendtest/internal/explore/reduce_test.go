//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// Each small program prints its result. The failures of those that fail are results, too.
var small = map[string]func(w *explore.World, out func(string, ...any)){
	"stores and loads": func(w *explore.World, out func(string, ...any)) {
		var x, y atomicx.Int32
		var rx, ry int32
		w.Go("x", func(context.Context) { x.Store(1); ry = y.Load() })
		w.Go("y", func(context.Context) { y.Store(1); rx = x.Load() })
		w.Check(func() error { out("%d %d", rx, ry); return nil })
	},
	"additions": func(w *explore.World, out func(string, ...any)) {
		var n atomicx.Uint32
		for range 3 {
			w.Go("x", func(context.Context) { n.Store(n.Load() + 1) })
		}
		w.Check(func() error { out("%d", n.Load()); return nil })
	},
	"compare and swap": func(w *explore.World, out func(string, ...any)) {
		var n atomicx.Uint32
		won := [3]bool{}
		for i := range 3 {
			w.Go("x", func(context.Context) { won[i] = n.CompareAndSwap(uint32(i), uint32(i+1)) })
		}
		w.Check(func() error { out("%v %d", won, n.Load()); return nil })
	},
	"silent stores": func(w *explore.World, out func(string, ...any)) {
		var n atomicx.Uint32
		var seen [2]uint32
		w.Go("x", func(context.Context) { n.Store(0); n.Store(1); n.Store(1) })
		w.Go("y", func(context.Context) { n.Or(1); n.And(0); seen[0] = n.Load() })
		w.Go("z", func(context.Context) { seen[1] = n.Swap(0) })
		w.Check(func() error { out("%v %d", seen, n.Load()); return nil })
	},
	"locks": func(w *explore.World, out func(string, ...any)) {
		var mu, other atomicx.Mutex
		order, n := "", 0
		for _, name := range []string{"x", "y", "z"} {
			w.Go(name, func(context.Context) {
				mu.Lock()
				order += name
				mu.Unlock()
				other.Lock()
				n++
				other.Unlock()
			})
		}
		w.Check(func() error { out("%s", order); return nil })
	},
	"locks crosswise": func(w *explore.World, out func(string, ...any)) {
		var mu, other atomicx.Mutex
		n := 0
		w.Go("x", func(context.Context) { mu.Lock(); other.Lock(); n++; other.Unlock(); mu.Unlock() })
		w.Go("y", func(context.Context) { other.Lock(); mu.Lock(); n++; mu.Unlock(); other.Unlock() })
		w.Check(func() error { out("passed"); return nil })
	},
	"a lock for ever": func(w *explore.World, out func(string, ...any)) {
		var mu atomicx.Mutex
		var n atomicx.Uint32
		w.Go("x", func(context.Context) { n.Add(1); mu.Lock() })
		w.Go("y", func(context.Context) {
			mu.Lock()
			if n.Load() == 0 {
				mu.Unlock()
			}
		})
		w.Check(func() error { out("passed"); return nil })
	},
	"promise": func(w *explore.World, out func(string, ...any)) {
		var p promise.Promise[int]
		var err error
		w.Go("await", func(ctx context.Context) { _, err = p.Await(ctx) })
		w.Go("fill", func(context.Context) { _ = p.Fill(1) })
		w.OnIdle(func([]string) error { out("idle"); return nil })
		w.Check(func() error { out("%v", err); return nil })
	},
	"mvar": func(w *explore.World, out func(string, ...any)) {
		var m mvar.MVar[int]
		var put, take error
		w.Go("take", func(ctx context.Context) { _, take = m.Take(ctx) })
		w.Go("put", func(ctx context.Context) { put = m.Put(ctx, 1) })
		w.OnIdle(func(waiting []string) error { out("idle %v", waiting); return nil })
		w.Check(func() error { _, ok := m.TryTake(); out("%v %v %v", put, take, ok); return nil })
	},
	"resumers": func(w *explore.World, out func(string, ...any)) {
		var r atomicx.Pointer[suspend.Resumer[int]]
		won, got := [2]bool{}, ""
		w.Go("wait", func(ctx context.Context) {
			v, err := suspend.Suspend(ctx, func(me suspend.Resumer[int]) (int, bool) { r.Store(&me); return 0, false })
			got = fmt.Sprint(v, err)
		})
		for i := range won {
			w.Go("resume", func(context.Context) {
				if r := r.Load(); r != nil {
					won[i] = r.Resume(i+1, nil)
				}
			})
		}
		w.OnIdle(func(waiting []string) error { out("idle %v %v", waiting, won); return nil })
		w.Check(func() error { out("%v %s", won, got); return nil })
	},
	"a deadline": func(w *explore.World, out func(string, ...any)) {
		var p promise.Promise[int]
		var err, late error
		soon := w.Deadline()
		w.Go("await", func(ctx context.Context) {
			_, late = p.Await(soon)
			_, err = p.Await(ctx)
		})
		w.Go("fill", func(context.Context) { _ = p.Fill(1) })
		w.Check(func() error { out("%v, %v", late, err); return nil })
	},
	"a detached context": func(w *explore.World, out func(string, ...any)) {
		var p promise.Promise[int]
		var err error
		w.GoDetached("await", func(ctx context.Context) { _, err = p.Await(ctx) })
		w.Go("fill", func(context.Context) { _ = p.Fill(1) })
		w.Check(func() error { out("%v", err); return nil })
	},
	"tasks and timers": func(w *explore.World, out func(string, ...any)) {
		var n atomicx.Uint32
		var slept error
		w.Go("parent", func(ctx context.Context) {
			_ = suspend.Here().Go(func() { n.Add(1) })
			slept = suspend.Sleep(ctx, 1)
			n.Store(n.Load() * 2)
		})
		w.Go("other", func(context.Context) { _ = suspend.Here().Go(func() { n.Add(3) }) })
		w.Check(func() error { out("%d %v", n.Load(), slept); return nil })
	},
	"Unparks that are late": func(w *explore.World, out func(string, ...any)) {
		var n atomicx.Uint32
		var saw [2]uint32
		w.Go("park", func(context.Context) {
			me := suspend.Current()
			for range 2 {
				_ = suspend.Here().Go(func() { n.Add(1); me.Unpark() })
			}
			for i := 0; i < 2 && n.Load() < 2; i++ {
				me.Park()
				saw[i] = n.Load()
			}
		})
		w.Check(func() error { out("%v", saw); return nil })
	},
	"calls and returns": func(w *explore.World, out func(string, ...any)) {
		order := ""
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(context.Context) {
				for range 2 {
					w.Called()
					order += name + "("
					w.Returned()
					order += name + ")"
				}
			})
		}
		w.Check(func() error {
			// The order of two successive calls does not matter, nor that of two successive returns.
			out("%s", normal(order))
			return nil
		})
	},
}

// normal sorts neighbours that are both calls, or both returns.
func normal(order string) string {
	b := []byte(order)
	for range b {
		for i := 0; i+3 < len(b); i += 2 {
			if b[i+1] == b[i+3] && b[i] > b[i+2] {
				b[i], b[i+2] = b[i+2], b[i]
			}
		}
	}
	return string(b)
}

// A table holds the result of each class of runs. All runs of a class must have the same result.
type table map[uint64]string

func outcomes(c explore.Config, of table, program func(w *explore.World, out func(string, ...any))) (map[string]bool, explore.Result) {
	seen := map[string]bool{}
	r := explore.Run(c, func(w *explore.World) {
		var outs []string
		program(w, func(format string, args ...any) {
			out := fmt.Sprintf(format, args...)
			seen[out] = true
			outs = append(outs, out)
		})
		if c.Reduced {
			w.Check(func() error {
				class, out := w.Class(), strings.Join(outs, ";")
				if before, ok := of[class]; ok && before != out {
					return fmt.Errorf("equivalent runs have the results %s and %s", before, out)
				}
				of[class] = out
				seen[fmt.Sprint("class ", class)] = true
				return nil
			})
		}
	})
	if r.Failure != nil {
		seen[r.Failure.Reason] = true
	}
	return seen, r
}

var reduced = explore.Config{Fine: true, Reduced: true, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Steps: 1000}

// The reduced search finds the same results as the search of all orders.
func TestReduction(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(small)) {
		t.Run(name, func(t *testing.T) {
			for _, cancellations := range []int{0, 1, 2} {
				c := reduced
				c.Cancellations = cancellations
				of := table{}
				got, some := outcomes(c, of, small[name])
				if !some.Exhausted && some.Failure == nil {
					t.Fatal("not exhausted")
				}
				c.Executions = bruteRuns
				want, all := outcomes(explore.Brute(c), of, small[name])
				c.Executions /= 5
				random, _ := outcomes(explore.Random(c, 1), of, small[name])
				if some.Failure != nil {
					random = nil // random runs would soon fail
				}
				c = fine(2)
				c.Cancellations, c.Executions = cancellations, bruteRuns
				more, _ := outcomes(c, nil, small[name])
				complete := all.Exhausted || all.Failure != nil
				if classes := count(got); classes > some.Executions-some.Blocked || cancellations == 0 && classes != some.Executions-some.Blocked && some.Failure == nil {
					t.Errorf("%d classes in %d runs", classes, some.Executions-some.Blocked)
				}
				if !includes(got, want) || !includes(got, random) || !includes(got, more) || complete && !includes(want, got) {
					t.Errorf("%d cancellations: found %v, want %v and %v", cancellations, slices.Sorted(maps.Keys(got)),
						slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(more)))
				}
				number := fmt.Sprint("all ", all.Executions)
				if !complete {
					number = fmt.Sprint("more than ", all.Executions)
				}
				t.Logf("%d cancellations: %d outcomes, %d runs for %s (%d of them for nothing)", cancellations, len(got)-count(got), some.Executions, number, some.Blocked)
			}
		})
	}
}

func count(outcomes map[string]bool) (classes int) {
	for x := range outcomes {
		if strings.HasPrefix(x, "class") {
			classes++
		}
	}
	return classes
}

const bruteRuns = 12_000

func includes(all, some map[string]bool) bool {
	for x := range some {
		if !all[x] {
			return false
		}
	}
	return true
}

// A random run is equivalent to a run of the reduced search.
func TestRandomRuns(t *testing.T) {
	runs, most := deeper(500), deeper(3_000)
	for _, p := range programs {
		for _, n := range []int{0, 1, 2} {
			c := reduced
			c.Cancellations, c.Executions = n, most
			classes := func(c explore.Config, with func(class uint64) error) explore.Result {
				return explore.Run(c, func(w *explore.World) {
					p.program(w)
					w.Check(func() error {
						if w.BeginsAnew() {
							return nil
						}
						return with(w.Class())
					})
				})
			}
			seen := map[uint64]bool{}
			r := classes(c, func(class uint64) error {
				seen[class] = true
				return nil
			})
			if r.Failure != nil || !r.Exhausted {
				break
			}
			last := !r.Cut.Cancellations
			c.Executions = runs
			r = classes(explore.Random(c, uint64(n)), func(class uint64) error {
				if !seen[class] {
					return errors.New("equivalent to none")
				}
				return nil
			})
			if r.Failure != nil {
				t.Errorf("%s, %d cancellations, %d classes, run %d: %v", p.name, n, len(seen), r.Executions, r.Failure)
			}
			t.Logf("%s, %d cancellations: %d classes", p.name, n, len(seen))
			if last {
				break // the class has no other runs
			}
		}
	}
}
