package main

import (
	"context"
	"sync"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
)

// These rows measure the cost of a task that does next to nothing, in processor time of all threads. Wall time depends on other processes.
// Queues and channels have room for 100.
var stageRows = []row{
	stageRow("stage/1", "1 channel, select with ctx", 1.2, 0.9, stagePipe(1), channelPipe(1)),
	stageRow("stage/3", "3 channels, select with ctx", 1.0, 0.7, stagePipe(3), channelPipe(3)),
	stageRow("stage/10", "10 channels, select with ctx", 0.85, 0.6, stagePipe(10), channelPipe(10)),
	stageRow("stage/10-bare", "10 channels, no ctx", 0, 0, stagePipe(10), barePipe(10)),
	// The two readings of the clock, for Stats.Service, take longer than the semaphore; 1.2 would be without them.
	stageRow("stage/do", "semaphore: a channel, with ctx", 2.7, 2.0, stageDo, channelSemaphore),
	stageRow("stage/do-worker", "a worker and a reply channel", 1.7, 1.2, stageBegin, replyChannel),
	stageRow("stage/do-pond", "pond ResultPool", 0, 0, stageBegin, pondResult),
	stageRow("stage/reject", "a full channel, select with default", 0, 0, stageReject, channelReject),
}

func stageRow(id, against string, must, aim float64, ours, peer func(n int)) row {
	cpu := func(f func(n int)) side {
		return timedBy(func(n int) time.Duration {
			start := processorTime()
			f(n)
			return max(processorTime()-start, 1)
		})
	}
	return row{id: id, against: against, unit: "ns", must: must, aim: aim, open: func(mode) (*sides, error) {
		return &sides{ours: cpu(ours), peer: cpu(peer)}, nil
	}}
}

func increment(_ context.Context, n int) (int, error) { return n + 1, nil }

// stagePipe sends n tasks through a pipe of stages.
func stagePipe(stages int) func(n int) {
	return func(n int) {
		bg := context.Background()
		var f stage.Flow[int, int]
		var all []stage.Closer
		for i := range stages {
			s := stage.New("s", increment, stage.Options{Queue: 100})
			all = append(all, s)
			if i == 0 {
				f = s
			} else {
				f = stage.Pipe(f, stage.Flow[int, int](s))
			}
		}
		for i := range n {
			must(0, f.Submit(bg, i))
		}
		must(0, stage.Close(bg, all...))
	}
}

// channelPipe does the same with a goroutine for each stage, that stops when ctx is done.
func channelPipe(stages int) func(n int) {
	return func(n int) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		in := make(chan int, 100)
		var all sync.WaitGroup
		from := in
		for range stages {
			to, source := make(chan int, 100), from
			all.Go(func() {
				defer close(to)
				for {
					select {
					case v, ok := <-source:
						if !ok {
							return
						}
						v, _ = increment(ctx, v)
						select {
						case to <- v:
						case <-ctx.Done():
							return
						}
					case <-ctx.Done():
						return
					}
				}
			})
			from = to
		}
		all.Go(func() {
			for range from {
			}
		})
		for i := range n {
			select {
			case in <- i:
			case <-ctx.Done():
			}
		}
		close(in)
		all.Wait()
	}
}

func barePipe(stages int) func(n int) {
	return func(n int) {
		in := make(chan int, 100)
		var all sync.WaitGroup
		from := in
		for range stages {
			to, source := make(chan int, 100), from
			all.Go(func() {
				for v := range source {
					to <- v + 1
				}
				close(to)
			})
			from = to
		}
		all.Go(func() {
			for range from {
			}
		})
		for i := range n {
			in <- i
		}
		close(in)
		all.Wait()
	}
}

func stageDo(n int) {
	ctx := cancellable()
	s := stage.New("s", increment, stage.Options{Queue: 100})
	for i := range n {
		must(s.Do(ctx, i))
	}
	must(0, s.Close(ctx))
}

func channelSemaphore(n int) {
	ctx := cancellable()
	sem := make(chan struct{}, 1)
	for i := range n {
		select {
		case sem <- struct{}{}:
		case <-ctx.Done():
		}
		must(increment(ctx, i))
		<-sem
	}
}

// stageBegin waits for the answer of a worker.
func stageBegin(n int) {
	ctx := cancellable()
	s := stage.New("s", increment, stage.Options{Queue: 100})
	for i := range n {
		must(must[promise.Future[int]](s.Begin(ctx, i)).Await(ctx))
	}
	must(0, s.Close(ctx))
}

func replyChannel(n int) {
	ctx := cancellable()
	type request struct {
		n     int
		reply chan int
	}
	in := make(chan request, 100)
	go func() {
		for r := range in {
			v, _ := increment(ctx, r.n)
			r.reply <- v
		}
	}()
	for i := range n {
		reply := make(chan int, 1)
		select {
		case in <- request{i, reply}:
		case <-ctx.Done():
		}
		select {
		case <-reply:
		case <-ctx.Done():
		}
	}
	close(in)
}

func pondResult(n int) {
	p := pond.NewResultPool[int](1)
	for i := range n {
		must(p.Submit(func() int { return i + 1 }).Wait())
	}
	p.StopAndWait()
}

// A full stage rejects n tasks.
func stageReject(n int) {
	bg := context.Background()
	let := make(chan struct{})
	s := stage.New("s", func(context.Context, int) (int, error) { <-let; return 0, nil }, stage.Options{Queue: stage.NoQueue, Full: stage.FullReject})
	must(0, s.Submit(bg, 0))
	for i := range n {
		check(s.Submit(bg, i) != nil)
	}
	close(let)
	must(0, s.Close(bg))
}

func channelReject(n int) {
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
