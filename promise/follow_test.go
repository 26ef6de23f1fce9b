package promise_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Otherwise one seed would have several orders of tasks.
func TestFollowersAreToldInTheOrderOfRegistration(t *testing.T) {
	for range 20 {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			first := promise.New[int]()
			var got, want []int
			for i := range 12 {
				p := promise.Race(first)
				if i%2 == 1 {
					p = promise.Race(p)
				}
				suspend.Then(bg, p.AwaitOp(), s, func(int, error) { got = append(got, i) })
			}
			for i := range 12 { // those that follow first directly, and then their followers
				want = append(want, i*2%12+i/6)
			}
			_ = first.Fill(1)
			schedtest.Settle()
			if !slices.Equal(got, want) {
				t.Errorf("told in the order %v, want %v", got, want)
			}
		})
	}
}

// A batch in a slice that is used again gave the results of the next batch, and one that was cleared a panic in Fill.
func TestCombinationsKeepNoSliceOfTheCaller(t *testing.T) {
	batch := make([]promise.Future[int], 2)
	var all [3]*promise.Promise[[]int]
	var ps []*promise.Promise[int]
	for i := range all {
		for j := range batch {
			ps = append(ps, promise.New[int]())
			batch[j] = ps[len(ps)-1]
		}
		all[i] = promise.All(batch...)
	}
	anyOf, race := promise.Any(batch...), promise.Race(batch...)
	clear(batch)
	for i, p := range ps {
		_ = p.Fill(i)
	}
	for i, p := range all {
		if vs, _, _ := p.Try(); !slices.Equal(vs, []int{2 * i, 2*i + 1}) {
			t.Errorf("batch %d: All = %v", i, vs)
		}
	}
	for _, p := range []*promise.Promise[int]{anyOf, race} {
		if v, ok, _ := p.Try(); v != 4 || !ok {
			t.Errorf("first of the last batch = %d, %v", v, ok)
		}
	}
}

// The panic came later, from the task that filled another one of the futures.
func TestNilFuture(t *testing.T) {
	p := promise.New[int]()
	for _, none := range []promise.Future[int]{nil, (*promise.Promise[int])(nil)} {
		for _, f := range []func(){func() { promise.All(p, none) }, func() { promise.Any(p, none) }, func() { promise.Race(p, none) }} {
			schedtest.Panics(t, "promise: nil Future", f)
		}
	}
	if n := promise.Following(p); n != 0 {
		t.Errorf("%d followers are left", n)
	}
}

var many = func() int {
	if schedtest.Race {
		return 10_000
	}
	return 100_000
}()

// grown returns the bytes in use per combination since it was called.
func grown() (each func() int) {
	measure := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := measure()
	return func() int { return int(int64(measure()-before) / int64(many)) }
}

// A combination that its owner fills, which is the only way to cancel one, stayed with its futures: 635 bytes each.
func TestFilledByItsOwnerACombinationIsNoFollower(t *testing.T) {
	long := promise.New[int]()
	each := grown()
	for i := range many {
		for _, p := range []*promise.Promise[int]{promise.Race(long, promise.New[int]()), promise.Any(long)} {
			_ = p.Fill(i)
		}
		_ = promise.All(long).Fail(errors.New("enough"))
	}
	if n := promise.Following(long); n != 0 {
		t.Errorf("%d of %d are followers", n, 3*many)
	}
	if n := each(); n > 8 {
		t.Errorf("%d bytes for each are left", n)
	}
	runtime.KeepAlive(long)
}

// A combination that its owner drops, as a loop does with one for each request, stayed with a future that lives as long as
// the process: 4.3 kilobytes each.
func TestDroppedACombinationIsNoFollower(t *testing.T) {
	for name, drop := range map[string]func(t *testing.T, p *promise.Promise[int]){
		"at once": func(*testing.T, *promise.Promise[int]) {},
		"after an Await that was cancelled": func(t *testing.T, p *promise.Promise[int]) {
			ctx, end := cancel.New(bg)
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				_ = s.Go(func() { suspend.Yield(); end(nil) })
				_, _ = p.Await(ctx)
			})
		},
		"after a Select": func(_ *testing.T, p *promise.Promise[int]) {
			_, _ = suspend.Select(bg, suspend.On(p.AwaitOp()), suspend.On(suspend.After(time.Nanosecond)))
		},
		"after a Then that was cancelled": func(_ *testing.T, p *promise.Promise[int]) {
			ctx, end := cancel.New(bg)
			called := make(chan struct{})
			suspend.Then(ctx, p.AwaitOp(), execute(func(f func()) { go f() }), func(int, error) { close(called) })
			end(nil)
			<-called
		},
		"one of another, which is awaited, and filled by its owner": func(_ *testing.T, p *promise.Promise[int]) {
			outer := promise.Race(p, promise.New[int]())
			suspend.Then(bg, outer.AwaitOp(), execute(func(f func()) { f() }), func(int, error) {})
			_ = outer.Fill(1)
		},
		"one of one": func(_ *testing.T, p *promise.Promise[int]) { promise.Race(p, promise.New[int]()) },
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			long := promise.New[int]()
			n, each := many, grown()
			if name != "at once" {
				n /= 100
			}
			for i := range n {
				drop(t, promise.Race(long, promise.New[int]()))
				if i%(n/50) == 0 {
					runtime.GC()
				}
			}
			if left := promise.Following(long); left > n/20+100 {
				t.Errorf("%d of %d are followers", left, n)
			}
			if n := each(); n > 20 {
				t.Errorf("%d bytes for each are left", n)
			}
			runtime.KeepAlive(long)
		})
	}
}

type execute func(f func())

func (e execute) Execute(f func()) error { e(f); return nil }

// What somebody still waits for is filled, though nobody has the combination itself any more.
func TestAwaitedACombinationStays(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline/4)()
	for name, await := range map[string]func(p *promise.Promise[int]) (got func() int){
		"by a task": func(p *promise.Promise[int]) func() int {
			c := make(chan int)
			go func() { v, _ := p.Await(bg); c <- v }()
			return func() int { return <-c }
		},
		"by a continuation": func(p *promise.Promise[int]) func() int {
			c := make(chan int, 1)
			suspend.Then(bg, p.AwaitOp(), execute(func(f func()) { f() }), func(v int, _ error) { c <- v })
			return func() int { return <-c }
		},
		"by its Done channel": func(p *promise.Promise[int]) func() int {
			done := p.Done()
			return func() int { <-done; return 1 }
		},
		"by a continuation of one of it": func(p *promise.Promise[int]) func() int {
			c := make(chan int, 1)
			suspend.Then(bg, promise.Race(promise.Any(p)).AwaitOp(), execute(func(f func()) { f() }), func(v int, _ error) { c <- v })
			return func() int { return <-c }
		},
		"by a continuation that is left, of two": func(p *promise.Promise[int]) func() int {
			c := make(chan int, 1)
			ctx, end := cancel.New(bg)
			all := promise.All(p)
			suspend.Then(bg, all.AwaitOp(), execute(func(f func()) { f() }), func(v []int, _ error) { c <- v[0] })
			suspend.Then(ctx, all.AwaitOp(), execute(func(f func()) { f() }), func([]int, error) {})
			end(nil)
			return func() int { return <-c }
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := promise.New[int]()
			got := await(promise.Race(promise.Race(first, promise.New[int]()), promise.New[int]()))
			runtime.GC()
			runtime.GC()
			_ = first.Fill(1)
			if v := got(); v != 1 {
				t.Errorf("got %d", v)
			}
		})
	}
}

// A result that is kept does not keep the futures that it no longer needs.
func TestADecidedCombinationDropsItsFutures(t *testing.T) {
	var objects schedtest.Objects
	futures := func() (fs []promise.Future[*schedtest.Object]) {
		for range 3 {
			p := promise.New[*schedtest.Object]()
			_ = p.Fill(objects.New())
			fs = append(fs, p)
		}
		return fs
	}
	race, late := promise.Race(append(futures(), promise.New[*schedtest.Object]())...), promise.New[*schedtest.Object]()
	all := promise.All(append(futures(), late)...)
	_ = late.Fail(errors.New("oops"))
	objects.Collected(t, 1) // the result of race
	runtime.KeepAlive(race)
	runtime.KeepAlive(all)
}
