package integration_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// labelsHere returns the profiler labels of the calling goroutine, as a profile shows them.
func labelsHere() string {
	looking.Lock()
	defer looking.Unlock()
	return labelsOfOne()
}

var looking sync.Mutex

//go:noinline
func labelsOfOne() string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	for entry := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(entry, "integration_test.labelsOfOne") {
			if _, labels, ok := strings.Cut(entry, "# labels: "); ok {
				labels, _, _ = strings.Cut(labels, "\n")
				return labels
			}
			return ""
		}
	}
	return "no such goroutine"
}

// onAll runs body on all schedulers, on a goroutine without a task, and in a task of a simulation.
func onAll(t *testing.T, body func(t *testing.T, s suspend.Spawner)) {
	schedtest.Each(t, body)
	for n := range 3 {
		t.Run("limited", func(t *testing.T) {
			s := limited.New(n+1, limited.Options{})
			body(t, s)
			require.NoError(t, s.Close())
		})
	}
	t.Run("simulation", func(t *testing.T) {
		require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
			body(t, w)
			return nil
		}, simulation.Options{}).Err)
	})
}

func labelled(request string) context.Context {
	return pprof.WithLabels(bg, pprof.Labels("request", request))
}

// under calls f with labels, as pprof.Do does, or without labels if request is empty.
func under(request string, f func()) (shown string) {
	if request == "" {
		f()
		return ""
	}
	pprof.Do(bg, pprof.Labels("request", request), func(context.Context) { f() })
	return `{"request":"` + request + `"}`
}

// A look is a function that stores its labels in the promise.
type look struct{ promise.Promise[string] }

func (l *look) run() { _ = l.Fill(labelsHere()) }

// The labels that a task sets do not leak to other tasks: not to the next task on its coroutine, and not to a task that runs
// because it ends.
func TestLabelsDoNotLeak(t *testing.T) {
	onAll(t, func(t *testing.T, s suspend.Spawner) {
		for range 3 {
			var first promise.Promise[struct{}]
			var own look
			var others [2]look
			require.NoError(t, s.Go(func() {
				for i := range others {
					_ = s.Go(others[i].run)
				}
				_ = s.Go(func() { _ = first.Fill(struct{}{}) })
				pprof.SetGoroutineLabels(labelled("1"))
				_, _ = first.Await(bg) // may start the others
				own.run()
			}))
			labels, err := own.Await(bg)
			require.NoError(t, err)
			require.Equal(t, `{"request":"1"}`, labels)
			for i := range others {
				labels, err = others[i].Await(bg)
				require.NoError(t, err)
				require.Empty(t, labels)
			}
		}
	})
}

// A goroutine of a pool that runs a function of limited keeps its own labels.
func TestLabelsOfASubmit(t *testing.T) {
	var task, pool look
	s := limited.New(1, limited.Options{Submit: func(f func()) {
		go func() {
			pprof.SetGoroutineLabels(labelled("pool"))
			f()
			pool.run()
		}()
	}})
	require.NoError(t, s.Go(func() { task.run(); pprof.SetGoroutineLabels(labelled("1")) }))
	labels, _ := task.Await(bg)
	require.Empty(t, labels)
	labels, _ = pool.Await(bg)
	require.Equal(t, `{"request":"pool"}`, labels)
	require.NoError(t, s.Close())
}

// The labels of a callback leak neither to the next callback nor to a task.
func TestLabelsOfCallbacksDoNotLeak(t *testing.T) {
	onAll(t, func(t *testing.T, s suspend.Spawner) {
		var looks [8]look // Execute runs the first half, and timers run the rest
		set := func() { pprof.SetGoroutineLabels(labelled("1")) }
		require.NoError(t, s.Go(func() {
			for i := range 4 {
				suspend.AfterFunc(s, time.Millisecond, set)
				suspend.AfterFunc(s, time.Millisecond, looks[4+i].run)
				on, ok := s.(suspend.Executor)
				if !ok {
					looks[i].run()
					continue
				}
				for range 50 { // a worker begins some of these one after another
					_ = on.Execute(set)
				}
				_ = on.Execute(looks[i].run)
			}
		}))
		for i := range looks {
			labels, err := looks[i].Await(bg)
			require.NoError(t, err)
			require.Empty(t, labels, i)
		}
		var after look
		require.NoError(t, s.Go(after.run))
		labels, err := after.Await(bg)
		require.NoError(t, err)
		require.Empty(t, labels)
	})
}

// A task begins with the labels of its caller, however the caller starts it, as a goroutine does.
func TestLabelsAreInherited(t *testing.T) {
	onAll(t, func(t *testing.T, s suspend.Spawner) {
		limit, group := scope.Limit(100, s), idle.New(s, nil)
		for name, start := range map[string]func(f func()) error{
			"Go": s.Go,
			"promise.Go": func(f func()) error {
				promise.Go(bg, s, func(context.Context) (int, error) { f(); return 0, nil })
				return nil
			},
			"scope.Go": func(f func()) error {
				return scope.Run(bg, func(_ context.Context, sc *scope.Scope) error {
					sc.Go(s, func(context.Context) error { f(); return nil })
					return nil
				})
			},
			"Limit":      limit.Go,
			"idle.Group": group.Go,
			"a task": func(f func()) error {
				return s.Go(func() { _ = s.Go(f) })
			},
		} {
			for _, request := range []string{"1", "", "2"} {
				var l look
				want := under(request, func() { require.NoError(t, start(l.run)) })
				labels, err := l.Await(bg)
				require.NoError(t, err)
				require.Equal(t, want, labels, name)
			}
		}
	})
}

// The main function of Run has the labels of Run's caller. A task that was there before does not.
func TestLabelsOfRun(t *testing.T) {
	type scheduler interface {
		suspend.Spawner
		Run(ctx context.Context, main func(ctx context.Context) error) error
	}
	for _, s := range []scheduler{fifo.New(fifo.Options{}), random.New(random.Options{})} {
		var before, main look
		require.NoError(t, s.Go(before.run))
		want := under("1", func() {
			require.NoError(t, s.Run(bg, func(context.Context) error { main.run(); return nil }))
		})
		labels, _, _ := before.Try()
		require.Empty(t, labels)
		labels, _, _ = main.Try()
		require.Equal(t, want, labels)
	}
}

// A function that waits in a queue begins with the labels of its own caller, not with those of the task that makes room for it.
func TestLabelsOfFunctionsThatWait(t *testing.T) {
	waiting := func(t *testing.T, start func(f func()) error, await func()) (open func()) {
		var looks [3]look
		var want [3]string
		under("0", func() { require.NoError(t, start(await)) })
		for i, request := range []string{"1", "", "3"} {
			want[i] = under(request, func() { require.NoError(t, start(looks[i].run)) })
		}
		return func() {
			for i := range looks {
				labels, err := looks[i].Await(bg)
				require.NoError(t, err)
				require.Equal(t, want[i], labels)
			}
		}
	}
	onAll(t, func(t *testing.T, s suspend.Spawner) {
		var first promise.Promise[struct{}]
		check := waiting(t, scope.Limit(1, s).Go, func() { _, _ = first.Await(bg) })
		require.True(t, first.Fill(struct{}{}))
		check()
	})
	t.Run("Blocking", func(t *testing.T) {
		p := workstealing.New(workstealing.Options{Workers: 1, BlockingWidth: 1, StallAfter: -1})
		first := make(chan struct{})
		check := waiting(t, p.Block, func() { <-first })
		close(first)
		check()
		require.NoError(t, p.Close())
	})
}

// A stolen fork has the labels of the task that calls Join, and leaks its own to no other task.
func TestLabelsOfForks(t *testing.T) {
	p := workstealing.New(workstealing.Options{Workers: 1})
	for _, request := range []string{"1", "", "2"} {
		var l look
		want := ""
		_, _, err := workstealing.Join(bg, p,
			func(ctx context.Context) (labels string, err error) {
				want = under(request, func() {
					_, labels, err = workstealing.Join(ctx, p,
						func(context.Context) (string, error) { return l.Await(bg) }, // b begins on another coroutine
						func(context.Context) (string, error) { l.run(); return labelsHere(), nil })
				})
				return labels, err
			},
			func(context.Context) (int, error) { return 0, nil })
		require.NoError(t, err)
		labels, err := l.Await(bg)
		require.NoError(t, err)
		require.Equal(t, want, labels)
	}
	require.NoError(t, p.Close())
}

// A callback has no labels, even if the caller that created or runs its scheduler has some.
func TestCallbacksOfALabelledMaker(t *testing.T) {
	pprof.Do(bg, pprof.Labels("maker", "1"), func(context.Context) {
		look := func() (*promise.Promise[string], func()) {
			p := promise.New[string]()
			return p, func() { _ = p.Fill(labelsHere()) }
		}
		try := func(name string, s suspend.Spawner, e suspend.Executor) {
			if e != nil {
				p, f := look()
				_ = e.Execute(f)
				requireNone(t, name+" Execute", p)
			}
			p, f := look()
			suspend.AfterFunc(s, time.Millisecond, f)
			requireNone(t, name+" AfterFunc", p)
			p, f = look()
			var q promise.Promise[int]
			if e != nil {
				suspend.Then(bg, q.AwaitOp(), e, func(int, error) { f() })
				_ = q.Fill(1)
				requireNone(t, name+" Then", p)
			}
		}
		p := workstealing.New(workstealing.Options{Workers: 1})
		try("workstealing", p, p)
		_ = p.Close()
		l := limited.New(1, limited.Options{})
		try("limited", l, l)
		_ = l.Close()
		if lp, err := eventloop.New(eventloop.Options{}); err == nil {
			try("eventloop", lp, lp)
			_ = lp.Close()
		}
		f := fifo.New(fifo.Options{})
		_ = f.Run(bg, func(ctx context.Context) error { try("fifo", f, f); return nil })
		if l := labelsHere(); l != `{"maker":"1"}` {
			t.Error("the caller of Run has lost its labels:", l)
		}
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error { try("simulation", w, w); return nil }, simulation.Options{})
		require.NoError(t, r.Err)
		if l := labelsHere(); l != `{"maker":"1"}` {
			t.Error("the caller of simulation.Run has lost its labels:", l)
		}
		try("Goroutines", suspend.Goroutines, nil)
	})
}

func requireNone(t *testing.T, name string, labels *promise.Promise[string]) {
	t.Helper()
	v, err := labels.Await(bg)
	require.NoError(t, err)
	require.Empty(t, v, name)
}
