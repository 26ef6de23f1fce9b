//go:build !explore

package suspendtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// philosophers take two forks each: the left one first, or the right one first if left returns false.
func philosophers(left func(i int) bool) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		var forks [3]mutex.Mutex
		for i := range forks {
			w.Go(fmt.Sprint("philosopher", i), func(ctx context.Context) {
				one, two := &forks[i], &forks[(i+1)%3]
				if !left(i) {
					one, two = two, one
				}
				if one.LockContext(ctx) == nil {
					if two.LockContext(ctx) == nil {
						two.Unlock()
					}
					one.Unlock()
				}
			})
		}
	}
}

// permits is a semaphore that may ignore the cancellation of a waiter.
type permits struct {
	forgets bool
	guard   suspend.Guard
	free    int
	waiters suspend.Queue[struct{}, struct{}]
}

type acquire permits

func (p *acquire) Guard() *suspend.Guard               { return &p.guard }
func (p *acquire) Enqueue(r suspend.Resumer[struct{}]) { p.waiters.Push(r, struct{}{}) }
func (p *acquire) Remove(r suspend.Resumer[struct{}])  { p.waiters.Remove(r) }

func (p *acquire) Try() (none struct{}, ok bool, _ error) {
	if ok = p.free > 0; ok {
		p.free--
	}
	return none, ok, nil
}

func (p *permits) Release() {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.waiters.Len() > 0 && p.forgets {
		p.waiters.Resume(struct{}{}, nil)
	} else if _, ok := p.waiters.Resume(struct{}{}, nil); !ok {
		p.free++
	}
}

func acquires(forgets bool) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		p := &permits{free: 1, forgets: forgets}
		for _, name := range []string{"a", "b"} {
			w.Go(name, func(ctx context.Context) {
				if _, err := suspend.Wait[struct{}](ctx, (*acquire)(p)); err == nil {
					p.Release()
				}
			})
		}
		w.Check(func() error {
			if p.free != 1 {
				return errors.New("a permit is lost")
			}
			return nil
		})
	}
}

// lost loses an update between two critical sections.
func lost(w *suspendtest.World) {
	var m mutex.Mutex
	n := 0
	for _, name := range []string{"a", "b"} {
		w.Go(name, func(context.Context) {
			v := 0
			m.Lock()
			v = n
			m.Unlock()
			m.Lock()
			n = v + 1
			m.Unlock()
		})
	}
	w.Check(func() error {
		if n != 2 {
			return errors.New("lost")
		}
		return nil
	})
}

// turns has a mistake that only the order a, b, b, a shows.
func turns(w *suspendtest.World) {
	s := 0
	w.Go("a", func(context.Context) {
		s = 1
		suspend.Yield()
		if s == 3 {
			panic("3")
		}
	})
	w.Go("b", func(context.Context) {
		if s == 1 {
			s = 2
		}
		suspend.Yield()
		if s == 2 {
			s = 3
		}
	})
}

func sleepers(w *suspendtest.World) {
	for range 3 {
		w.Go("sleeper", func(context.Context) {
			for range 2 {
				_ = suspend.Sleep(context.Background(), time.Second)
			}
		})
	}
}

// The numbers of runs are those of the table in docs/primitive.md. A build with the tag explore has one look at a context less.
func TestKnownPrograms(t *testing.T) {
	const all = "deadlock: philosopher0 waits to be resumed, philosopher1 waits to be resumed, philosopher2 waits to be resumed"
	left := philosophers(func(int) bool { return true })
	for _, p := range []struct {
		name    string
		program func(w *suspendtest.World)
		opts    suspendtest.ExploreOptions
		want    string // the first line of Explore's report
	}{
		{"turns", turns, suspendtest.ExploreOptions{}, "run 3 of the exploration, without a cancellation, has failed: a panics: 3"},
		{"a lost update", lost, suspendtest.ExploreOptions{}, "run 3 of the exploration, without a cancellation, has failed: check: lost"},
		{"philosophers", left, suspendtest.ExploreOptions{}, "run 15 of the exploration, without a cancellation, has failed: " + all},
		{"philosophers at random", left, suspendtest.ExploreOptions{Random: 1000, Depth: 3}, "run 3 of the exploration, without a cancellation, has failed: " + all},
		{"philosophers in order, all", philosophers(func(i int) bool { return i < 2 }), suspendtest.ExploreOptions{}, "explored: 23900 runs, all but those with more preemptions than 1"},
		{"philosophers in order", philosophers(func(i int) bool { return i < 2 }), suspendtest.ExploreOptions{Cancellations: 1, Preemptions: 2}, "explored: 3237 runs, all but those with more preemptions than 2, or with more cancellations"},
		{"a permit that is lost", acquires(true), suspendtest.ExploreOptions{}, "run 30 of the exploration has failed: check: a permit is lost"},
		{"permits", acquires(false), suspendtest.ExploreOptions{}, "explored: 302 runs, all of them"},
		{"three tasks that sleep twice", sleepers, suspendtest.ExploreOptions{}, "explored: 1680 runs, all of them"},
	} {
		text, _, _ := strings.Cut(explored(t, p.program, p.opts), "\n")
		if text != p.want {
			t.Errorf("%s: %s, want %s", p.name, text, p.want)
		}
	}
}
