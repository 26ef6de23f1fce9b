package workstealing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// starts lists the initial indices of a deque under test, including some just before both kinds of wrap-around.
var starts = []uint64{0, firstRing - 1, math.MaxInt64 - 3, math.MaxUint64 - 3, math.MaxUint64 - firstRing, math.MaxUint64}

func TestDequeEdges(t *testing.T) {
	for _, start := range starts {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			var d deque
			d.init(start)
			x, y := new(fork), new(fork)
			check := func(what string, ok bool) {
				t.Helper()
				if !ok {
					t.Error(what)
				}
			}
			stolen := func() *fork { f, _ := d.steal(); return f }

			check("new deque is empty", d.empty() && d.pop() == nil && stolen() == nil && !d.popIf(x))
			d.push(x)
			check("pushed", !d.empty())
			check("another fork is not at the bottom", !d.popIf(y))
			check("above", d.above(start) && !d.above(start+1))
			check("popped", d.popIf(x) && d.empty() && !d.above(start))
			check("popped once", !d.popIf(x) && d.pop() == nil && stolen() == nil)
			d.push(x)
			check("stolen", stolen() == x && d.empty() && !d.above(start))
			check("stolen once", !d.popIf(x) && d.pop() == nil && stolen() == nil)
			d.push(x)
			d.push(y)
			check("not at the bottom", !d.popIf(x))
			check("the oldest is stolen", stolen() == x)
			check("the youngest is popped", d.pop() == y && d.empty())
			for range 3 { // the same two forks again and again, one at its place and one not
				d.push(y)
				d.push(x)
				check("popped again", d.popIf(x) && d.popIf(y) && d.empty())
			}
		})
	}
}

// A deque whose indices wrap around while it grows behaves like a slice.
func TestDequeModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, start := range starts {
		var d deque
		d.init(start)
		var model []*fork
		for step := range 20000 {
			up := 1 + 2*(step/2000%2) // alternates between growing and shrinking
			var got, want *fork
			switch k := r.IntN(5); {
			case k < up:
				f := new(fork)
				d.push(f)
				model = append(model, f)
			case k == 3:
				if got, _ = d.steal(); len(model) > 0 {
					want, model = model[0], model[1:]
				}
			default:
				if got = d.pop(); len(model) > 0 {
					want, model = model[len(model)-1], model[:len(model)-1]
				}
			}
			if got != want || d.empty() != (len(model) == 0) {
				t.Fatalf("seed=%d start=%d step %d: got %p, want %p", seed, start, step, got, want)
			}
		}
	}
}

// Owner and thieves take every fork exactly once.
func TestDequeStress(t *testing.T) {
	n := 50000
	if testing.Short() {
		n /= 10
	}
	for _, start := range []uint64{0, math.MaxUint64 - 1000} {
		var d deque
		d.init(start)
		forks := make([]fork, n)
		taken := make([]atomic.Int32, n)
		index := make(map[*fork]int, n)
		for i := range forks {
			index[&forks[i]] = i
		}
		var stop atomic.Bool
		var wg sync.WaitGroup
		var stolen, popped, poppedIf atomic.Int64
		for range 3 {
			wg.Go(func() {
				for !stop.Load() || !d.empty() {
					if f, _ := d.steal(); f != nil {
						taken[index[f]].Add(1)
						stolen.Add(1)
					} else {
						runtime.Gosched()
					}
				}
			})
		}
		for i := range forks {
			d.push(&forks[i])
			switch {
			case i%3 == 0 && d.popIf(&forks[i]):
				taken[i].Add(1)
				poppedIf.Add(1)
			case i%7 == 0:
				for range i % 11 {
					if f := d.pop(); f != nil {
						taken[index[f]].Add(1)
						popped.Add(1)
					}
				}
			}
			if i%64 == 0 {
				runtime.Gosched()
			}
		}
		stop.Store(true)
		wg.Wait()
		for i := range taken {
			if n := taken[i].Load(); n != 1 {
				t.Fatalf("start %d: fork %d was taken %d times", start, i, n)
			}
		}
		t.Logf("stolen %d, popped %d and %d", stolen.Load(), popped.Load(), poppedIf.Load())
		if stolen.Load() == 0 || popped.Load() == 0 || poppedIf.Load() == 0 {
			t.Error("uncovered case")
		}
	}
}
