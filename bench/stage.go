package main

import (
	"context"
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
		ok(stage.Close(bg, all...))
	}
}

// channels sends n values through channels, with a goroutine for each stage. Each goroutine forwards values until its input is closed.
func channels(number int, handOn func(ctx context.Context, in, out chan int), send func(ctx context.Context, to chan int, v int)) work {
	return func(n int) {
		ctx, stop := context.WithCancel(bg)
		defer stop()
		first := make(chan int, 100)
		var all sync.WaitGroup
		from := first
		for range number {
			to, in := make(chan int, 100), from
			all.Go(func() { defer close(to); handOn(ctx, in, to) })
			from = to
		}
		all.Go(func() {
			for range from { // drains the last channel until it is closed
			}
		})
		upTo(n, func(i int) { send(ctx, first, i) })
		close(first)
		all.Wait()
	}
}

// withCtx forwards values until in is closed or ctx ends.
func withCtx(ctx context.Context, in, out chan int) {
	for {
		v, more := receiveOr(ctx, in)
		if !more {
			return
		}
		v, _ = increment(ctx, v)
		sendOr(ctx, out, v)
	}
}

func bare(_ context.Context, in, out chan int) {
	for v := range in {
		out <- v + 1
	}
}

func sendBare(_ context.Context, to chan int, v int) { to <- v }

// inlineDo calls Do on an idle stage, so that the handler runs in the caller. The peer is a semaphore around the function.
func inlineDo(n int) {
	s := newStage()
	upTo(n, func(i int) { must(s.Do(uncancelled, i)) })
	ok(s.Close(bg))
}

func channelSemaphore(n int) {
	ctx, sem := uncancelled, make(chan struct{}, 1)
	upTo(n, func(i int) { sendOr(ctx, sem, struct{}{}); must(increment(ctx, i)); <-sem })
}

// workerDo waits for the answer from a worker of the stage.
func workerDo(n int) {
	s := newStage()
	upTo(n, func(i int) { must(must[promise.Future[int]](s.Begin(uncancelled, i)).Await(uncancelled)) })
	ok(s.Close(bg))
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

// rejecting submits n tasks to a full stage, which rejects all of them.
func rejecting(n int) {
	let := make(chan struct{})
	s := stage.New("s", func(context.Context, int) (int, error) { <-let; return 0, nil },
		stage.Options{Queue: stage.NoQueue, Full: stage.FullReject})
	ok(s.Submit(bg, 0))
	upTo(n, func(i int) { check(s.Submit(bg, i) != nil) })
	close(let)
	ok(s.Close(bg))
}

func fullChannel(n int) {
	c := make(chan int, 1)
	c <- 0
	for i := range n {
		select {
		case c <- i:
			check(false)
		default:
		}
	}
}

// circling reproduces figures 3, 5 and 7 of Welsh, Gribble, Brewer and Culler (2000). In a closed loop, each task takes 50 ms, which it
// spends almost entirely waiting. The result is the number of completions per second, counted after the first quarter of the time.
func circling(b *bench, x float64) (all []side) {
	n, d := int(x), time.Duration(b.of(1500, 100))*time.Millisecond
	for _, begin := range []func(n int, done func() (again bool)) (end func()){circlingGoroutines, circlingTimers, circlingStage} {
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
func phase(i, n int) time.Duration { return taskTime * time.Duration(1+i%n) / time.Duration(n) }

// circlingGoroutines starts a goroutine for each round of a task.
func circlingGoroutines(n int, done func() bool) (end func()) {
	var left sync.WaitGroup
	left.Add(n)
	var round func(d time.Duration)
	round = func(d time.Duration) {
		time.Sleep(d)
		if !done() {
			left.Done()
			return
		}
		go round(taskTime)
	}
	upTo(n, func(i int) { go round(phase(i, n)) })
	return left.Wait
}

// circlingTimers starts a timer of an event loop for each round of a task.
func circlingTimers(n int, done func() bool) (end func()) {
	l := must(eventloop.New(eventloop.Options{}))
	var round func(d time.Duration)
	round = func(d time.Duration) {
		l.AfterFunc(d, func() {
			if done() {
				round(taskTime)
			}
		})
	}
	upTo(n, func(i int) { round(phase(i, n)) })
	return func() { ok(l.Close()) }
}

// circlingStage submits each round of a task to a stage of width 1000.
func circlingStage(n int, done func() bool) (end func()) {
	const width = 1000
	var s *stage.Stage[int, int]
	s = stage.New("T", func(ctx context.Context, i int) (int, error) {
		d := taskTime
		if i < min(n, width) { // the round is among the first, which differ in length
			d = phase(i, min(n, width))
		}
		time.Sleep(d)
		if done() {
			return i, s.TrySubmit(stage.Detach(ctx), n)
		}
		return i, nil
	}, stage.Options{Width: width, Queue: n + 1})
	upTo(n, func(i int) { ok(s.Submit(bg, i)) })
	return func() { ok(s.Close(bg)) }
}
