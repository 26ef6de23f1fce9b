package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/stage"
)

// stageTasks is after figures 3, 5 and 7 of Welsh, Gribble, Brewer and Culler (2000): a closed loop, in which each task
// takes 50 ms, almost all of it waiting.
var stageTasks = curve{
	id: "stage-tasks", title: "Figures 3, 5 and 7: throughput and tasks in the pipeline",
	about: "Tasks of 50 ms that go round: 1 a goroutine each, which is the figure 3; 2 timers of an event loop, figure 5; " +
		"3 a stage of width 1000 before the goroutines, figure 7 d, which holds T/L = 20,000 a second.",
	x:       axis{label: "tasks in the pipeline", log: true},
	figures: []figure{{name: "throughput", label: "tasks a second", log: true}},
	series:  []string{"goroutine each", "event loop", "stage, T = 1000"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{10}
		}
		return []float64{100, 1000, 10_000, 100_000}
	},
	open: func(m mode, x float64) (*station, error) {
		n, d := int(x), 1500*time.Millisecond
		if m.Tiny {
			d = 100 * time.Millisecond
		}
		s := &station{}
		for _, f := range []func(n int, d time.Duration) float64{goroutineTasks, loopTasks, stagedTasks} {
			s.sides = append(s.sides, func() ([]float64, error) { return []float64{f(n, d)}, nil })
		}
		return s, nil
	},
}

const taskTime = 50 * time.Millisecond

// phase is the length of the first round of a task. The rounds of all tasks so end spread over time, and a count of
// completions does not depend on how many rounds happen to end in its time.
func phase(i, n int) time.Duration { return taskTime * time.Duration(1+i%n) / time.Duration(n) }

// rate counts completions until d is over, without those of the first quarter.
func rate(d time.Duration, done *atomic.Int64) float64 {
	time.Sleep(d / 4)
	before, start := done.Load(), time.Now()
	time.Sleep(d - d/4)
	return float64(done.Load()-before) / time.Since(start).Seconds()
}

func goroutineTasks(n int, d time.Duration) float64 {
	var done, left atomic.Int64
	var over atomic.Bool
	var round func(d time.Duration)
	round = func(d time.Duration) {
		time.Sleep(d)
		if done.Add(1); over.Load() {
			left.Add(-1)
			return
		}
		go round(taskTime)
	}
	left.Store(int64(n))
	for i := range n {
		go round(phase(i, n))
	}
	r := rate(d, &done)
	over.Store(true)
	for left.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	return r
}

func loopTasks(n int, d time.Duration) float64 {
	l := must(eventloop.New(eventloop.Options{}))
	var done atomic.Int64
	var over atomic.Bool
	var round func(d time.Duration)
	round = func(d time.Duration) {
		l.AfterFunc(d, func() {
			if done.Add(1); !over.Load() {
				round(taskTime)
			}
		})
	}
	for i := range n {
		round(phase(i, n))
	}
	r := rate(d, &done)
	over.Store(true)
	must(0, l.Close())
	return r
}

func stagedTasks(n int, d time.Duration) float64 {
	const width = 1000
	bg := context.Background()
	var done atomic.Int64
	var over atomic.Bool
	var s *stage.Stage[int, int]
	s = stage.New("T", func(ctx context.Context, i int) (int, error) {
		d := taskTime
		if i < min(n, width) { // the first in each slot
			d = phase(i, min(n, width))
		}
		time.Sleep(d)
		if done.Add(1); !over.Load() {
			return i, s.TrySubmit(stage.Detach(ctx), n) // it goes round
		}
		return i, nil
	}, stage.Options{Width: width, Queue: n + 1})
	for i := range n {
		must(0, s.Submit(bg, i))
	}
	r := rate(d, &done)
	over.Store(true)
	must(0, s.Close(bg))
	return r
}
