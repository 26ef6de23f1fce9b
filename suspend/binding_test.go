package suspend

import (
	"context"
	"sync"
	"testing"
)

type nobody struct{ _ int }

func (*nobody) Park()   { panic("parked") }
func (*nobody) Unpark() {}

// More goroutines at once than the first level of the table has room for, and every one finds its own.
func TestBindManyGoroutines(t *testing.T) {
	const n = 20_000
	var bound, done sync.WaitGroup
	bound.Add(n)
	for range n {
		done.Go(func() {
			task := new(nobody)
			Bind(task, func() {
				bound.Done()
				bound.Wait() // all at once
				if got := current(); got == nil || got.task != Task(task) {
					t.Error("bound to somebody else")
				}
				inner := new(nobody)
				Bind(inner, func() {
					if current().task != Task(inner) {
						t.Error("not nested")
					}
				})
				if current().task != Task(task) {
					t.Error("not restored")
				}
			})
			if current() != nil {
				t.Error("still bound")
			}
		})
	}
	done.Wait()
	levels := 0
	for l := newest.Load(); l != nil; l = l.older {
		levels++
		for i := range l.buckets {
			for k := range l.buckets[i] {
				if p := &l.buckets[i][k]; p.key.Load() != 0 || p.b != nil {
					t.Fatal("an entry is left in the table")
				}
			}
		}
	}
	if levels < 2 {
		t.Errorf("%d levels: this test does not test growth", levels)
	}
}

func TestBindOfTheBoundTaskKeepsTheBinding(t *testing.T) {
	task := new(nobody)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	Bind(task, func() {
		b := current()
		Bind(task, func() {
			if current() != b {
				t.Error("another binding")
			}
			b.watch(ctx, ctx.Done())
		})
		if b.watched.Load() != nil {
			t.Error("the registration has outlived the task")
		}
	})
}

// The generation that a Resumer carries is never met again, also where it has been counted for long.
func TestStaleResumerNearWrapAround(t *testing.T) {
	b := &binding{party: party{task: new(nobody)}}
	b.word.Store(1<<64 - 1<<statusBits) // the last generation, open
	s := &slot[int]{b: &b.party}
	old := Resumer[int]{s, b.word.Load()}
	if v, ok := s.block(b, func(Resumer[int]) (int, bool) { return 1, true }, old); v != 1 || !ok {
		t.Fatal("block")
	}
	if b.word.Load() != 0 {
		t.Fatalf("word %x after the last generation", b.word.Load())
	}
	if old.Resume(2, nil) {
		t.Error("a stale Resumer was accepted")
	}
	if r := (Resumer[int]{s, b.word.Load()}); !r.Resume(3, nil) {
		t.Error("the next was refused")
	}
}

func TestQueueRefusesAResumerTwice(t *testing.T) {
	s := &slot[int]{b: &party{task: new(nobody)}}
	var q Queue[int, int]
	r := Resumer[int]{s, 0}
	q.Push(r, 1)
	defer func() {
		if v := recover(); v != "suspend: Resumer pushed twice" {
			t.Errorf("panic %v", v)
		}
		if q.Len() != 1 {
			t.Errorf("%d waiters", q.Len())
		}
	}()
	q.Push(r, 2)
}

// Whichever case is the first to look at, all are looked at.
func TestLookWrapsAround(t *testing.T) {
	for first := range 3 {
		seen := map[int]bool{}
		var legs []leg
		for i := range 3 {
			legs = append(legs, leg{arm: &levelArm[int]{ready: func() bool { seen[i] = true; return false }}})
		}
		if lookLocked(legs, first) != none || len(seen) != 3 {
			t.Errorf("from %d: looked at %v", first, seen)
		}
	}
}
