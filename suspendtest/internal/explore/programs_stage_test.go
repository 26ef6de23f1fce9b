//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() {
	programs = append(programs, stagePrograms...)
	boundedPrograms = append(boundedPrograms, largeStagePrograms...)
}

// A here starts tasks on the scheduler of the calling task, because only the tasks of a run know its scheduler.
type here struct{}

func (here) Go(f func()) error { return suspend.Here().Go(f) }

// inTask runs the program in a task, where the scheduler is known.
func inTask(program func(w *explore.World, on suspend.Spawner)) func(w *explore.World) {
	return func(w *explore.World) {
		w.Go("main", func(context.Context) { program(w, suspend.Here()) })
		w.OnIdle(lost)
	}
}

// settled checks that the figures of a pool add up and that no task is left.
func settled(p *stage.Pool, stages ...stage.Observed) func() error {
	return func() error {
		for _, o := range stages {
			s := o.Stats()
			if s.Arrived != s.Accepted+s.Rejected || s.Accepted != s.Completed+s.Failed+s.Late+s.Cancelled {
				return fmt.Errorf("%s does not add up: %s", s.Name, brief(s))
			}
			if s.Waiting+s.Busy+s.Delayed+s.Outside+s.Handlers != 0 {
				return fmt.Errorf("%s has something left: %s", s.Name, brief(s))
			}
		}
		if s := p.Stats(); s.Running != 0 || s.Workers != 0 {
			return fmt.Errorf("the pool has workers left: %+v", s)
		}
		return nil
	}
}

func brief(s stage.Stats) string {
	return fmt.Sprintf("arrived %d = accepted %d + rejected %d; completed %d, failed %d, late %d, cancelled %d; waiting %d, busy %d, delayed %d, outside %d, handlers %d",
		s.Arrived, s.Accepted, s.Rejected, s.Completed, s.Failed, s.Late, s.Cancelled, s.Waiting, s.Busy, s.Delayed, s.Outside, s.Handlers)
}

func stageOf(p *stage.Pool, name string, o stage.Options, f func(ctx context.Context, n int) error) *stage.Stage[int, int] {
	o.Pool = p
	return stage.New(name, func(ctx context.Context, n int) (int, error) { return n, f(ctx, n) }, o)
}

// submitters starts tasks that submit one value each, and wait for room.
func submitters(w *explore.World, f stage.Flow[int, int], names ...string) (accepted *atomicx.Int32) {
	accepted = new(atomicx.Int32)
	for i, name := range names {
		w.Go(name, func(ctx context.Context) {
			if f.Submit(ctx, i+1) == nil {
				accepted.Add(1)
			}
		})
	}
	return accepted
}

var stagePrograms = []program{
	{"stage", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var in inside
		var ran atomicx.Int32
		s := stageOf(p, "s", stage.Options{Queue: stage.NoQueue, Width: 1}, func(context.Context, int) error {
			in.write()
			ran.Add(1)
			return nil
		})
		accepted := submitters(w, s, "submit", "submit2")
		w.OnIdle(lost)
		w.Check(settled(p, s))
		w.Check(func() error { return same(int(accepted.Load()), int(ran.Load())) })
	}},
	{"stage, Close", "3 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var ran, begun atomicx.Int32
		var closed atomicx.Bool
		s := stageOf(p, "s", stage.Options{Queue: stage.NoQueue, Width: 1}, func(context.Context, int) error {
			if closed.Load() {
				panic("begun after Close")
			}
			begun.Add(1)
			suspend.Yield()
			ran.Add(1)
			return nil
		})
		accepted := submitters(w, s, "submit", "submit2")
		w.Go("close", func(context.Context) {
			if s.Shutdown(bg) != nil {
				panic("Close fails")
			}
			closed.Store(true)
			if ran.Load() != begun.Load() || s.Stats().Busy != 0 {
				panic("closed while a handler runs")
			}
			if p.Stats().Workers != 0 {
				panic("closed while a worker remains")
			}
			if s.Submit(bg, 1) == nil {
				panic("accepted after Close")
			}
		})
		w.OnIdle(lost)
		w.Check(settled(p, s))
		w.Check(func() error { return same(int(accepted.Load()), int(ran.Load())) })
	}},
	{"stage, one of a pool", "3 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var ran atomicx.Int32
		var a, b *stage.Stage[int, int]
		task := func(context.Context, int) error { ran.Add(1); return nil }
		a = stageOf(p, "a", stage.Options{Queue: 1, Width: 1}, task)
		b = stageOf(p, "b", stage.Options{Queue: 1, Width: 1}, task)
		for _, s := range []*stage.Stage[int, int]{a, b} {
			w.Go("close", func(context.Context) {
				if s.Submit(bg, 1) != nil || s.Shutdown(bg) != nil {
					panic("Close fails")
				}
				if s := s.Stats(); s.Completed != 1 || s.Waiting+s.Busy+s.Handlers != 0 {
					panic("closed with a task: " + brief(s))
				}
			})
		}
		w.Go("open", func(context.Context) {
			c := stageOf(p, "c", stage.Options{}, task)
			if _, err := c.Do(bg, 1); err != nil {
				panic("a stage that came later does not work")
			}
		})
		w.OnIdle(lost)
		w.Check(settled(p, a, b))
		w.Check(func() error { return same(3, int(ran.Load())) })
	}},
	{"stage, a cycle of Dos", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var a, b *stage.Stage[int, int]
		var running atomicx.Int32
		enter := func() {
			if running.Add(1) > 1 {
				panic("two handlers at the same time")
			}
		}
		a = stageOf(p, "a", stage.Options{Queue: 1, Width: 1}, func(ctx context.Context, n int) error {
			enter()
			if running.Add(-1); n > 0 {
				_, err := b.Do(ctx, n)
				return err
			}
			return nil
		})
		b = stageOf(p, "b", stage.Options{Queue: stage.NoQueue, Width: 1}, func(ctx context.Context, n int) error {
			_, err := a.Do(ctx, n-1)
			return err
		})
		for _, name := range []string{"do", "do2"} {
			w.Go(name, func(ctx context.Context) {
				if _, err := a.Do(ctx, 1); errors.Is(err, stage.ErrCycle) {
					panic(err)
				}
			})
		}
		w.OnIdle(lost)
		w.Check(settled(p, a, b))
	}},
	{"stage, crossing Dos", "2 × 1", func(w *explore.World) { crossingDos(w, 1, func(*stage.Stage[int, int]) {}) }},
	{"stage, crossing Dos, narrowed", "3 × 1", func(w *explore.World) {
		crossingDos(w, 2, func(a *stage.Stage[int, int]) {
			w.Go("narrow", func(context.Context) { a.SetWidth(1) })
		})
	}},
	{"stage, after a cycle", "1 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 2, here{})
		var s *stage.Stage[int, int]
		var running atomicx.Int32
		other := stageOf(p, "other", stage.Options{}, func(context.Context, int) error { return nil })
		s = stageOf(p, "s", stage.Options{Queue: 2, Width: 1}, func(ctx context.Context, n int) error {
			switch n {
			case 1:
				_, err := s.Do(ctx, 0)
				return err
			case 2:
				_, _ = other.Do(ctx, n)
			}
			if running.Add(1) > 1 {
				panic("two handlers at the same time")
			}
			suspend.Yield()
			running.Add(-1)
			return nil
		})
		w.Go("do", func(ctx context.Context) {
			_, _ = s.Do(ctx, 1)
			_, _ = s.Submit(bg, 2), s.Submit(bg, 3)
		})
		w.OnIdle(lost)
		w.Check(settled(p, s, other))
	}},
	{"stage, gathering", "2 × 1", inTask(func(w *explore.World, on suspend.Spawner) {
		p := stage.Explored(stage.NewPool("p", 1, on))
		s := stage.NewBatch("s", func(_ context.Context, in, out []int) error { return nil }, stage.Options{Pool: p, Queue: 2, Batch: 2, Gather: 1})
		_ = on.Go(func() { _ = s.Submit(bg, 1) })
		_ = s.Submit(bg, 2)
		if err := s.Shutdown(bg); err != nil {
			panic(err)
		}
		w.Check(settled(p, s))
	})},
	{"stage, opened meanwhile", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		a := stageOf(p, "a", stage.Options{}, func(context.Context, int) error { return nil })
		w.Go("close", func(context.Context) {
			if a.Submit(bg, 1) != nil || a.Shutdown(bg) != nil {
				panic("Close fails")
			}
		})
		w.Go("open", func(context.Context) {
			stageOf(p, "b", stage.Options{}, func(context.Context, int) error { return nil })
		})
		w.OnIdle(lost)
		w.Check(settled(p, a))
	}},
	{"stage, told", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		s := stageOf(p, "s", stage.Options{Queue: 1, Width: 1}, func(context.Context, int) error { return nil })
		var begun promise.Promise[promise.Future[int]]
		w.Go("begin", func(context.Context) {
			f, err := s.Begin(bg, 1)
			if err == nil {
				_ = begun.Fill(f)
			}
		})
		w.Go("close", func(context.Context) {
			f, err := begun.Await(bg)
			if err != nil || s.Shutdown(bg) != nil {
				panic("Close fails")
			}
			if _, ok, _ := f.Try(); !ok {
				panic("closed, but the task has no result")
			}
		})
		w.Check(settled(p, s))
	}},
	{"stage, cut", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var ran, dead atomicx.Int32
		s := stageOf(p, "s", stage.Options{Queue: 1, Width: 1}, func(context.Context, int) error {
			suspend.Yield()
			ran.Add(1)
			return nil
		}).OnFail(func(_ context.Context, _ int, err error) {
			if !errors.Is(err, stage.ErrClosed) {
				panic(err)
			}
			dead.Add(1)
		})
		var accepted atomicx.Int32
		w.Go("submit", func(context.Context) {
			for range 2 {
				if s.Submit(bg, 1) == nil {
					accepted.Add(1)
				}
			}
		})
		w.Go("close", func(ctx context.Context) { _ = s.Shutdown(ctx) })
		w.Check(settled(p, s))
		w.Check(func() error { return same(int(accepted.Load()), int(ran.Load()+dead.Load())) })
	}},
	{"stage, Do", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var in inside
		s := stageOf(p, "s", stage.Options{Queue: 1, Width: 1}, func(context.Context, int) error {
			in.write()
			return nil
		})
		for i, name := range []string{"do", "do2"} {
			w.Go(name, func(ctx context.Context) {
				if v, err := s.Do(ctx, i); err == nil && v != i {
					panic(v)
				}
			})
		}
		w.OnIdle(lost)
		w.Check(settled(p, s))
	}},
	{"stage, swept", "3 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var let promise.Promise[int]
		s := stageOf(p, "s", stage.Options{Queue: 1, Width: 1, Reject: true}, func(_ context.Context, n int) error {
			if n == 0 {
				_, _ = let.Await(bg)
			}
			return nil
		})
		w.Go("hold", func(context.Context) { _ = s.Submit(bg, 0) })
		w.Go("do", func(ctx context.Context) { _, _ = s.Do(ctx, 1) })
		w.Go("reject", func(context.Context) {
			_ = s.Submit(bg, 2)
			_ = s.Submit(bg, 3)
			_ = let.Fill(1)
		})
		w.OnIdle(lost)
		w.Check(settled(p, s))
	}},
	{"stage, width", "2 × 2", func(w *explore.World) {
		p := stage.NewPool("p", 2, here{})
		var running, ran atomicx.Int32
		s := stageOf(p, "s", stage.Options{Queue: 2, Width: 2}, func(context.Context, int) error {
			if running.Add(1) > 2 {
				panic("three handlers at the same time")
			}
			running.Add(-1)
			ran.Add(1)
			return nil
		})
		w.Go("submit", func(context.Context) {
			for i := range 2 {
				_ = s.Submit(bg, i)
			}
		})
		w.Go("width", func(context.Context) {
			p.SetWidth(1)
			p.SetWidth(2)
		})
		w.OnIdle(lost)
		w.Check(settled(p, s))
		w.Check(func() error { return same(2, int(ran.Load())) })
	}},
	{"stage, narrower", "1 × 2", func(w *explore.World) {
		p := stage.NewPool("p", 2, here{})
		var running, begun atomicx.Int32
		var both, let promise.Promise[int]
		s := stageOf(p, "s", stage.Options{Queue: 2, Width: 2}, func(_ context.Context, n int) error {
			if n < 2 { // the value before the change
				if begun.Add(1) == 2 {
					_ = both.Fill(1)
				}
				_, _ = let.Await(bg)
				return nil
			}
			if running.Add(1) > 1 {
				panic("two handlers at the same time")
			}
			suspend.Yield()
			running.Add(-1)
			return nil
		})
		w.Go("width", func(context.Context) {
			for i := range 4 {
				_ = s.Submit(bg, i)
			}
			_, _ = both.Await(bg)
			p.SetWidth(1)
			_ = let.Fill(1)
		})
		w.OnIdle(lost)
		w.Check(settled(p, s))
		w.Check(func() error { return same(4, int(s.Stats().Completed)) })
	}},
	{"stage, tree", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var done atomicx.Int32
		leaf := stageOf(p, "leaf", stage.Options{Queue: 1}, func(context.Context, int) error {
			suspend.Yield()
			done.Add(1)
			return nil
		})
		var leaked atomicx.Pointer[context.Context]
		root := stageOf(p, "root", stage.Options{}, func(ctx context.Context, n int) error {
			leaked.Store(&ctx)
			return leaf.Submit(ctx, n)
		})
		want := int32(1)
		var over atomicx.Bool
		w.Go("do", func(context.Context) {
			if _, err := root.Do(bg, 1); err != nil || done.Load() < 1 {
				panic("done before its child")
			}
			over.Store(true)
		})
		w.Go("late", func(context.Context) {
			if ctx := leaked.Load(); ctx != nil {
				ended := over.Load()
				switch err := leaf.Submit(*ctx, 2); {
				case err == nil:
					if want++; ended {
						panic("a child of a task that is done")
					}
				case errors.Is(err, suspend.ErrEnded):
				default:
					panic(err)
				}
			}
		})
		w.OnIdle(lost)
		w.Check(settled(p, root, leaf))
		w.Check(func() error { return same(int(want), int(done.Load())) })
	}},
	{"stage, lingering", "2 × 1", inTask(func(w *explore.World, on suspend.Spawner) {
		p := stage.Explored(stage.NewPool("p", 2, on))
		var ran atomicx.Int32
		s := stageOf(p, "s", stage.Options{Queue: 2}, func(context.Context, int) error {
			ran.Add(1)
			return nil
		})
		_ = s.Submit(bg, 1)
		_ = on.Go(func() { _ = s.Submit(bg, 2) })
		suspend.Yield()
		_ = s.Submit(bg, 3)
		w.Check(settled(p, s))
		w.Check(func() error { return same(3, int(ran.Load())) })
	})},
	{"stage, inline", "2 × 1", inTask(func(w *explore.World, on suspend.Spawner) {
		p := stage.NewPool("p", 1, on)
		var in inside
		s := stageOf(p, "s", stage.Options{Queue: 1}, func(ctx context.Context, n int) error {
			in.write()
			suspend.Yield()
			return nil
		})
		do := func(ctx context.Context, n int) {
			if v, err := s.Do(ctx, n); err != nil || v != n {
				panic(fmt.Sprint(v, err))
			}
		}
		_ = on.Go(func() { do(bg, 2) })
		do(bg, 1)
		w.Check(settled(p, s))
	})},
	{"stage, retry", "2 × 1", func(w *explore.World) {
		p, s, ended := retrying(here{}, 0)
		submitters(w, s, "submit")
		w.Go("close", func(context.Context) {
			if err := s.Shutdown(bg); err != nil {
				panic(err)
			}
			if s := s.Stats(); s.Delayed+s.Waiting+s.Busy != 0 {
				panic("closed with a task between two tries")
			}
		})
		w.OnIdle(lost)
		w.Check(settled(p, s))
		w.Check(ended)
	}},
	{"stage, retry, bounded", "2 × 1", func(w *explore.World) {
		p, s, ended := retrying(here{}, 0)
		accepted := submitters(w, s, "submit", "submit2")
		w.OnIdle(lost)
		w.Check(settled(p, s))
		w.Check(ended)
		w.Check(func() error { return same(int(accepted.Load()), int(s.Stats().Accepted)) })
	}},
	{"stage, retry, after the cut", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var closed promise.Promise[int]
		var dead, tries atomicx.Int32
		s := stageOf(p, "s", stage.Options{Retry: func(error, int) (time.Duration, bool) { return 0, true }}, func(context.Context, int) error {
			tries.Add(1)
			_, _ = closed.Await(bg)
			return errOops
		}).OnFail(func(context.Context, int, error) { dead.Add(1) })
		w.Go("close", func(ctx context.Context) {
			_ = s.Submit(bg, 1)
			_ = s.Shutdown(ctx)
			_ = closed.Fill(1)
		})
		w.Check(settled(p, s))
		w.Check(func() error { return same(1, int(dead.Load())) })
	}},
	{"stage, tree, rejected", "1 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		leaf := stageOf(p, "leaf", stage.Options{Queue: stage.NoQueue, Width: 1, Reject: true}, func(context.Context, int) error { return nil })
		root := stageOf(p, "root", stage.Options{}, func(ctx context.Context, n int) error {
			_, _ = leaf.Submit(ctx, n), leaf.Submit(ctx, n)
			return nil
		})
		w.Go("do", func(context.Context) {
			if _, err := root.Do(bg, 1); err != nil {
				panic(err)
			}
		})
		w.OnIdle(lost)
		w.Check(settled(p, root, leaf))
	}},
	{"stage, retry, held", "2 × 1", func(w *explore.World) {
		w.Go("close", func(ctx context.Context) {
			on := &holder{Spawner: suspend.Here()}
			p := stage.Explored(stage.NewPool("p", 1, on))
			var tries atomicx.Int32
			s := stageOf(p, "s", stage.Options{Retry: func(error, int) (time.Duration, bool) { return 1, true }}, func(context.Context, int) error {
				if tries.Add(1) == 1 {
					return errOops
				}
				if on.held.Load() == 0 {
					panic("released between two tries")
				}
				return nil
			})
			_ = on.Go(func() { _ = s.Submit(bg, 1) })
			if err, s := s.Shutdown(ctx), s.Stats(); err == nil && s.Delayed+s.Waiting+s.Busy != 0 {
				panic("closed with a task between two tries")
			}
			w.Check(settled(p, s))
			w.Check(func() error { return same(0, int(on.held.Load())) })
		})
	}},
	{"stage, retry, cut", "2 × 1", func(w *explore.World) {
		w.Go("close", func(ctx context.Context) {
			p, s, ended := retrying(suspend.Here(), 1)
			_ = suspend.Here().Go(func() { _ = s.Submit(bg, 1) })
			_ = s.Shutdown(ctx)
			w.Check(settled(p, s))
			w.Check(ended)
		})
	}},
}

// crossingDos has a stage a with a width, and a stage b. The handler of each submits a task to the other.
func crossingDos(w *explore.World, width int, beside func(a *stage.Stage[int, int])) {
	p, q := stage.NewPool("p", width, here{}), stage.NewPool("q", 1, here{})
	var a, b *stage.Stage[int, int]
	ask := func(s **stage.Stage[int, int]) func(ctx context.Context, n int) error {
		return func(ctx context.Context, n int) (err error) {
			if n > 0 {
				_, err = (*s).Do(ctx, n-1)
			}
			return err
		}
	}
	a = stageOf(p, "a", stage.Options{Width: width}, ask(&b))
	b = stageOf(q, "b", stage.Options{Queue: stage.NoQueue, Width: 1}, ask(&a))
	var cycles atomicx.Int32
	for _, s := range []*stage.Stage[int, int]{a, b} {
		w.Go("do", func(context.Context) {
			switch _, err := s.Do(bg, 1); {
			case errors.Is(err, stage.ErrCycle):
				cycles.Add(1)
			case err != nil:
				panic(err)
			}
		})
	}
	beside(a)
	w.OnIdle(lost)
	w.Check(settled(p, a))
	w.Check(settled(q, b))
	w.Check(func() error {
		if n := cycles.Load(); n > 1 {
			return fmt.Errorf("%d of 2 Dos failed", n)
		}
		return nil
	})
}

// A holder counts its holds.
type holder struct {
	suspend.Spawner
	held atomicx.Int32
}

func (h *holder) Unwrap() suspend.Spawner { return h.Spawner }

func (h *holder) Hold() (release func(), err error) {
	h.held.Add(1)
	return func() {
		if h.held.Add(-1) < 0 {
			panic("released twice")
		}
	}, nil
}

// retrying returns a stage whose handler fails in its first attempt.
func retrying(on suspend.Spawner, after time.Duration) (*stage.Pool, *stage.Stage[int, int], func() error) {
	p := stage.NewPool("p", 1, on)
	if after > 0 {
		p = stage.Explored(p)
	}
	var ok, dead, tries atomicx.Int32
	var s *stage.Stage[int, int]
	s = stageOf(p, "s", stage.Options{Queue: stage.NoQueue, Width: 1, Retry: func(error, int) (time.Duration, bool) { return after, true }},
		func(context.Context, int) error {
			if s := s.Stats(); s.Waiting+s.Busy+s.Delayed > 1 {
				panic("more tasks than there is room for")
			}
			if tries.Add(1) == 1 {
				return errOops
			}
			ok.Add(1)
			return nil
		}).OnFail(func(context.Context, int, error) { dead.Add(1) })
	return p, s, func() error { return same(int(s.Stats().Accepted), int(ok.Load()+dead.Load())) }
}

var largeStagePrograms = []program{
	{"stage, three", "3 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var s *stage.Stage[int, int]
		s = stageOf(p, "s", stage.Options{Queue: stage.NoQueue, Width: 1}, func(context.Context, int) error {
			if s := s.Stats(); s.Waiting+s.Busy > 1 {
				panic("more tasks than there is room for")
			}
			return nil
		})
		submitters(w, s, "submit", "submit2", "submit3")
		w.OnIdle(lost)
		w.Check(settled(p, s))
	}},
	{"stage, one pool", "2 × 1", func(w *explore.World) {
		p := stage.NewPool("p", 1, here{})
		var ran atomicx.Int32
		a := stageOf(p, "a", stage.Options{Queue: 1, Width: 1}, func(context.Context, int) error { return nil })
		b := stageOf(p, "b", stage.Options{Queue: stage.NoQueue, Width: 1}, func(context.Context, int) error {
			suspend.Yield()
			ran.Add(1)
			return nil
		})
		accepted := submitters(w, stage.Pipe(a, b), "submit", "submit2", "submit3")
		w.OnIdle(lost)
		w.Check(settled(p, a, b))
		w.Check(func() error { return same(int(accepted.Load()), int(ran.Load())) })
	}},
	{"stage, two pools", "2 × 1", func(w *explore.World) {
		p, q := stage.NewPool("p", 1, here{}), stage.NewPool("q", 1, here{})
		var ran atomicx.Int32
		a := stageOf(p, "a", stage.Options{Width: 1}, func(context.Context, int) error { ran.Add(1); return nil })
		b := stageOf(q, "b", stage.Options{Width: 1}, func(context.Context, int) error { ran.Add(1); return nil })
		there, back := stage.Pipe(a, b), stage.Pipe(b, a)
		w.Go("there", func(context.Context) { _ = there.Submit(bg, 1) })
		w.Go("back", func(context.Context) { _ = back.Submit(bg, 2) })
		w.OnIdle(lost)
		w.Check(settled(p, a, b))
		w.Check(settled(q, a, b))
		w.Check(func() error { return same(4, int(ran.Load())) })
	}},
}
