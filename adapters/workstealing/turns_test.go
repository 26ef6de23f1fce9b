package workstealing_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Each leaf takes longer than a turn, so each turn has one pick. The pick must be made: otherwise a new task would wait until the
// fork-join has ended.
func TestSlowForksGiveWay(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		const tasks = 20
		leaves, submitted, since, worst := 0, 0, 0, 0
		done := make(chan struct{})
		e := &endless{p: p, depth: 20}
		e.leaf = func() {
			for start := time.Now(); time.Since(start) < 300*time.Microsecond; {
			}
			leaves++
			if leaves%20 != 10 || submitted == tasks {
				return
			}
			submitted, since = submitted+1, leaves
			_ = p.Go(func() {
				if worst = max(worst, leaves-since); submitted == tasks {
					close(done)
				}
			})
		}
		e.start(1)
		<-done
		e.stopAll()
		if worst > 5 { // two leaves, but more in the first turn, whose length suits shorter steps
			t.Errorf("a task waited for %d leaves", worst)
		}
	})
}

// Many tasks wait for their forks, again and again. Each gets its share. If the youngest fork came first, the task that has just
// run would get all turns.
func TestForksOfManyWaitingTasksAreBegun(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, n := range []int{10, scale(300)} {
		withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
			rounds, all := make([]int, n), 0 // not atomic, because there is one worker
			ended := make(chan struct{}, n)
			for i := range n {
				_ = p.Go(func() {
					for ; all < 500*n; rounds[i]++ {
						all++
						var filled promise.Promise[int]
						_, _, _ = workstealing.Join(bg, p, filled.Await, func(context.Context) (int, error) { filled.Fill(1); return 0, nil })
					}
					ended <- struct{}{}
				})
			}
			for range n {
				<-ended
			}
			if least := slices.Min(rounds); least < 20 { // a machine that pauses for a moment gives one task a long turn
				t.Errorf("%d tasks: one had %d rounds of %d", n, least, all/n)
			}
		})
	}
}

// A long fork-join continues alongside a stream of new fork-joins, each of which starts the next.
func TestALongForkJoinBesideNewOnes(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		tasks := scale(3000)
		leaves, begun, ended := 0, 0, 0
		long := &endless{p: p, depth: 20, leaf: func() { leaves++ }}
		long.start(1)
		short := &endless{p: p, leaf: func() {}}
		done := make(chan struct{})
		var next func()
		next = func() {
			if begun++; begun < tasks {
				_ = p.Go(next)
			} else if leaves < tasks/10 && !schedtest.Race { // its leaves take as long as a turn
				t.Errorf("%d leaves during %d tasks", leaves, tasks)
			}
			_, _ = short.visit(bg, 7)
			if ended++; ended == tasks {
				close(done)
			}
		}
		_ = p.Go(func() { leaves = 0; next() })
		<-done
		long.stopAll()
	})
}

// A deep fork-join that often gives way takes all its forks along. Each fork that stayed behind would become a coroutine in time.
func TestDeepForksDoNotMultiply(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		leaves, most, before := 0, 0, runtime.NumGoroutine()
		enough := 300_000
		if schedtest.Race {
			enough = 10_000
		}
		e := &endless{p: p, depth: 200}
		e.leaf = func() {
			if leaves++; leaves%1000 == 0 {
				grown := runtime.NumGoroutine() - before
				for i := 0; i < 1000 && grown > 5; i++ { // goroutines that have ended count until the garbage collector has freed their stacks
					runtime.Gosched()
					grown = min(grown, runtime.NumGoroutine()-before)
				}
				most = max(most, grown)
				e.stop.Store(leaves >= enough)
			}
		}
		_ = p.Go(func() {
			for !e.stop.Load() {
				suspend.Yield()
			}
		})
		e.start(1)
		_, _ = e.ended[0].Await(bg)
		if most > 5 {
			t.Errorf("%d goroutines", most)
		}
	})
}
