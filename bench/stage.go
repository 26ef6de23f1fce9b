package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
)

// The rows measure the overhead per task: the handler only increments a number. The gauge is the processor time of all threads, because
// wall time depends on other processes. Queues and channels have a capacity of 100.

func increment(_ context.Context, n int) (int, error) { return n + 1, nil }

func newStage() *stage.Stage[int, int] { return stage.New("s", increment, stage.Options{Queue: 100}) }

// stages sends n tasks through a pipe with the given number of stages.
func stages(number int) work {
	return func(n int) {
		s := newStage()
		var f stage.Flow[int, int] = s
		all := []stage.Closer{s}
		for range number - 1 {
			s := newStage()
			all, f = append(all, s), stage.Pipe(f, stage.Flow[int, int](s))
		}
		upTo(n, func(i int) { ok(f.Submit(bg, i)) })
		ok(stage.Shutdown(bg, all...))
	}
}

// channels sends n values through channels, with a goroutine for each stage. Each goroutine forwards values until its input is closed. Each
// operation is a select with ctx.Done.
func channels(number int) work {
	return func(n int) {
		ctx, stop := context.WithCancel(bg)
		defer stop()
		var all sync.WaitGroup
		forward := func(in, out chan int) {
			defer close(out)
			for v, more := receiveOr(ctx, in); more; v, more = receiveOr(ctx, in) {
				v, _ = increment(ctx, v)
				sendOr(ctx, out, v)
			}
		}
		first := make(chan int, 100)
		from := first
		for range number {
			in, to := from, make(chan int, 100)
			all.Go(func() { forward(in, to) })
			from = to
		}
		all.Go(func() {
			for range from { // drains the last channel until it is closed
			}
		})
		upTo(n, func(i int) { sendOr(ctx, first, i) })
		close(first)
		all.Wait()
	}
}

// inlineDo calls Do on an idle stage, so that the handler runs in the caller. The peer is a semaphore around the function.
func inlineDo(n int) {
	s := newStage()
	upTo(n, func(i int) { must(s.Do(uncancelled, i)) })
	ok(s.Shutdown(bg))
}

func channelSemaphore(n int) {
	ctx, sem := uncancelled, make(chan struct{}, 1)
	upTo(n, func(i int) { sendOr(ctx, sem, struct{}{}); must(increment(ctx, i)); <-sem })
}

// beginIn waits for the answers of a worker of the pool p.
func beginIn(p *stage.Pool) work {
	return func(n int) {
		s := stage.New("s", increment, stage.Options{Pool: p})
		upTo(n, func(i int) { must(must[promise.Future[int]](s.Begin(bg, i)).Await(bg)) })
		ok(s.Shutdown(bg))
	}
}

func usedPool() *stage.Pool {
	p := freshPool()
	for i := range 5000 {
		s := stage.New("gone", increment, stage.Options{Pool: p})
		must(s.Begin(bg, i))
		ok(s.Shutdown(bg))
	}
	return p
}

func freshPool() *stage.Pool { return stage.NewPool("p", 1, nil) }

// workerDo waits for the answer from a worker of the stage.
func workerDo(n int) {
	s := newStage()
	upTo(n, func(i int) { must(must[promise.Future[int]](s.Begin(uncancelled, i)).Await(uncancelled)) })
	ok(s.Shutdown(bg))
}

func replyChannel(n int) {
	type request struct {
		n     int
		reply chan int
	}
	ctx, in := uncancelled, make(chan request, 100)
	go func() {
		for r := range in {
			v, _ := increment(ctx, r.n)
			r.reply <- v
		}
	}()
	for i := range n {
		reply := make(chan int, 1)
		sendOr(ctx, in, request{i, reply})
		receiveOr(ctx, reply)
	}
	close(in)
}

// Welsh, Gribble, Brewer and Culler (2000) propose convoys: a thread performs the same operation for several tasks, so
// that the state of the operation stays in the cache. A worker of a Pool does so by itself, since it stays with a stage whose tasks wait. Here
// each of six operations has 512 KB of state, together more than the second-level cache of most processors.
const operations, callers = 6, 256

// newStates returns a state for each operation. The first word of each cache line has the index of another, in a random order that visits
// all, so that the processor cannot fetch ahead.
func newStates() [][]uint64 {
	states := make([][]uint64, operations)
	for i := range states {
		state := make([]uint64, 512<<10/8)
		order := rand.New(rand.NewPCG(uint64(i), 0)).Perm(len(state) / 8)
		for k, line := range order {
			state[8*line] = uint64(8 * order[(k+1)%len(order)])
		}
		states[i] = state
	}
	return states
}

// touch looks at each cache line of a state, which takes as long as a search in a large map.
func touch(state []uint64) {
	at := state[0]
	for at != 0 {
		at = state[at]
	}
}

// convoys sends n tasks through stages that share a worker, one for each operation.
func convoys(states [][]uint64) work {
	return func(n int) {
		p := freshPool()
		var f stage.Flow[int, int]
		var all []stage.Closer
		for _, state := range states {
			s := stage.New("s", func(_ context.Context, i int) (int, error) { touch(state); return i, nil }, stage.Options{Pool: p, Queue: callers})
			if all = append(all, s); f == nil {
				f = s
			} else {
				f = stage.Pipe(f, stage.Flow[int, int](s))
			}
		}
		upTo(n, func(i int) { ok(f.Submit(bg, i)) })
		ok(stage.Shutdown(bg, all...))
	}
}

// oneAfterTheOther performs all operations of a task before the next task begins.
func oneAfterTheOther(states [][]uint64) work {
	return again(func() {
		for _, state := range states {
			touch(state)
		}
	})
}

// circling reproduces figures 3, 5 and 7 of Welsh, Gribble, Brewer and Culler (2000). In a closed loop, each task takes 50 ms, which it
// spends almost entirely waiting. The result is the number of completions per second, counted after the first quarter of the time.
func circling(b *bench, x float64) []side {
	loop := b.loop(eventloop.Options{})
	return circles(b, int(x),
		circlingBy(func(d time.Duration, f func()) { go func() { time.Sleep(d); f() }() }),
		circlingBy(func(d time.Duration, f func()) { loop.AfterFunc(d, f) }),
		circlingStage(1000, taskTime))
}

// widths reproduces figure 7 c of the same paper: stages of several widths T, whose tasks take several times L.
func widths(b *bench, x float64) []side {
	var all []func(n int, done func() bool) (end func())
	for _, w := range stageWidths {
		all = append(all, circlingStage(w.width, w.taskTime))
	}
	return circles(b, int(x), all...)
}

var stageWidths = []struct {
	width    int
	taskTime time.Duration
}{{100, 200 * time.Millisecond}, {100, 50 * time.Millisecond}, {1000, 200 * time.Millisecond}, {1000, 50 * time.Millisecond}}

func widthNames() (all []string) {
	for _, w := range stageWidths {
		all = append(all, fmt.Sprintf("T = %d, L = %v: T/L = %.0f", w.width, w.taskTime, float64(w.width)/w.taskTime.Seconds()))
	}
	return all
}

// circles returns a side for each way to begin n tasks that go round.
func circles(b *bench, n int, ways ...func(n int, done func() (again bool)) (end func())) (all []side) {
	d := time.Duration(b.of(1500, 100)) * time.Millisecond
	for _, begin := range ways {
		all = append(all, func() float64 {
			var done atomic.Int64
			var over atomic.Bool
			end := begin(n, func() bool { done.Add(1); return !over.Load() })
			time.Sleep(d / 4)
			before, start := done.Load(), time.Now()
			time.Sleep(d - d/4)
			rate := float64(done.Load()-before) / time.Since(start).Seconds()
			over.Store(true)
			end()
			return rate
		})
	}
	return all
}

const taskTime = 50 * time.Millisecond

// phase returns the length of the first round of task i. The first rounds differ in length, so that the ends of all rounds are spread
// evenly over time. Otherwise the number of counted completions would depend on chance.
func phase(i, n int, taskTime time.Duration) time.Duration {
	return taskTime * time.Duration(1+i%n) / time.Duration(n)
}

// circlingBy starts each round of a task with the function after: a goroutine that sleeps, or a timer of an event loop.
func circlingBy(after func(d time.Duration, f func())) func(n int, done func() bool) (end func()) {
	return func(n int, done func() bool) (end func()) {
		var left sync.WaitGroup
		left.Add(n)
		var next func()
		next = func() {
			if done() {
				after(taskTime, next)
			} else {
				left.Done()
			}
		}
		upTo(n, func(i int) { after(phase(i, n, taskTime), next) })
		return left.Wait
	}
}

// circlingStage submits each round of a task to a stage of the given width.
func circlingStage(width int, taskTime time.Duration) func(n int, done func() bool) (end func()) {
	return func(n int, done func() bool) (end func()) {
		var s *stage.Stage[int, int]
		s = stage.New("T", func(ctx context.Context, i int) (int, error) {
			d := taskTime
			if first := min(n, width); i < first { // the round is among the first, which differ in length
				d = phase(i, first, taskTime)
			}
			time.Sleep(d)
			if done() {
				return i, s.TrySubmit(stage.Detach(ctx), n)
			}
			return i, nil
		}, stage.Options{Width: width, Queue: n + 1})
		upTo(n, func(i int) { ok(s.Submit(bg, i)) })
		return func() { ok(s.Shutdown(bg)) }
	}
}
