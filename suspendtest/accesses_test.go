//go:build explore

package suspendtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
	"github.com/braidgo/braid/suspendtest/atomic"
)

// A seqlock is a pair of words with a version, which is odd while a writer changes them.
type seqlock struct {
	wrong string
	n     atomic.Uint32
	x, y  atomic.Int32
}

func (s *seqlock) write(v int32) {
	if s.wrong != "the version does not become odd" {
		s.n.Add(1)
	}
	s.x.Store(v)
	s.y.Store(v)
	if s.n.Add(1); s.wrong == "the version does not become odd" {
		s.n.Add(1)
	}
}

// tryRead reports whether it has read both words without a write in between.
func (s *seqlock) tryRead() (x, y int32, ok bool) {
	n := s.n.Load()
	x, y = s.x.Load(), s.y.Load()
	return x, y, n&1 == 0 && (s.wrong == "no second look" || s.n.Load() == n)
}

func seqlocks(wrong string) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		s := &seqlock{wrong: wrong}
		w.Go("write", func(context.Context) { s.write(1); s.write(2) })
		for _, name := range []string{"read", "read2"} {
			w.Go(name, func(context.Context) {
				if x, y, ok := s.tryRead(); ok && x != y {
					panic(fmt.Sprint("torn: ", x, y))
				}
			})
		}
	}
}

// A queue is the lock-free queue of Michael and Scott (PODC 1996).
type queue struct {
	wrong      string
	head, tail atomic.Pointer[element]
}

type element struct {
	v    int
	next atomic.Pointer[element]
}

func newQueue(wrong string) *queue {
	q := &queue{wrong: wrong}
	first := new(element)
	q.head.Store(first)
	q.tail.Store(first)
	return q
}

func (q *queue) push(v int) {
	e := &element{v: v}
	for {
		last := q.tail.Load()
		if next := last.next.Load(); next != nil {
			q.tail.CompareAndSwap(last, next) // helps the other task
			continue
		}
		if q.wrong == "a store in place of a swap" {
			last.next.Store(e)
		} else if !last.next.CompareAndSwap(nil, e) {
			continue
		}
		q.tail.CompareAndSwap(last, e)
		return
	}
}

func (q *queue) pop() (v int, ok bool) {
	for {
		first := q.head.Load()
		next := first.next.Load()
		switch {
		case next == nil:
			return 0, false
		case q.wrong == "the head is stored":
			q.head.Store(next)
			return next.v, true
		case q.head.CompareAndSwap(first, next):
			return next.v, true
		}
	}
}

func queues(wrong string) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		q, got := newQueue(wrong), [2][]int{}
		for i := range 2 {
			w.Go(fmt.Sprint("task", i), func(context.Context) {
				q.push(i + 1)
				if v, ok := q.pop(); ok {
					got[i] = append(got[i], v)
				}
			})
		}
		w.Check(func() error {
			sum := 0
			for _, v := range append(got[0], got[1]...) {
				sum += v
			}
			if sum != 3 {
				return fmt.Errorf("popped %v", got)
			}
			return nil
		})
	}
}

// A flight calls f once for all tasks that ask at the same time.
type flight struct {
	wrong string
	now   atomic.Pointer[promise.Promise[int]]
	calls atomic.Int32
}

func (f *flight) do(ctx context.Context) (int, error) {
	p := f.now.Load()
	if p == nil {
		p = promise.New[int]()
		switch {
		case f.wrong == "a store in place of a swap":
			f.now.Store(p)
		case !f.now.CompareAndSwap(nil, p):
			return f.now.Load().Await(ctx)
		}
		f.calls.Add(1)
		if f.wrong == "the leader is cancelled" {
			if err := suspend.Err(ctx); err != nil {
				return 0, err
			}
		}
		_ = p.Fill(7)
	}
	return p.Await(ctx)
}

func flights(wrong string) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		f := &flight{wrong: wrong}
		w.Go("ask", func(ctx context.Context) { _, _ = f.do(ctx) })
		w.Go("patient", func(context.Context) { _, _ = f.do(context.Background()) })
		w.Check(func() error {
			if n := f.calls.Load(); n != 1 {
				return fmt.Errorf("%d calls", n)
			}
			return nil
		})
	}
}

// With docs/primitive.md, a user checks primitives like these. Each of them is correct, and each mistake in it is found.
func TestAccesses(t *testing.T) {
	for name, p := range map[string]struct {
		program func(wrong string) func(w *suspendtest.World)
		wrongs  []string
	}{
		"seqlock":       {seqlocks, []string{"no second look", "the version does not become odd"}},
		"queue":         {queues, []string{"a store in place of a swap", "the head is stored"}},
		"single-flight": {flights, []string{"a store in place of a swap", "the leader is cancelled"}},
	} {
		for _, wrong := range append(p.wrongs, "") {
			text := explored(t, p.program(wrong), suspendtest.ExploreOptions{Accesses: true})
			t.Logf("%s, %q: %s", name, wrong, strings.Split(text, "\n")[0])
			if failed := strings.Contains(text, "has failed"); failed != (wrong != "") || !failed && !strings.Contains(text, "runs, all ") {
				t.Errorf("%s, %q: %s", name, wrong, text)
			}
		}
	}
}

// Three tasks with two Sleeps each have 6!/(2!2!2!) orders.
func TestSleepsAreReduced(t *testing.T) {
	orders := map[string]bool{}
	text := explored(t, func(w *suspendtest.World) {
		var mu atomic.Mutex
		order := ""
		for _, name := range []string{"a", "b", "c"} {
			w.Go(name, func(context.Context) {
				for range 2 {
					_ = suspend.Sleep(context.Background(), time.Second)
					mu.Lock()
					order += name
					mu.Unlock()
				}
			})
		}
		w.Check(func() error { orders[order] = true; return nil })
	}, suspendtest.ExploreOptions{Accesses: true})
	if len(orders) != 90 || text != "explored: 90 runs, all of them" {
		t.Errorf("%d orders, %s", len(orders), text)
	}
}

// Explore cannot see plain variables. It makes no further runs because of them, and its report says so.
func TestPlainVariablesAreNotSeen(t *testing.T) {
	text := explored(t, func(w *suspendtest.World) {
		n := 0
		for _, name := range []string{"a", "b"} {
			w.Go(name, func(context.Context) { n++ })
		}
	}, suspendtest.ExploreOptions{Accesses: true})
	if text != "explored: 1 run, the only one; no two tasks access one variable that Accesses sees" {
		t.Error(text)
	}
}

// The report of a search without Accesses mentions Accesses if the program uses its variables, and only then.
func TestAccessesAreMentioned(t *testing.T) {
	const hint = "; only Accesses makes Explore switch tasks at the variables of suspendtest/atomic"
	two := func(f func()) func(w *suspendtest.World) {
		return func(w *suspendtest.World) {
			for _, name := range []string{"a", "b"} {
				w.Go(name, func(context.Context) { f() })
			}
		}
	}
	var n atomic.Int32
	var mu atomic.Mutex
	require.Equal(t, "explored: 2 runs, all of them"+hint, explored(t, two(func() { n.Add(1) }), suspendtest.ExploreOptions{}))
	require.Equal(t, "explored: 2 runs, all of them"+hint, explored(t, two(func() { mu.Lock(); mu.Unlock() }), suspendtest.ExploreOptions{}))
	require.Equal(t, "explored: 2 runs, all of them", explored(t, two(func() { n.Add(1) }), suspendtest.ExploreOptions{Accesses: true}))
	require.NotContains(t, explored(t, two(func() { _ = promise.New[int]().Fill(1) }), suspendtest.ExploreOptions{}), hint)
}

// Explore ends for what users write first: a spin lock, and a reader of a seqlock that tries again.
func TestLoopsEnd(t *testing.T) {
	const limit = " but those with more rounds of a loop that waits for a change"
	require.Equal(t, "explored: 7 runs, all"+limit, explored(t, func(w *suspendtest.World) {
		var locked atomic.Bool
		for _, name := range []string{"a", "b"} {
			w.Go(name, func(context.Context) {
				for !locked.CompareAndSwap(false, true) {
					suspend.Yield()
				}
				locked.Store(false)
			})
		}
	}, suspendtest.ExploreOptions{Accesses: true}))
	require.Contains(t, explored(t, func(w *suspendtest.World) {
		var s seqlock
		w.Go("write", func(context.Context) { s.write(1) })
		w.Go("read", func(context.Context) {
			x, y, ok := s.tryRead()
			for !ok {
				x, y, ok = s.tryRead()
			}
			if x != y {
				panic("torn")
			}
		})
	}, suspendtest.ExploreOptions{Accesses: true}), limit)
	require.Contains(t, explored(t, func(w *suspendtest.World) {
		var never atomic.Bool
		w.Go("polls", func(context.Context) {
			for !never.Load() {
			}
		})
	}, suspendtest.ExploreOptions{Accesses: true}), "livelock: the run has not ended after 10000 steps")
}
