//go:build explore

package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// randomProgram has a few tasks, which use a few words, locks, permits and contexts at random. The next step of a task depends on
// the values that it has read.
func randomProgram(seed uint64) func(w *explore.World, out func(string, ...any)) {
	return func(w *explore.World, out func(string, ...any)) {
		r := rand.New(rand.NewPCG(seed, 1))
		var words [2]atomicx.Uint32
		var locks [2]atomicx.Mutex
		var counts [2]int
		tasks := 2 + r.IntN(2)
		parked := make([]atomicx.Pointer[suspend.Resumer[int]], tasks)
		saw := make([]string, tasks)
		for i := range tasks {
			ops := make([]int, 2+r.IntN(3-tasks/3))
			for k := range ops {
				ops[k] = r.IntN(1 << 16)
			}
			w.Go(fmt.Sprint("task", i), func(ctx context.Context) {
				seen := 0
				see := func(x any) {
					saw[i] += fmt.Sprint(x, " ")
					seen += len(saw[i]) + len(fmt.Sprint(x))
				}
				for _, op := range ops {
					word, v := &words[op>>4&1], uint32(op>>5&1)
					if op>>7&3 == 0 && seen%2 == 1 { // depends on the values that it has read
						word, v = &words[op>>4&1^1], v^1
					}
					mu, n := &locks[op>>4&1], &counts[op>>4&1]
					switch op & 15 {
					case 0, 1, 2:
						see(word.Load())
					case 3, 4:
						word.Store(v)
					case 5:
						see(word.Swap(v))
					case 6, 7:
						see(word.CompareAndSwap(v, v^1))
					case 8:
						see(word.Or(v))
					case 9:
						see(word.Add(v))
					case 10:
						mu.Lock()
						*n++
						see(*n)
						mu.Unlock()
					case 11:
						mu.Lock()
						*n++
						see(word.Load())
						mu.Unlock()
						see(word.CompareAndSwap(0, 1))
					case 12:
						_ = suspend.Here().Go(func() { word.Add(2) })
					case 13:
						see(suspend.Err(ctx) != nil)
					case 14: // waits for another task, or for a cancellation
						got, err := suspend.Suspend(ctx, func(me suspend.Resumer[int]) (int, bool) { parked[i].Store(&me); return 0, false })
						see(fmt.Sprint(got, err))
					case 15:
						if p := parked[(i+1)%tasks].Load(); p != nil {
							see(p.Resume(op, nil))
						}
					}
				}
			})
		}
		w.OnIdle(func(waiting []string) error { out("idle %v %v", waiting, saw); return nil })
		w.Check(func() error { out("%v %d %d %v", saw, words[0].Load(), words[1].Load(), counts); return nil })
	}
}

// For any program, the reduced search finds the same results as the search of all orders.
func TestRandomPrograms(t *testing.T) {
	programs, brute := uint64(deeper(40)), 4_000
	exhausted, runs, all := 0, 0, 0
	for seed := range programs {
		p := randomProgram(seed)
		for _, cancellations := range []int{0, 2} {
			c := reduced
			c.Cancellations, c.Executions = cancellations, 10*brute
			of := table{}
			got, some := outcomes(c, of, p)
			if some.Failure != nil {
				t.Fatalf("%d: %v", seed, some.Failure)
			}
			if !some.Exhausted {
				continue
			}
			c.Executions = brute
			want, every := outcomes(explore.Brute(c), of, p)
			c.Executions /= 4
			random, other := outcomes(explore.Random(c, seed), of, p)
			if every.Failure != nil || other.Failure != nil {
				t.Fatalf("%d: %v %v", seed, every.Failure, other.Failure)
			}
			if !includes(got, want) || !includes(got, random) || every.Exhausted && !includes(want, got) {
				t.Errorf("program %d, %d cancellations: not the same", seed, cancellations)
			}
			if every.Exhausted {
				exhausted++
				runs += some.Executions
				all += every.Executions
			}
		}
	}
	t.Logf("%d programs and bounds explored without reduction: %d runs for %d", exhausted, runs, all)
}
