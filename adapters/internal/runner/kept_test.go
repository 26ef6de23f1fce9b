package runner

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/suspend"
)

// waiting runs n tasks that all wait at the same time, in one Run, and returns its Driven.
func waiting(n int) *Driven {
	d := NewDriven(suspend.Goroutines, nil, nil, nil, suspend.ErrClosed)
	err := d.Drive(context.Background(), Drive{Name: "test", StallAfter: -1}, func(context.Context) error {
		parked := make([]suspend.Task, 0, n)
		for range n {
			_ = d.Go(func() {
				parked = append(parked, suspend.Self())
				suspend.Self().Park()
			})
		}
		for len(parked) < n {
			suspend.Yield()
		}
		for _, t := range parked {
			t.Unpark()
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return d
}

// held empties the cache, and stops its timer, so that the cache drops nothing by itself.
func held() {
	empty()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.ticker = time.AfterFunc(time.Hour, kept.tick)
}

// empty drops all kept coroutines.
func empty() (ticks int) {
	kept.mu.Lock()
	if kept.ticker != nil {
		kept.ticker.Stop()
	}
	kept.mu.Unlock()
	for kept.size() > 0 {
		kept.tick()
		ticks++
	}
	return ticks
}

func (k *keptTasks) size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.idle)
}

// A Run of thousands of tasks uses the coroutines that other Runs have left. Creating one would take 4 µs and 13 allocations for
// each task.
func TestCoroutinesOutliveARun(t *testing.T) {
	const n = 5000
	held()
	waiting(n)
	if size := kept.size(); size < n {
		t.Fatalf("%d coroutines are kept", size)
	}
	least := 1e9
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		waiting(n)
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/n)
	}
	if least > 3 { // 1.1 without the race detector, under which a sync.Pool drops items
		t.Errorf("%.2f allocations for each task", least)
	}
	empty()
}

func TestKeptCoroutinesAreGivenBack(t *testing.T) {
	held()
	before := runtime.NumGoroutine()
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 25 {
				waiting(fewTasks + 100)
			}
		})
	}
	waiting(maxKept + 1000)
	runs.Wait()
	if size := kept.size(); size > maxKept {
		t.Errorf("%d coroutines are kept", size)
	}
	for runtime.NumGoroutine()-before-maxKept > 100 { // waits for coroutines that are not kept to end
		runtime.Gosched()
	}
	if ticks := empty(); ticks > 8 {
		t.Errorf("%d ticks until all were given back", ticks)
	}
	for runtime.NumGoroutine() > before { // waits for their last steps
		runtime.Gosched()
	}
}

// A task that holds its scheduler is reported to this scheduler, even on a coroutine that another Run has created.
func TestStallsOfAKeptCoroutine(t *testing.T) {
	defer empty()
	for range 20 { // repeats, because a tick that began before held may drop the coroutines
		if stallsOnAKeptCoroutine(t) {
			return
		}
	}
	t.Error("no task was on a kept coroutine")
}

func stallsOnAKeptCoroutine(t *testing.T) (reported bool) {
	held()
	waiting(1000)
	old := map[suspend.Task]bool{}
	kept.mu.Lock()
	for _, task := range kept.idle {
		old[task] = true
	}
	kept.mu.Unlock()
	d := NewDriven(suspend.Goroutines, nil, nil, nil, suspend.ErrClosed)
	reports := make(chan struct{}, 1000)
	report := func(stack []byte) {
		if bytes.Contains(stack, []byte("holdsTheRunner")) {
			reports <- struct{}{}
		}
	}
	err := d.Drive(context.Background(), Drive{Name: "test", StallAfter: time.Millisecond, OnStall: report}, func(context.Context) error {
		var parked []suspend.Task
		for range fewTasks + 100 {
			_ = d.Go(func() {
				self := suspend.Self()
				if old[self] && !reported {
					reported = true
					holdsTheRunner(t, reports)
				}
				parked = append(parked, self)
				self.Park()
			})
		}
		for len(parked) < fewTasks+100 {
			suspend.Yield()
		}
		for _, t := range parked {
			t.Unpark()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return reported
}

func holdsTheRunner(t *testing.T, reported chan struct{}) {
	select { // blocks natively, on purpose
	case <-reported:
	case <-time.After(20 * time.Second):
		t.Error("not reported")
	}
}

// If a Run with a locked thread used coroutines of other Runs, the runtime would end the process.
func TestALockedThreadSharesNoCoroutines(t *testing.T) {
	waiting(1000)
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		done <- waiting(1000).shares == no
	}()
	if !<-done {
		t.Error("a Run on a locked thread has used kept coroutines")
	}
	waiting(1000)
	empty()
}

// A coroutine from outside is not part of the bubble, and a coroutine from inside cannot leave it.
func TestABubbleSharesNoCoroutines(t *testing.T) {
	waiting(1000)
	size := kept.size()
	synctest.Test(t, func(t *testing.T) {
		if waiting(1000).shares != no {
			t.Error("a Run in a bubble has used kept coroutines")
		}
	})
	if kept.size() > size {
		t.Error("coroutines have left the bubble")
	}
	empty()
}

func TestFewTasksDoWithoutTheCache(t *testing.T) {
	empty()
	if d := waiting(fewTasks / 2); d.shares != unknown || kept.size() > 0 {
		t.Error("a small Run has checked whether it may use the cache")
	}
}

// A task on a kept coroutine belongs to the Run that started it.
func TestAKeptCoroutineIsTheNewRuns(t *testing.T) {
	waiting(1000)
	d := NewDriven(suspend.Goroutines, nil, nil, nil, suspend.ErrClosed)
	d.self = spawner{d}
	_ = d.Drive(context.Background(), Drive{Name: "test"}, func(context.Context) error {
		for range 500 {
			_ = d.Go(func() {
				suspend.Yield()
				if suspend.Here() != d.self {
					t.Error("the task has another scheduler")
				}
			})
		}
		return nil
	})
	if d.shares != yes {
		t.Error("the Run has made its own coroutines")
	}
	empty()
}

type spawner struct{ *Driven }
