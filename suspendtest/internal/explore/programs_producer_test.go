//go:build explore

package explore_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/producer"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, producerPrograms...) }

// In these programs, a sequence runs in a task of its own. Every wait of its reader ends.
var producerPrograms = []program{
	{"producer, Select", "3 × 3", func(w *explore.World) {
		var told promise.Promise[int]
		w.Go("fill", func(context.Context) { _ = told.Fill(0) })
		reads(w, func() {
			selects(func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, nil) }, &told, func(bool, []int) {})
		})
	}},
	// The promise is filled while the sequence waits, and the sequence continues before the promise is filled.
	{"producer, Select, woken by either", "3 × 3", func(w *explore.World) {
		var first, told, goOn promise.Promise[int]
		w.Go("fill", func(context.Context) {
			_, _ = first.Await(bg)
			_ = told.Fill(0)
		})
		reads(w, func() {
			selects(func(yield func(int, error) bool) {
				if yield(1, nil) {
					_, _ = goOn.Await(bg)
					yield(2, nil)
				}
			}, &told, func(filled bool, got []int) {
				if _ = first.Fill(0); filled {
					_ = goOn.Fill(0)
				}
			})
		})
	}},
	// The permit may be released or not. In both cases the deferred functions of the sequence can wait.
	{"producer, Stop and a permit", "3 × 2", func(w *explore.World) {
		s := semaphore.New(1)
		_ = s.Acquire(bg, 1)
		var goOn promise.Promise[int]
		w.Go("release", func(context.Context) {
			s.Release(1)
			_ = goOn.Fill(0)
		})
		reads(w, func() {
			acquired, left := false, false
			p := producer.Start(func(yield func(int, error) bool) {
				if acquired = s.Acquire(bg, 1) == nil; acquired {
					defer s.Release(1)
					defer func() {
						_, _ = goOn.Await(bg)
						left = true
					}()
					yield(1, nil)
				}
			})
			p.Request()
			if p.Stop(); acquired != left {
				panic("the deferred function has not waited")
			}
		})
		w.Check(func() error { return free(s.TryAcquire(1)) })
	}},
	{"producer, Stop of a wait, and a deferred function that waits", "3 × 2", func(w *explore.World) {
		var never, goOn promise.Promise[int]
		w.Go("fill", func(context.Context) { _ = goOn.Fill(0) })
		reads(w, func() {
			left := false
			p := producer.Start(func(func(int, error) bool) {
				defer func() {
					_, _ = goOn.Await(bg)
					left = true
				}()
				_, _ = never.Await(bg)
				panic("the wait has ended")
			})
			p.Request()
			if p.Stop(); !left {
				panic("the deferred function has not waited")
			}
		})
	}},
	{"producer, Stop of a pause", "3 × 2", func(w *explore.World) {
		var goOn promise.Promise[int]
		w.Go("fill", func(context.Context) { _ = goOn.Fill(0) })
		reads(w, func() {
			left := false
			p := producer.Start(func(yield func(int, error) bool) {
				if !yield(1, nil) { // ends as after a break
					_, _ = goOn.Await(bg)
					left = true
				}
			})
			p.Request()
			_, _ = suspend.Do(bg, p.NextOp())
			if p.Stop(); !left {
				panic("the sequence has not ended as after a break")
			}
		})
	}},
	{"producer, Stop before the first Request", "2 × 1", func(w *explore.World) {
		reads(w, func() {
			p := producer.Start(func(func(int, error) bool) { panic("not requested") })
			p.Stop()
		})
	}},
	{"producer, a panic", "2 × 3", func(w *explore.World) {
		reads(w, func() {
			p := producer.Start(func(yield func(int, error) bool) {
				yield(1, nil)
				panic(errOops)
			})
			for i := range 2 {
				p.Request()
				v := recovered(func() { _, _ = suspend.Do(bg, p.NextOp()) })
				if (i == 1) != (v == errOops) {
					panic(fmt.Sprint("value ", i, ": ", v))
				}
			}
			p.Stop() // must not panic again
		})
	}},
	{"producer, a panic and Stop", "2 × 2", func(w *explore.World) {
		var never promise.Promise[int]
		reads(w, func() {
			p := producer.Start(func(yield func(int, error) bool) {
				defer func() { panic(errOops) }()
				_, _ = never.Await(bg)
			})
			p.Request()
			if v := recovered(p.Stop); v != errOops {
				panic(fmt.Sprint("the panic of the sequence is lost: ", v))
			}
		})
	}},
}

// reads starts the reader of a sequence, on a scheduler whose tasks may exit. f must return.
func reads(w *explore.World, f func()) {
	returned := false
	w.GoExiting("reader", func(context.Context) {
		suspend.Bind(exiting{suspend.Self()}, f)
		returned = true
	})
	w.OnIdle(lost)
	w.Check(func() error { return free(returned) })
}

// selects waits for the values 1 and 2 of a sequence, for its end, and for a promise. After each of these it calls then.
func selects(seq func(yield func(int, error) bool), told *promise.Promise[int], then func(filled bool, got []int)) {
	p := producer.Start(seq)
	next, other := suspend.CaseOf(p.NextOp()), suspend.CaseOf(told.AwaitOp())
	var got []int
	for more, filled := true, false; more || !filled; then(filled, got) {
		var cases [2]suspend.Selectable
		if more {
			p.Request()
			cases[0] = next
		}
		if !filled {
			cases[1] = other
		}
		switch won, _ := suspend.SelectOrdered(bg, cases[:]...); won {
		case next:
			if more = next.Value().OK; more {
				got = append(got, next.Value().Value)
			}
		case other:
			filled = true
		}
	}
	if p.Stop(); !slices.Equal(got, []int{1, 2}) {
		panic(fmt.Sprint("got ", got))
	}
}

// An exiting task starts tasks that may exit.
type exiting struct{ suspend.Task }

func (e exiting) Spawner() suspend.Spawner { return e }

func (exiting) Go(f func()) error {
	preempt.Go(f)
	return nil
}
