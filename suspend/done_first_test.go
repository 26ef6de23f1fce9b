package suspend_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A value that is sent after the return of cancel() goes to a live receiver. If the cancelled one could still receive it, the
// value would be lost, because that receiver has given up.
func TestDoneBeforeResume(t *testing.T) {
	type ctxKey struct{}
	kinds := map[string]func() (context.Context, func()){
		"std": func() (context.Context, func()) { c, end := context.WithCancel(bg); return c, end },
		"WithValue": func() (context.Context, func()) {
			c, end := context.WithCancel(bg)
			return context.WithValue(c, ctxKey{}, 1), end
		},
		"a child": func() (context.Context, func()) {
			c, end := context.WithCancel(bg)
			child, endChild := context.WithTimeout(c, schedtest.Deadline)
			return child, func() { end(); endChild() }
		},
		"cancel": func() (context.Context, func()) { c, end := cancel.New(bg); return c, func() { end(nil) } },
		"WithValue of cancel": func() (context.Context, func()) {
			c, end := cancel.New(bg)
			return context.WithValue(c, ctxKey{}, 1), func() { end(nil) }
		},
		"cancel, a child of std": func() (context.Context, func()) {
			c, end := context.WithCancel(bg)
			child, _ := cancel.New(c)
			return child, end
		},
	}
	wait := map[string]func(ctx context.Context, l *line) (int, error){
		"Wait": func(ctx context.Context, l *line) (int, error) { return suspend.Wait[int](ctx, l) },
		"Lazily": func(ctx context.Context, l *line) (int, error) {
			return suspend.WaitLazily[int](suspend.Lazily(ctx), l)
		},
		"Select": func(ctx context.Context, l *line) (int, error) {
			return suspend.Do(ctx, suspend.Choose(suspend.OpOf[int](l), suspend.OpOf[int](new(line))))
		},
		"Then": func(ctx context.Context, l *line) (int, error) {
			var p promise.Promise[int]
			suspend.Then(ctx, suspend.OpOf[int](l), onGoroutine{}, func(v int, err error) { _ = p.Resolve(v, err) })
			return p.Await(bg)
		},
		"Suspend": func(ctx context.Context, l *line) (int, error) {
			var mine suspend.Resumer[int]
			v, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
				l.guard.Lock()
				defer l.guard.Unlock()
				mine = r
				l.Enqueue(r)
				return 0, false
			})
			if err != nil {
				l.guard.Lock()
				defer l.guard.Unlock()
				l.Remove(mine)
			}
			return v, err
		},
	}
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		for kind, make := range kinds {
			for name, wait := range wait {
				t.Run(name+"/"+kind, func(t *testing.T) {
					for range 10 {
						var l line
						ctx, end := make()
						var all sync.WaitGroup
						all.Add(2)
						_ = s.Go(func() {
							defer all.Done()
							if v, err := wait(ctx, &l); !errors.Is(err, context.Canceled) {
								t.Errorf("the cancelled one returns %v, %v", v, err)
							}
						})
						schedtest.Eventually(t, "one waits", func() bool { return l.len() == 1 })
						_ = s.Go(func() {
							defer all.Done()
							if v, err := suspend.Wait[int](bg, &l); v != 1 || err != nil {
								t.Errorf("the other receives %v, %v", v, err)
							}
						})
						schedtest.Eventually(t, "both wait", func() bool { return l.len() == 2 })
						end()
						l.guard.Lock()
						if _, ok := l.waiters.Resume(1, nil); !ok {
							t.Error("no waiter was resumed")
						}
						l.guard.Unlock()
						all.Wait()
					}
				})
			}
		}
	})
}

// A line is a queue of waiters.
type line struct {
	guard   suspend.Guard
	waiters suspend.Queue[int, struct{}]
}

func (l *line) Guard() *suspend.Guard          { return &l.guard }
func (l *line) Try() (int, bool, error)        { return 0, false, nil }
func (l *line) Enqueue(r suspend.Resumer[int]) { l.waiters.Push(r, struct{}{}) }
func (l *line) Remove(r suspend.Resumer[int])  { l.waiters.Remove(r) }

func (l *line) len() int {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.waiters.Len()
}
