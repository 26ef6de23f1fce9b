package suspend

import (
	"context"
	"sync"
	"testing"
	"unsafe"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/splitmix"
)

type nobody struct{ _ int }

func (*nobody) Park()   { panic("parked") }
func (*nobody) Unpark() {}

// More goroutines are bound at once than the first level of the table has room for, and each finds its own binding.
func TestBindManyGoroutines(t *testing.T) {
	const n = 20_000
	var bound, done sync.WaitGroup
	bound.Add(n)
	for range n {
		done.Go(func() {
			task := new(nobody)
			Bind(task, func() {
				bound.Done()
				bound.Wait() // waits until all are bound
				if got := current(); got == nil || got.task != Task(task) {
					t.Error("bound to another Task")
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
		if n := l.away.Load(); n != 0 {
			t.Errorf("%d are away from home", n)
		}
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

// A goroutine whose entry is away from its home is found at any level, and counted while it is bound.
func TestTableAwayFromHome(t *testing.T) {
	defer newest.Store(newest.Load())
	newest.Store(nil)
	type entry struct {
		id   int64
		at   *place
		away *level
	}
	var entries []entry
	in := func(id int64) {
		p, away := takePlace(id)
		entries = append(entries, entry{id, p, away})
	}
	in(1)
	first := newest.Load()
	for id := int64(2); newest.Load() == first; id++ { // binds ids whose home is that of 1, until the level is full
		if first.home(id) == first.home(1) {
			in(id)
		}
	}
	second := newest.Load()
	if second.older != first {
		t.Fatal("not the next level")
	}
	if n, m := first.away.Load(), second.away.Load(); n < bucketSize || int(n) != len(entries)-2 || m != 0 {
		t.Errorf("%d and %d of %d are away from home", n, m, len(entries))
	}
	for id := entries[len(entries)-1].id + 1; second.away.Load() < 2; id++ { // and then ids with the same home in the second level
		if first.home(id) == first.home(1) && second.home(id) == second.home(entries[len(entries)-1].id) {
			in(id)
		}
	}
	for _, e := range entries {
		if find(e.id) != e.at {
			t.Errorf("%d is not found", e.id)
		}
	}
	if find(-1) != nil {
		t.Error("a goroutine that was never bound is found")
	}
	for i, e := range entries {
		e.at.restore(nil, e.away)
		if find(e.id) != nil {
			t.Errorf("%d is found after it has left", e.id)
		}
		for _, e := range entries[i+1:] {
			if find(e.id) != e.at {
				t.Fatalf("%d is not found", e.id)
			}
		}
	}
	if n, m := first.away.Load(), second.away.Load(); n != 0 || m != 0 {
		t.Errorf("%d and %d are away from home in an empty table", n, m)
	}
}

// After the table has a further level, a goroutine is still found at its old place: at its home, or elsewhere although its home
// is free again.
func TestHereOfAnEarlierLevel(t *testing.T) {
	defer newest.Store(newest.Load())
	newest.Store(nil)
	p, _, _ := here()
	first, id := newest.Load(), gid.Get()
	if p != first.home(id) {
		t.Fatal("not at home in an empty table")
	}
	further := &level{buckets: make([]bucket, 1<<(firstLevel+3)), shift: 64 - firstLevel - 3, older: first}
	newest.Store(further)
	if at, _, _ := here(); at != p {
		t.Error("it entered again")
	}
	newest.Store(first)
	p.restore(nil, nil)
	other := id + 1
	for first.home(other) != p {
		other++
	}
	takePlace(other)
	mine, before, away := here()
	if mine == p || before != nil || away != first {
		t.Fatal("not away from a home that is taken")
	}
	mine.b = &forbidden
	p.restore(nil, nil)
	for _, l := range []*level{first, further} {
		newest.Store(l)
		if at, before, _ := here(); at != mine || before != &forbidden {
			t.Error("it entered again, away from home")
		}
	}
	mine.restore(nil, away)
	if at, before, away := here(); at != further.home(id) || before != nil || away != nil {
		t.Error("not at home in the further level")
	}
}

// However many other goroutines start between two bound ones, the table is hardly larger than necessary.
func TestTableOfGoroutinesAtADistance(t *testing.T) {
	defer newest.Store(newest.Load())
	for _, n := range []int64{200, 2000, 20_000} {
		for distance := int64(1); distance <= 1<<16; distance *= 2 {
			for _, distance := range []int64{distance, distance*3 - 1} {
				newest.Store(nil)
				for i := range n {
					takePlace(1_000_000 + i*distance)
				}
				places := int64(0)
				for l := newest.Load(); l != nil; l = l.older {
					places += int64(len(l.buckets)) * bucketSize
				}
				if limit := max(1<<firstLevel*bucketSize, 20*n); places > limit {
					t.Errorf("%d places for %d goroutines at a distance of %d", places, n, distance)
				}
			}
		}
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
			b.register(ctx, endOf(ctx))
		})
		if b.watched.Load() != nil {
			t.Error("the registration has outlived the task")
		}
	})
}

// No later wait has the generation that a Resumer carries, even when the counter of generations is about to overflow.
func TestStaleResumerNearWrapAround(t *testing.T) {
	b := &binding{waiter: waiter{task: new(nobody)}}
	b.word.v.Store(1<<64 - generation) // the last generation, with an open word
	s := &slot[int]{b: &b.waiter}
	old := Resumer[int]{slot: s, wait: b.word.load()}
	if v, ok := s.block(b, func(Resumer[int]) (int, bool) { return 1, true }, old); v != 1 || !ok {
		t.Fatal("block")
	}
	if b.word.load() != 0 {
		t.Fatalf("word %x after the last generation", b.word.load())
	}
	if old.Resume(2, nil) {
		t.Error("a stale Resumer was accepted")
	}
	if r := (Resumer[int]{slot: s, wait: b.word.load()}); !r.Resume(3, nil) {
		t.Error("the next was refused")
	}
}

func TestQueueRefusesAResumerTwice(t *testing.T) {
	s := &slot[int]{b: &waiter{task: new(nobody)}}
	var q Queue[int, int]
	r := Resumer[int]{slot: s}
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

// In any random order, each case is looked at exactly once.
func TestLookLooksAtAll(t *testing.T) {
	for n := range 40 {
		for seed := range uint64(20) {
			seen := map[int]int{}
			var legs []leg
			for i := range n {
				legs = append(legs, leg{does: &levelLeg[int]{ready: func() bool { seen[i]++; return false }}})
			}
			if (order{splitmix.Mix(seed), true}).lookLocked(legs) != none || len(seen) != n {
				t.Errorf("%d cases, seed %d: looked at %v", n, seed, seen)
			}
			for i, times := range seen {
				if times != 1 {
					t.Errorf("%d cases, seed %d: looked at %d %d times", n, seed, i, times)
				}
			}
		}
	}
}

// The order of the fields assumes that a binding begins at a cache line. The allocator ensures this only for sizes that are
// multiples of a line.
func TestABindingBeginsAtALine(t *testing.T) {
	if size := unsafe.Sizeof(binding{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 128 {
		t.Errorf("a binding has %d bytes", size)
	}
}
