package suspendtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// philosophers take two forks each, the left one first, unless some take the right one.
func philosophers(left func(i int) bool) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		var forks [3]mutex.Mutex
		for i := range forks {
			w.Go(fmt.Sprint("philosopher", i), func(ctx context.Context) {
				one, two := &forks[i], &forks[(i+1)%3]
				if !left(i) {
					one, two = two, one
				}
				if one.Lock(ctx) == nil {
					if two.Lock(ctx) == nil {
						two.Unlock()
					}
					one.Unlock()
				}
			})
		}
	}
}

// A permits is a semaphore, which may forget that a waiter has been cancelled.
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
				if _, err := suspend.Wait[struct{}](ctx, (*acquire)(p), false); err == nil {
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

// Programs that other checkers have as examples, with the number of their runs.
func TestKnownPrograms(t *testing.T) {
	one := []suspendtest.ExploreOption{suspendtest.Cancellations(1)}
	for _, p := range []struct {
		name    string
		program func(w *suspendtest.World)
		opts    []suspendtest.ExploreOption
		want    string // what Explore says ends so, or its first line
	}{
		{"philosophers", philosophers(func(int) bool { return true }), nil, "deadlock: philosopher0 waits to be resumed, philosopher1 waits to be resumed, philosopher2 waits to be resumed"},
		{"philosophers at random", philosophers(func(int) bool { return true }), []suspendtest.ExploreOption{suspendtest.Random(1000, 3)}, "deadlock: philosopher0 waits to be resumed, philosopher1 waits to be resumed, philosopher2 waits to be resumed"},
		{"philosophers in order", philosophers(func(i int) bool { return i < 2 }), one, "more preemptions than 3, or with more cancellations"},
		{"a permit that is lost", acquires(true), nil, "check: a permit is lost"},
		{"permits", acquires(false), nil, "which are all"},
	} {
		text, _, _ := strings.Cut(explored(t, p.program, p.opts...), "\n")
		if !strings.HasSuffix(text, p.want) {
			t.Errorf("%s: %s", p.name, text)
		}
		t.Logf("%s: %s", p.name, text)
	}
}
