//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() {
	programs = append(programs, poolPrograms...)
	boundedPrograms = append(boundedPrograms, largePoolPrograms...)
}

var poolPrograms = []program{
	{"posts", "3 × 2", func(w *explore.World) {
		p := fifo.NewPosting(1)
		var done atomicx.Int32
		const each = 2
		for _, name := range []string{"unpark", "unpark2"} {
			w.Go(name, func(context.Context) {
				for range each {
					done.Add(1)
					p.Unpark(0)
				}
			})
		}
		w.Go("run", func(context.Context) { // runs until the task has seen all additions
			seen := int32(0)
			p.Drive(func() bool { return seen == 2*each }, func(int) { seen = done.Load() })
		})
	}},
	{"posts to two tasks", "3 × 2", func(w *explore.World) {
		p := fifo.NewPosting(2)
		var done [2]atomicx.Int32
		for i, name := range []string{"unpark", "unpark2"} {
			w.Go(name, func(context.Context) {
				for n := range 2 {
					done[(i+n)%2].Add(1)
					p.Unpark((i + n) % 2)
				}
			})
		}
		w.Go("run", func(context.Context) {
			seen := [2]int32{}
			p.Drive(func() bool { return seen == [2]int32{2, 2} }, func(task int) { seen[task] = done[task].Load() })
		})
	}},
	{"posts, a permit", "2 × 1", func(w *explore.World) {
		p := fifo.NewPosting(1)
		w.Go("unpark", func(context.Context) { p.Unpark(0) })
		w.Go("run", func(context.Context) {
			turns := 0
			p.Drive(func() bool { return turns == 2 }, func(int) {
				if turns++; turns == 1 {
					p.Unpark(0) // the task wakes itself, so it does not park
				}
			})
		})
	}},
	// The first runnable task runs first, even if it came from outside and the second comes from the scheduler itself.
	{"posts, in order", "2 × 2", func(w *explore.World) {
		p := fifo.NewPosting(2)
		var posted atomicx.Bool
		w.Go("unpark", func(context.Context) {
			p.Unpark(0)
			posted.Store(true)
			_ = p.Go(func() {}) // makes the scheduler look at its inbox
		})
		w.Go("run", func(context.Context) {
			var order []int
			sent := false
			p.Drive(func() bool {
				if !sent && posted.Load() {
					sent = true
					p.Unpark(1)
				}
				return len(order) == 2
			}, func(task int) { order = append(order, task) })
			if !slices.Equal(order, []int{0, 1}) {
				panic("out of order")
			}
		})
	}},
	// The coroutine of a task that has ended moves to another Runner, while an Unpark of the task is still under way.
	{"posts, moved", "3 × 1", func(w *explore.World) {
		p, q := fifo.NewPosting(1), fifo.NewPosting(0)
		var moved promise.Promise[int]
		var done atomicx.Int32
		w.Go("late", func(context.Context) { p.Unpark(0) })
		w.Go("unpark", func(context.Context) {
			_, _ = moved.Await(bg)
			done.Add(1)
			q.Unpark(0)
		})
		w.Go("run", func(context.Context) {
			q.Adopt(p)
			_ = moved.Fill(0)
			seen := int32(0)
			q.Drive(func() bool { return seen == 1 }, func(int) { seen = done.Load() })
		})
	}},
	// The task that calls Run parks, and its Park resumes a task of the Run, as in a Group of package idle.
	{"posts, by the Park of Run's caller", "2 × 1", func(w *explore.World) {
		p := fifo.NewPosting(1)
		var done atomicx.Int32
		w.Go("unpark", func(context.Context) {
			done.Add(1)
			p.Unpark(0)
		})
		w.Go("run", func(context.Context) {
			resume := func() { done.Add(1); p.Unpark(0) }
			suspend.Bind(&resuming{suspend.Self(), resume}, func() {
				seen := int32(0)
				p.Drive(func() bool { return seen == 2 }, func(int) { seen = done.Load() })
			})
		})
	}},
	// An accepted function runs before the Run ends, and a refused one does not run.
	{"runner, closing", "3 × 1", func(w *explore.World) {
		p := fifo.NewPosting(0)
		var ran, accepted [2]int
		for i, name := range []string{"submit", "submit2"} {
			w.Go(name, func(context.Context) {
				switch err := p.Go(func() { ran[i]++ }); err {
				case nil:
					accepted[i]++
				case suspend.ErrClosed:
				default:
					panic(err)
				}
			})
		}
		w.Go("run", func(context.Context) { p.Drive(p.CloseIfDone, nil) })
		w.Check(func() error { return errors.Join(same(accepted[0], ran[0]), same(accepted[1], ran[1])) })
	}},
	{"fiber", "3 × 1", fiberProgram(1, 2)},
	{"injector, two submitters", "4 × 1", func(w *explore.World) {
		var in workstealing.Injector
		var ran [2]int
		for i, name := range []string{"push", "push2"} {
			w.Go(name, func(context.Context) { in.Push(func() { ran[i]++ }) })
		}
		for _, pop := range []func() func(){in.Pop, in.PopNew} {
			w.Go("pop", func(context.Context) {
				if f := pop(); f != nil {
					f()
				}
			})
		}
		w.Check(func() error {
			for f := in.Pop(); f != nil; f = in.Pop() {
				f()
			}
			return errors.Join(same(1, ran[0]), same(1, ran[1]))
		})
	}},
	{"injector, in order", "2 × 3", func(w *explore.World) {
		var in workstealing.Injector
		var order []int
		w.Go("push", func(context.Context) {
			for i := range 3 {
				in.Push(func() { order = append(order, i) })
			}
		})
		w.Go("pop", func(context.Context) {
			for range 2 {
				if f := in.Pop(); f != nil {
					f()
				}
			}
		})
		w.Check(func() error {
			for f := in.Pop(); f != nil; f = in.Pop() {
				f()
			}
			if !slices.Equal(order, []int{0, 1, 2}) {
				return fmt.Errorf("in the order %v", order)
			}
			return nil
		})
	}},
	// Two workers steal from a queue of two entries, while its owner pushes a third and pops. A refused entry is run at once.
	{"queue, two thieves", "3 × 1", func(w *explore.World) {
		q := workstealing.NewQueue(2)
		var ran [3]int
		push := func(i int) bool { return q.Push(func() { ran[i]++ }) }
		push(0)
		push(1)
		pop := func() {
			if f := q.Pop(); f != nil {
				f()
			}
		}
		w.Go("owner", func(context.Context) {
			if !push(2) {
				ran[2]++
			}
			pop()
		})
		for _, name := range []string{"thief", "thief2"} {
			w.Go(name, func(context.Context) { pop() })
		}
		w.Check(func() error {
			for range ran {
				pop()
			}
			return errors.Join(same(1, ran[0]), same(1, ran[1]), same(1, ran[2]))
		})
	}},
	// A queue with two entries, one of which is taken, never seems empty.
	{"queue, not empty", "3 × 1", func(w *explore.World) {
		q := workstealing.NewQueue(2)
		q.Push(func() {})
		q.Push(func() {})
		w.Go("thief", func(context.Context) { q.Pop() })
		w.Go("look", func(context.Context) {
			if q.Empty() {
				panic("seems empty")
			}
		})
	}},
	{"queue, in order", "2 × 3", func(w *explore.World) {
		q := workstealing.NewQueue(4)
		var order []int
		pop := func() bool {
			f := q.Pop()
			if f != nil {
				f()
			}
			return f != nil
		}
		w.Go("owner", func(context.Context) {
			for i := range 3 {
				q.Push(func() { order = append(order, i) })
			}
		})
		w.Go("thief", func(context.Context) { pop(); pop() })
		w.Check(func() error {
			for pop() {
			}
			if !slices.Equal(order, []int{0, 1, 2}) {
				return fmt.Errorf("in the order %v", order)
			}
			return nil
		})
	}},
	// Two workers move a shard at the same time.
	{"shards, in order", "2 × 1", func(w *explore.World) {
		s := workstealing.NewShards(1)
		var order []int
		for i := range 3 {
			s.Push(0, func() { order = append(order, i) })
		}
		for _, name := range []string{"gather", "gather2"} {
			w.Go(name, func(context.Context) { s.Gather() })
		}
		w.Check(func() error {
			for range 3 {
				s.Pop()()
			}
			if !slices.Equal(order, []int{0, 1, 2}) {
				return fmt.Errorf("in the order %v", order)
			}
			return nil
		})
	}},
	// A worker takes from a shard while another moves it. Then a new entry comes.
	{"shards, taken in order", "2 × 1", func(w *explore.World) {
		s := workstealing.NewShards(1)
		var order []int
		push := func(i int) { s.Push(0, func() { order = append(order, i) }) }
		push(0)
		push(1)
		w.Go("gather", func(context.Context) {
			s.Gather()
			push(2)
		})
		w.Go("pop", func(context.Context) {
			if f := s.Pop(); f != nil {
				f()
			}
		})
		w.Check(func() error {
			for f := s.Pop(); f != nil; f = s.Pop() {
				f()
			}
			if !slices.Equal(order, []int{0, 1, 2}) {
				return fmt.Errorf("in the order %v", order)
			}
			return nil
		})
	}},
	// A worker takes from two shards while another moves them, and a goroutine adds an entry.
	{"shards, taken", "3 × 1", func(w *explore.World) {
		s := workstealing.NewShards(2)
		var ran [3]int
		push := func(shard, i int) { s.Push(shard, func() { ran[i]++ }) }
		push(0, 0)
		push(1, 1)
		w.Go("push", func(context.Context) { push(1, 2) })
		w.Go("gather", func(context.Context) { s.Gather() })
		w.Go("pop", func(context.Context) {
			if f := s.Pop(); f != nil {
				f()
			}
		})
		w.Check(func() error {
			for f := s.Pop(); f != nil; f = s.Pop() {
				f()
			}
			return errors.Join(same(1, ran[0]), same(1, ran[1]), same(1, ran[2]))
		})
	}},
	{"pool, parking", "2 × 1", parkingProgram(1)},
	{"fork", "2 × 2", func(w *explore.World) {
		k := workstealing.NewParking(2)
		var ran [2]int
		w.Go("join", func(context.Context) {
			for i := range ran { // the second Join reuses the fork of the first, if that was not stolen
				k.Task(0).Join(func() {}, func() { ran[i]++ })
				if ran[i] != 1 {
					panic("Join returned, but the function has not run exactly once")
				}
			}
		})
		w.Go("steal", func(context.Context) { k.Steal(1); k.Steal(1) })
		w.Check(func() error { return errors.Join(same(1, ran[0]), same(1, ran[1])) })
	}},
	// A task that gives way carries its forks to another worker. A fork that was not stolen is reused there.
	{"fork, carried", "2 × 2", func(w *explore.World) {
		k := workstealing.NewParking(3)
		var ran [3]int
		w.Go("join", func(context.Context) {
			t := k.Task(0)
			t.Join(func() {
				t.Join(func() { t.GiveWay(1) }, func() { ran[0]++ })
				t.Join(func() {}, func() { ran[1]++ })
			}, func() { ran[2]++ })
		})
		w.Go("steal", func(context.Context) { k.Steal(2); k.Steal(2) })
		w.Check(func() error { return errors.Join(same(1, ran[0]), same(1, ran[1]), same(1, ran[2])) })
	}},
	{"pool, given", "2 × 1", func(w *explore.World) {
		k := workstealing.NewParking(1)
		ran := 0
		w.Go("worker", func(context.Context) { k.Worker(0) })
		w.Go("submit", func(context.Context) {
			k.Give(func() { ran++ })
			_ = k.Pool().Close()
		})
		w.Check(func() error { return same(1, ran) })
	}},
}

var largePoolPrograms = []program{
	{"pool, 2 workers", "3 × 1", parkingProgram(2)},
	{"fiber, 2 workers", "4 × 1", fiberProgram(2, 2)},
	// A task blocks natively until a queued task has run. Another worker takes over, and ends when it is no longer needed.
	{"pool, grown", "4 × 1", grownProgram(false, true, nil)},
	// The surplus worker ends while others rely on it to look for work.
	{"pool, grown and left", "4 × 1", grownProgram(false, true, func(k *workstealing.Parking, queued *promise.Promise[int]) {
		_, _ = queued.Await(bg)
		_ = k.Pool().Go(func() {})
	})},
	// The superfluous worker ends with a task in its queue.
	{"pool, grown, with queues", "4 × 1", grownProgram(true, true, nil)},
	// The task, and with it the pool, ends just when another worker is about to take over.
	{"pool, grown for nothing", "4 × 1", grownProgram(false, false, nil)},
	{"pool, two submitters", "3 × 1", twoSubmitters(workstealing.NewParking)},
	// Once a submission is refused, all later ones are, although the count of a pool closes one part after another.
	{"pool, refused", "2 × 2", func(w *explore.World) {
		k := workstealing.NewQueueing(1)
		_ = k.Pool().Go(func() {
			refused := k.Pool().Go(func() {}) != nil
			if accepted := k.Local(0, func() {}); refused && accepted {
				panic("refused, and then accepted")
			}
		})
		w.Go("worker", func(context.Context) { k.Worker(0) })
		w.Go("close", func(context.Context) { _ = k.Pool().Close() })
	}},
	// A task ends in another part of the count than it began in, while the pool closes.
	{"pool, two parts", "3 × 1", twoSubmitters(workstealing.NewQueueing)},
	// A task blocks the thread of its worker until a task that it has started has run. The other worker must notice that task.
	{"pool, one stolen", "3 × 1", func(w *explore.World) { onBlockedWorker(w, 2, 1) }},
	// The same holds with two tasks that wait for each other. A worker that steals one must wake a third worker for the other.
	{"pool, two stolen", "4 × 1", func(w *explore.World) { onBlockedWorker(w, 3, 2) }},
	// The queue of a worker that is blocked moves to the injector, just when the other worker checks whether it may sleep.
	{"pool, moved", "3 × 1", func(w *explore.World) {
		k := workstealing.NewQueueing(2)
		var ran promise.Promise[int]
		k.Local(0, func() { _ = ran.Fill(0) })
		w.Go("worker0", func(context.Context) {
			_, _ = ran.Await(bg)
			k.Worker(0)
		})
		w.Go("worker1", func(context.Context) { k.Sleeper(1) })
		w.Go("move", func(context.Context) {
			k.Spill(0)
			_, _ = ran.Await(bg)
			_ = k.Pool().Close()
		})
	}},
	// The second worker is superfluous, and ends with a task in its queue, which the first may steal meanwhile.
	{"pool, handed over", "3 × 1", func(w *explore.World) {
		k := workstealing.NewQueueing(1)
		k.OnGrowth(func(int) {})
		ran := 0
		_ = k.Pool().Go(func() { ran++ })
		k.Look(0)
		k.Local(1, func() { ran++ })
		for i := range 2 {
			w.Go(fmt.Sprint("worker", i), func(context.Context) { k.Worker(i) })
		}
		w.Go("close", func(context.Context) { _ = k.Pool().Close() })
		w.Check(func() error { return same(2, ran) })
	}},
	// A shard moves to the injector, just when the only worker looks whether it may sleep.
	{"pool, gathered", "2 × 1", func(w *explore.World) {
		k := workstealing.NewQueueing(1)
		var ran promise.Promise[int]
		_ = k.Pool().Go(func() { _ = ran.Fill(0) })
		w.Go("worker", func(context.Context) { k.Sleeper(0) })
		w.Go("gather", func(context.Context) {
			k.Gather()
			_, _ = ran.Await(bg)
			_ = k.Pool().Close()
		})
	}},
	// Two tasks block the threads of their workers until both run. A worker that finds work must wake another worker for the
	// rest.
	{"pool, in parallel", "3 × 1", func(w *explore.World) {
		k := workstealing.NewParking(2)
		for i := range 2 {
			w.Go(fmt.Sprint("worker", i), func(context.Context) { k.Worker(i) })
		}
		w.Go("submit", func(context.Context) {
			var began [2]promise.Promise[int]
			for i := range 2 {
				_ = k.Pool().Go(func() {
					_ = began[i].Fill(0)
					_, _ = began[1-i].Await(bg)
				})
			}
			_ = k.Pool().Close()
		})
	}},
	// The worker that fell asleep first finds the reason to stay awake.
	{"pool, asleep", "3 × 1", func(w *explore.World) {
		k := workstealing.NewParking(2)
		ran := 0
		for i := range 2 {
			w.Go(fmt.Sprint("worker", i), func(context.Context) { k.Sleeper(i) })
		}
		w.Go("submit", func(context.Context) {
			_ = k.Pool().Go(func() { ran++ })
			_ = k.Pool().Close()
		})
		w.Check(func() error { return same(1, ran) })
	}},
	// The first function of a Join waits for the second. Another worker is woken to steal the second.
	{"fork, woken", "3 × 1", func(w *explore.World) {
		ran := 0
		onTwoWorkers(w, func(k *workstealing.Parking) {
			var p promise.Promise[int]
			k.Join(func() { _, _ = p.Await(bg) }, func() { ran++; _ = p.Fill(0) })
		})
		w.Check(func() error { return same(1, ran) })
	}},
	// The forks may also leave the deque meanwhile, when the other worker may look.
	{"fork, carried and woken", "3 × 1", func(w *explore.World) {
		ran := 0
		onTwoWorkers(w, func(k *workstealing.Parking) {
			var p promise.Promise[int]
			k.Join(func() { k.GiveWay(); _, _ = p.Await(bg) }, func() { ran++; _ = p.Fill(0) })
		})
		w.Check(func() error { return same(1, ran) })
	}},
	// The first function of a Join panics. The second runs to its end before the panic continues.
	{"fork, panicking", "3 × 1", func(w *explore.World) {
		ran := 0
		onTwoWorkers(w, func(k *workstealing.Parking) {
			defer func() {
				if recover() != "a" || ran != 1 {
					panic("the panic is not that of a, or b has not ended")
				}
			}()
			k.Join(func() { panic("a") }, func() { ran++; panic("b") })
		})
	}},
	// A Join begins on one worker and continues on another, while the first worker pops its fork there.
	{"fork, moved", "2 × 3", func(w *explore.World) {
		k := workstealing.NewParking(2)
		var ran [3]int
		var moved promise.Promise[int]
		w.Go("join", func(context.Context) {
			t := k.Task(0)
			t.Join(func() {
				t.Join(func() {
					t.Move(1)
					_ = moved.Fill(0)
				}, func() { ran[0]++ })
				t.Join(func() {}, func() { ran[1]++ })
			}, func() { ran[2]++ })
		})
		w.Go("owner", func(context.Context) {
			_, _ = moved.Await(bg)
			k.Scrape(0)
		})
		w.Check(func() error {
			for i, n := range ran {
				if n != 1 {
					return fmt.Errorf("fork %d ran %d times", i, n)
				}
			}
			return nil
		})
	}},
}

// twoSubmitters has a pool with one worker, and two tasks that submit a task and then close the pool.
func twoSubmitters(open func(workers int) *workstealing.Parking) func(w *explore.World) {
	return func(w *explore.World) {
		k := open(1)
		var accepted, ran [2]int
		w.Go("worker", func(context.Context) { k.Worker(0) })
		for i, name := range []string{"submit", "submit2"} {
			w.Go(name, func(context.Context) {
				if k.Pool().Go(func() { ran[i]++ }) == nil {
					accepted[i]++
				}
				_ = k.Pool().Close()
				if ran[i] != accepted[i] {
					panic("closed, and has not run what was accepted")
				}
			})
		}
		w.Check(func() error { return errors.Join(same(accepted[0], ran[0]), same(accepted[1], ran[1])) })
	}
}

// grownProgram has a pool with one worker that may grow by one. A task either blocks natively until a queued task has run, or ends at
// once. If queues is true, the queued task starts another in the queue of its worker. If later is not nil, the submitter calls it before it
// closes the pool.
func grownProgram(queues, waits bool, later func(k *workstealing.Parking, queued *promise.Promise[int])) func(w *explore.World) {
	return func(w *explore.World) {
		k := workstealing.NewParking(1)
		if queues {
			k = workstealing.NewQueueing(1)
		}
		accepted, ran := 0, 0
		var stepping, submitted, grown, queued promise.Promise[int]
		k.OnGrowth(func(worker int) { _ = grown.Fill(worker) })
		w.Go("worker", func(context.Context) { k.Worker(0) })
		w.Go("grown", func(context.Context) {
			if i, _ := grown.Await(bg); i > 0 {
				k.Worker(i)
			}
		})
		w.Go("watch", func(context.Context) {
			_, _ = stepping.Await(bg)
			_, _ = submitted.Await(bg)
			k.Look(0)
			_ = grown.Fill(0)
		})
		w.Go("submit", func(context.Context) {
			_ = k.Pool().Go(func() {
				_ = stepping.Fill(0)
				if waits {
					_, _ = queued.Await(bg)
				}
			})
			_ = k.Pool().Go(func() {
				if queues && k.Local(k.Here(), func() { ran++ }) {
					accepted++
				}
				_ = queued.Fill(0)
			})
			_ = submitted.Fill(0)
			if later != nil {
				later(k, &queued)
			}
			_ = k.Pool().Close()
		})
		w.Check(func() error {
			_, err := queued.Await(bg)
			stuck, goroutines := k.Left()
			return errors.Join(err, same(accepted, ran), same(0, stuck), same(0, goroutines))
		})
	}
}

// onBlockedWorker runs a task that blocks the thread of its worker until the given number of tasks that it has started in the queue of that
// worker have begun, which wait for each other.
func onBlockedWorker(w *explore.World, workers, tasks int) {
	k := workstealing.NewQueueing(workers)
	var started promise.Promise[int]
	began := make([]promise.Promise[int], tasks)
	for i := range workers {
		w.Go(fmt.Sprint("worker", i), func(context.Context) { k.Worker(i) })
	}
	w.Go("submit", func(context.Context) {
		_ = k.Pool().Go(func() {
			for i := range began {
				k.Local(k.Here(), func() {
					_ = began[i].Fill(0)
					_, _ = began[(i+1)%tasks].Await(bg)
				})
			}
			_ = started.Fill(0)
			_, _ = began[0].Await(bg)
		})
		_, _ = started.Await(bg) // a closed pool accepts no task
		_ = k.Pool().Close()
	})
}

// onTwoWorkers runs f on a pool with two workers, and closes the pool.
func onTwoWorkers(w *explore.World, f func(k *workstealing.Parking)) {
	k := workstealing.NewParking(2)
	for i := range 2 {
		w.Go(fmt.Sprint("worker", i), func(context.Context) { k.Worker(i) })
	}
	w.Go("submit", func(context.Context) {
		_ = k.Pool().Go(func() { f(k) })
		_ = k.Pool().Close()
	})
}

// fiberProgram has a task that parks until it has seen all additions before its Unparks, whichever worker runs it.
func fiberProgram(workers, unparks int) func(w *explore.World) {
	return func(w *explore.World) {
		k := workstealing.NewParking(0)
		f := k.NewFiber()
		var done, running, over atomicx.Int32
		var threads [3]atomicx.Pointer[suspend.Task]
		wake := func() {
			for i := range threads {
				if t := threads[i].Load(); t != nil {
					(*t).Unpark()
				}
			}
		}
		f.Queue()
		for range unparks {
			w.Go("unpark", func(context.Context) { done.Add(1); f.Unpark(); wake() })
		}
		for i := range workers {
			w.Go(fmt.Sprint("worker", i), func(context.Context) {
				me := suspend.Self()
				threads[i].Store(&me)
				for over.Load() == 0 {
					if !k.Runnable() {
						me.Park()
						continue
					}
					if running.Add(1) != 1 {
						panic("on two workers")
					}
					for parks := false; !parks; parks = f.Park() {
						if int(done.Load()) == unparks {
							over.Store(1)
							wake()
							return
						}
					}
					running.Add(-1)
					if !f.Commit() {
						f.Queue()
					}
				}
			})
		}
	}
}

// parkingProgram has the workers of a pool, and a task that submits a function and closes the pool.
func parkingProgram(workers int) func(w *explore.World) {
	return func(w *explore.World) {
		k := workstealing.NewParking(workers)
		ran := 0
		for i := range workers {
			w.Go(fmt.Sprint("worker", i), func(context.Context) { k.Worker(i) })
		}
		w.Go("submit", func(context.Context) {
			_ = k.Pool().Go(func() { ran++ })
			_ = k.Pool().Close()
		})
		w.Check(func() error { return same(1, ran) })
	}
}

// A resuming Task calls a function in its first Park.
type resuming struct {
	suspend.Task
	resume func()
}

func (t *resuming) Park() {
	if resume := t.resume; resume != nil {
		t.resume = nil
		resume()
	}
	t.Task.Park()
}
