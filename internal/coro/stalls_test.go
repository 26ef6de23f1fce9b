package coro

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched runs f in a bubble, where times are exact. reports returns the reports of a watch with the given limit.
func watched(t *testing.T, limit time.Duration, f func(s *Stalls, reports func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var all []string
		s := newStalls(limit, func(text []byte) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, string(text))
		})
		defer s.Stop()
		f(s, func() []string {
			mu.Lock()
			defer mu.Unlock()
			return all
		})
	})
}

// held is a step of a task that takes d, as if the task blocked natively.
func held(s *Stalls, d time.Duration) { step(s, func() { time.Sleep(d) }) }

// step is a step of a task that calls f.
func step(s *Stalls, f func()) {
	var task nobody
	task.Init(&task)
	task.Start(f)
	task.WatchedBy(s)
	s.Begin()
	task.Step()
	task.Stop()
}

// With a limit of 100 ms, each stall of more than 100 ms is reported, whenever it begins between two looks.
func TestStallsAreExact(t *testing.T) {
	const limit = 100 * time.Millisecond
	for _, test := range []struct {
		held time.Duration
		want int
	}{{95 * time.Millisecond, 0}, {99 * time.Millisecond, 0}, {103 * time.Millisecond, 1}, {105 * time.Millisecond, 1}, {110 * time.Millisecond, 1}, {199 * time.Millisecond, 1}, {211 * time.Millisecond, 2}} {
		for phase := time.Duration(0); phase < limit/10; phase += time.Millisecond / 2 { // the step begins at any moment between two looks
			watched(t, limit, func(s *Stalls, reports func() []string) {
				held(s, phase)
				held(s, test.held)
				held(s, 0)
				s.End()
				if n := len(reports()); n != test.want {
					t.Errorf("held for %v, %v after the first look: %d reports instead of %d", test.held, phase, n, test.want)
				}
			})
		}
	}
}

// A report that is due between two looks does not wait for the second look.
func TestStallsOfAShortLimit(t *testing.T) {
	const limit = 1100 * time.Microsecond // looks come every 250 µs
	for phase := time.Duration(0); phase < limit/2; phase += 50 * time.Microsecond {
		watched(t, limit, func(s *Stalls, reports func() []string) {
			held(s, phase)
			held(s, 1360*time.Microsecond)
			held(s, 0)
			s.End()
			if n := len(reports()); n != 1 {
				t.Errorf("%v after the first look: %d reports", phase, n)
			}
		})
	}
}

// A stall is reported again and again, for readers who were not there at first.
func TestStallsAreReportedAgain(t *testing.T) {
	watched(t, time.Second, func(s *Stalls, reports func() []string) {
		s.others = func() int64 { return 37 }
		held(s, 17*time.Second)
		held(s, time.Millisecond)
		s.End()
		all := reports()
		if len(all) != 5 { // after 1, 2, 4, 8 and 16 seconds
			t.Fatalf("%d reports: %q", len(all), all)
		}
		for i, want := range []string{"a task has held its scheduler for more than 1s; 37 other tasks wait behind it", "still stalled after 2s: ", "still stalled after 4s: "} {
			if !strings.HasPrefix(all[i], want) {
				t.Errorf("report %d: %q", i, all[i])
			}
		}
		for _, text := range all {
			if !strings.Contains(text, "a native wait in a task (sleep): see suspend.Blocking and adapters/eventloop/README.md") || !strings.Contains(text, ".held.") {
				t.Errorf("no cause, or no line: %q", text)
			}
		}
	})
}

// A scheduler that is idle for days is not stalled, and neither is one with many short steps.
func TestStallsOfNobody(t *testing.T) {
	watched(t, 100*time.Millisecond, func(s *Stalls, reports func() []string) {
		for range 1000 {
			step(s, func() {
				time.Sleep(60 * time.Millisecond)
				s.Begin() // on the same goroutine
				time.Sleep(60 * time.Millisecond)
			})
		}
		s.End()
		time.Sleep(48 * time.Hour)
		if all := reports(); len(all) > 0 {
			t.Errorf("%q", all)
		}
		if s.state.Load() != idle {
			t.Error("the timer runs though no task does")
		}
		held(s, time.Second)
		if len(reports()) == 0 {
			t.Error("no report after it was idle")
		}
		s.End()
	})
}

// Fifty tasks that block natively for 61 ms each delay a new task for three seconds, although no step is long. A look comes every
// 25 ms, and never at the end of a step, where it would find the next task before its wait or in it.
func TestStallsOfARow(t *testing.T) {
	for _, test := range []struct {
		each  time.Duration
		tasks int
		ended bool // each step is followed by End, as on a foreign executor
		want  int
	}{
		{61 * time.Millisecond, 50, false, 2}, // reports after one second and after two
		{61 * time.Millisecond, 50, true, 2},
		{61 * time.Millisecond, 15, false, 0}, // 0.9 s in all
		{12 * time.Millisecond, 100, false, 1},
		{53 * time.Microsecond, 50_000, false, 0}, // the queue moves; no look before 1.3 s finds the end of a step
	} {
		watched(t, time.Second, func(s *Stalls, reports func() []string) {
			passed := 0
			s.Rows(&queue{&passed, test.tasks})
			var task nobody
			task.Init(&task)
			task.WatchedBy(s)
			for passed < test.tasks {
				passed++
				task.Start(func() { time.Sleep(test.each) })
				s.Begin()
				task.Step()
				if test.ended {
					s.End()
				}
			}
			s.End()
			s.Slept()
			time.Sleep(time.Hour)
			task.Start(func() { time.Sleep(900 * time.Millisecond) }) // the row of tasks has ended
			s.Begin()
			task.Step()
			s.End()
			task.Stop()
			all := reports()
			if len(all) != test.want {
				t.Errorf("%+v: %q", test, all)
			}
			for _, text := range all {
				if !strings.Contains(text, "tasks have held their scheduler, one after another, for more than 1s") || !strings.Contains(text, "a native wait in a task (sleep): see suspend.Blocking and adapters/eventloop/README.md") {
					t.Errorf("%s", text)
				}
			}
		})
	}
}

// While a goroutine of the scheduler itself runs, no task is reported.
func TestStallsOfATaskThatHasGivenControlBack(t *testing.T) {
	watched(t, 100*time.Millisecond, func(s *Stalls, reports func() []string) {
		var task nobody
		task.Init(&task)
		task.Start(func() { task.Leave(Yielded)(struct{}{}) })
		task.WatchedBy(s)
		s.Begin()
		task.Step()
		time.Sleep(time.Second) // the scheduler takes this time, not a task
		if all := reports(); len(all) > 0 {
			t.Errorf("%q", all)
		}
		task.Step()
		task.Stop()
		s.End()
	})
}

// A report states the length of a wait from the second report on. Before the first, the machine may have slept.
func TestStallsSayHowLongATaskWaits(t *testing.T) {
	const limit = 100 * time.Millisecond
	watched(t, limit, func(s *Stalls, _ func() []string) {
		waited := make(chan time.Duration, 3)
		s.About(func(_ int64, waits time.Duration) (task, remedy string) {
			waited <- waits.Round(limit / 10)
			return "", ""
		})
		held(s, 4*limit+limit/2)
		s.End()
		for _, want := range []time.Duration{0, 2 * limit, 4 * limit} {
			if got := <-waited; got != want {
				t.Errorf("%v, and not %v", got, want)
			}
		}
	})
}

// With several workers, each report names the task of its worker. A coroutine belongs to the worker that has run it last.
func TestStallsOfTwoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports [2]string
		var workers [2]*Stalls
		for i := range workers {
			workers[i] = newStalls(100*time.Millisecond, func(text []byte) { reports[i] = string(text) })
			defer workers[i].Stop()
		}
		var task nobody
		task.Init(&task)
		task.Start(func() {
			task.Leave(Yielded)(struct{}{})
			time.Sleep(150 * time.Millisecond)
		})
		task.WatchedBy(workers[1])
		workers[1].Begin()
		task.Step()
		workers[1].End()
		var both sync.WaitGroup
		both.Go(func() {
			task.WatchedBy(workers[0])
			workers[0].Begin()
			task.Step()
			workers[0].End()
		})
		both.Go(func() {
			step(workers[1], func() { <-time.After(150 * time.Millisecond) })
			workers[1].End()
		})
		both.Wait()
		task.Stop()
		for i, want := range []string{"(sleep)", "(chan receive)"} {
			if !strings.Contains(reports[i], want) {
				t.Errorf("worker %d has not %s: %s", i, want, reports[i])
			}
		}
	})
}

// A nobody is the owner of a coroutine without a scheduler.
type nobody struct{ Coroutine }

func (*nobody) Park()                {}
func (*nobody) Unpark()              {}
func (*nobody) Another() func()      { return nil }
func (*nobody) Panicked(any, []byte) {}

func TestWaitState(t *testing.T) {
	for head, want := range map[string]string{
		"goroutine 7 [running]:":                                           "running",
		"goroutine 7 [sync.Mutex.Lock, 3 minutes]:":                        "sync.Mutex.Lock",
		"goroutine 7 [select (no cases), 3 minutes, locked to thread]:\nx": "select",
		"goroutine 7 [IO wait]:":                                           "IO wait",
		"goroutine 7 [chan receive (durable), synctest bubble 3]:":         "chan receive",
		"": "",
	} {
		if got := waitState([]byte(head)); got != want {
			t.Errorf("%q: %q", head, got)
		}
	}
}

// In a bubble nothing is reported: with an endless timer, the bubble could not detect a deadlock.
func TestNoStallsInABubble(t *testing.T) {
	if InBubble() {
		t.Error("outside")
	}
	synctest.Test(t, func(t *testing.T) {
		if WatchStalls(0, nil) != nil {
			t.Error("watched in a bubble")
		}
	})
	if WatchStalls(-1, nil) != nil {
		t.Error("watched although it is off")
	}
	if s := WatchStalls(0, nil); s == nil || s.after != time.Second {
		t.Error("not watched by default")
	}
}

// The tasks of a pool may compute for a long time. By default, only a native wait is reported.
func TestStallsOfAWorker(t *testing.T) {
	for _, compute := range []bool{true, false} {
		reports := make(chan string, 1)
		s := newStalls(20*time.Millisecond, func(text []byte) {
			select {
			case reports <- string(text):
			default:
			}
		})
		s.waitsOnly = true
		step(s, func() {
			if compute {
				for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
				}
				if len(reports) > 0 {
					t.Errorf("reported: %s", <-reports)
				}
			} else if r := <-reports; !strings.Contains(r, "a native wait in a task (chan receive)") {
				t.Errorf("reported: %s", r)
			}
		})
		s.End()
		s.Stop()
	}
	if s := WatchWorker(0, nil); !s.waitsOnly {
		t.Error("computing is reported by default")
	}
	if s := WatchWorker(time.Second, nil); s.waitsOnly {
		t.Error("computing is not reported, although it was requested")
	}
}

// A report begins with the line to look at: a line of the program, not of a library that it calls.
func TestTheLineOfTheProgram(t *testing.T) {
	const stack = "goroutine 9 [select]:\nruntime.gopark(0x1)\n\t/go/src/runtime/proc.go:1 +0x1\ngithub.com/redis/x.(*Pool).Get(0x2)\n\t/m/pool.go:2 +0x2\n" +
		"example.org/shop/cart.Load(...)\n\t/home/shop/cart.go:33 +0x44\nmain.main.func1()\n\t/home/shop/main.go:5 +0x5\nexample.org/shop2.f()\n\t/x.go:1 +0x1"
	for own, want := range map[string]string{"example.org/shop/": "/home/shop/cart.go:33", "main.": "/home/shop/main.go:5", "example.org/shop.": ""} {
		if at := string(lineOf([]byte(stack), []string{own})); at != want {
			t.Errorf("%s: %q", own, at)
		}
	}
}

// A look may take a long time, because it prints the stacks of all goroutines. The worker does not wait for it when its next step begins.
func TestTheWorkerDoesNotWaitForALook(t *testing.T) {
	watched(t, time.Hour, func(s *Stalls, _ func() []string) {
		s.Rows(&queue{new(int), 0})
		s.Begin()
		s.state.Store(asked)
		s.mu.Lock() // as a look does
		s.Begin()   // would wait for ever
		s.mu.Unlock()
		s.Begin()
		s.End()
	})
}

// A queue has passed some of its tasks.
type queue struct {
	passed *int
	tasks  int
}

func (q *queue) Passed() int  { return *q.passed }
func (q *queue) Waiting() int { return q.tasks - *q.passed }
