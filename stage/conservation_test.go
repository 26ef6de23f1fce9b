package stage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// TestConservation sends tasks through pipes on four schedulers, and on all of them at once, with cancellations, retries,
// rejections, and a close for each ten thousand tasks. It checks the figures all the time: each accepted task has one fate,
// which its caller learns. BRAID_TASKS is the number of accepted tasks; a hundred million take a quarter of an hour.
func TestConservation(t *testing.T) {
	n := conservationTasks()
	defer schedtest.Within(t, 10*time.Minute+time.Duration(n)*100*time.Microsecond)()
	names := []string{"fifo", "workstealing", "eventloop", "goroutines"}
	rows, times := make([]fates, len(names)+1), make([]time.Duration, len(names)+1)
	var all uint64
	report := func() {
		for i, row := range rows {
			name := strings.Join(names, "+")
			if i < len(names) {
				name = names[i]
			}
			t.Logf("%-37s %s in %v", name, row, times[i].Round(time.Second/10))
		}
	}
	said := time.Now()
	for round := 0; all < uint64(n) && !t.Failed(); round++ {
		row := len(names) // all schedulers at once take longer, so only once in 17 rounds
		if k := round % 17; k < 16 {
			row = k % len(names)
		}
		var open []suspend.Spawner
		var closeAll []func()
		for i, s := range schedtest.All {
			if k := slices.Index(names, s.Name); k >= 0 && (row == k || row == len(names)) {
				on, end := schedtest.All[i].Open()
				open, closeAll = append(open, on), append(closeAll, end)
			}
		}
		turn, start := 0, time.Now()
		sum := conserve(t, min(n/20, 10_000), uint64(round/len(names)), func() suspend.Spawner {
			turn++
			return open[turn%len(open)]
		})
		for _, end := range closeAll {
			end()
		}
		rows[row].add(sum)
		times[row] += time.Since(start)
		all += sum.accepted
		if time.Since(said) > time.Minute {
			said = time.Now()
			report()
		}
	}
	report()
	for i, row := range rows {
		if row.closes == 0 || row.cancelled == 0 || row.retried == 0 || row.failed == 0 {
			t.Errorf("row %d has not seen every outcome: %s", i, row)
		}
	}
}

// fates counts the fates of tasks.
type fates struct{ offered, accepted, completed, failed, late, cancelled, retried, closes uint64 }

func (f *fates) add(g fates) {
	f.offered += g.offered
	f.accepted += g.accepted
	f.completed += g.completed
	f.failed += g.failed
	f.late += g.late
	f.cancelled += g.cancelled
	f.retried += g.retried
	f.closes += g.closes
}

func (f fates) String() string {
	return fmt.Sprintf("offered %d, accepted %d: completed %d, failed %d, late %d, cancelled %d; retried %d, closes %d",
		f.offered, f.accepted, f.completed, f.failed, f.late, f.cancelled, f.retried, f.closes)
}

func conserve(t *testing.T, n int, seed uint64, next func() suspend.Spawner) (sum fates) {
	rng := rand.New(rand.NewPCG(seed, 3))
	ends := make([]atomic.Int32, n) // counts dead letters and completions
	oops := func(_ context.Context, i int, _ error) { ends[i].Add(1) }
	retry := func(err error, try int) (time.Duration, bool) {
		return time.Duration(try%2) * time.Microsecond, try < 3
	}
	var gather time.Duration
	rate := 0.0
	switch seed % 8 { // rarely, because these take time
	case 1:
		gather = 5 * time.Microsecond
	case 2:
		rate = 1e6
	}
	pool := stage.NewPool("pool", 2, next())
	a := stage.New("a", func(_ context.Context, i int) (int, error) {
		if i%13 == 0 {
			return 0, errOops
		}
		return i, nil
	}, stage.Options{Pool: pool, Width: 2, Queue: 8, Retry: retry, Reject: rng.IntN(2) > 0}).OnFail(oops).Prioritize(func(i int) int { return i % 3 })
	b := stage.NewBatch("b", func(_ context.Context, in, out []int) error {
		copy(out, in)
		if in[0]%17 == 0 {
			return errOops
		}
		return nil
	}, stage.Options{On: next(), Width: 1 + rng.IntN(2), Queue: rng.IntN(5), Batch: 3, Gather: gather}).OnFail(oops)
	c := stage.New("c", func(ctx context.Context, i int) (int, error) {
		if i%5 == 0 {
			suspend.Yield()
		}
		return i, nil
	}, stage.Options{On: next(), Width: 1 + rng.IntN(3), Delay: time.Duration(rng.IntN(2)) * 20 * time.Microsecond, Rate: rate}).OnFail(oops)
	d := stage.New("d", func(_ context.Context, i int) (int, error) {
		ends[i].Add(1)
		return i, nil
	}, stage.Options{Pool: pool, Width: 1 + rng.IntN(2), Queue: stage.NoQueue}).OnFail(oops)
	p := stage.Pipe(stage.Pipe(stage.Pipe(a, b), c), d)
	stages := []stage.Observed{a, b, c, d}
	stop := make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, s := range stages {
				holds(t, s.Stats())
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	var ids atomic.Int64
	begun := make([][]promise.Future[int], 8)
	schedtest.Stress(t, next, 8, func(w int, rng *rand.Rand) {
		for range n / 8 {
			i := int(ids.Add(1)) - 1
			if i == n*3/4 && seed%2 == 1 {
				ctx, cancel := context.WithCancel(bg)
				if seed%4 == 1 {
					cancel() // ends the context of the task
				}
				defer cancel()
				_ = p.Shutdown(ctx)
				sum.closes++
			}
			switch rng.IntN(4) {
			case 0:
				_ = p.Submit(bg, i)
			case 1:
				ctx, cancel := schedtest.MayCancel(rng)
				_, _ = p.Do(ctx, i)
				cancel()
			default:
				if rng.IntN(64) == 0 {
					b.SetWidth(1 + rng.IntN(3))
					pool.SetWidth(1 + rng.IntN(3))
				}
				if f, err := p.Begin(bg, i); err == nil {
					begun[w] = append(begun[w], f)
				}
			}
		}
	})
	if err := p.Shutdown(bg); err != nil {
		t.Error(err)
	}
	sum.closes++
	close(stop)
	looks.Wait()
	sum.offered = uint64(ids.Load())
	for k, o := range stages {
		s := o.Stats()
		holds(t, s)
		if s.Waiting+s.Busy+s.Delayed+s.Outside != 0 {
			t.Errorf("%s: left behind: %+v", s.Name, s)
		}
		sum.cancelled += s.Cancelled
		sum.failed += s.Failed
		sum.late += s.Late
		sum.retried += s.Retried
		sum.completed = s.Completed
		if k == 0 {
			sum.accepted = s.Accepted
		} else if before := stages[k-1].Stats(); before.Completed != s.Accepted {
			t.Errorf("%s has completed %d, %s accepted %d", before.Name, before.Completed, s.Name, s.Accepted)
		}
	}
	if sum.accepted != sum.completed+sum.failed+sum.late+sum.cancelled {
		t.Errorf("lost or doubled: %+v", sum)
	}
	var told uint64
	for i := range ends {
		if k := ends[i].Load(); k > 1 {
			t.Errorf("task %d met %d fates", i, k)
		} else {
			told += uint64(k)
		}
	}
	if told != sum.completed+sum.failed+sum.late {
		t.Errorf("%d tasks were seen to end: %+v", told, sum)
	}
	for _, fs := range begun {
		for _, f := range fs {
			if _, ok, _ := f.Try(); !ok {
				ctx, cancel := context.WithTimeout(bg, 10*time.Second)
				_, err := f.Await(ctx)
				cancel()
				t.Errorf("a task had no result when Close returned, but later: %v", err)
			}
		}
	}
	return sum
}

// conservationTasks returns BRAID_TASKS, or a smaller default.
func conservationTasks() int {
	if n, err := strconv.Atoi(os.Getenv("BRAID_TASKS")); err == nil {
		return n
	}
	if testing.Short() || schedtest.Race {
		return 20_000
	}
	return 50_000
}
