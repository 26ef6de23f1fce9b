package latch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// No party leaves a round before all have arrived, in any of many rounds.
func TestRoundAfterRound(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		for n := 1; n <= 4; n++ {
			const rounds = 300
			b := latch.NewBarrier(n)
			var came, indices [rounds]atomic.Int32
			fs := make([]func(), n)
			for i := range fs {
				fs[i] = func() {
					for k := range rounds {
						came[k].Add(1)
						index, err := b.Wait(bg)
						if err != nil || int(came[k].Load()) != n {
							t.Fatalf("round %d of %d: %v, %d arrived", k, n, err, came[k].Load())
						}
						indices[k].Add(1 << (8 * index))
						if (i+k)%5 == 0 {
							suspend.Yield()
						}
					}
				}
			}
			schedtest.Run(t, s, fs...)
			for k := range rounds {
				if got, want := indices[k].Load(), int32(1<<(8*n)/255); n < 4 && got != want || got&0xff != 1 {
					t.Fatalf("round %d of %d: indices %x, want %x", k, n, got, want)
				}
			}
		}
	})
}

func TestIndexIsHowManyAreToCome(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		b := latch.NewBarrier(3)
		var got []int
		for range 7 {
			_ = s.Go(func() {
				i, err := b.Wait(bg)
				if err != nil {
					i = -2
				}
				got = append(got, i)
			})
		}
		schedtest.Yield(3)
		if !slices.Equal(got, []int{0, 0, 2, 1, 2, 1}) { // the last party of each round does not suspend; the seventh waits for the next round
			t.Errorf("in order %v", got)
		}
		_ = s.Go(func() { _, _ = b.Wait(bg) })
		_, _ = b.Wait(bg)
	})
}

func TestBarrierMisuse(t *testing.T) {
	for _, n := range []int{0, -1} {
		schedtest.Panics(t, "latch: NewBarrier with less than one party", func() { latch.NewBarrier(n) })
	}
	schedtest.Panics(t, "latch: Wait on the zero Barrier: use NewBarrier", func() { _, _ = new(latch.Barrier).Wait(bg) })
}

func TestBarrierDoneContextChangesNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(bg)
		cancel(cause)
		if i, err := latch.NewBarrier(1).Wait(ctx); i != -1 || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %d, %v", i, err)
		}
		b := latch.NewBarrier(2)
		other := -2
		_ = s.Go(func() { other, _ = b.Wait(bg) })
		suspend.Yield()
		if i, err := b.Wait(ctx); i != -1 || !errors.Is(err, cause) {
			t.Errorf("Wait = %d, %v", i, err)
		}
		schedtest.Yield(2)
		if other != -2 {
			t.Fatalf("the other has returned %d", other)
		}
		if i, err := b.Wait(bg); i != 0 || err != nil {
			t.Errorf("Wait = %d, %v", i, err)
		}
		if schedtest.Yield(1); other != 1 {
			t.Errorf("the other has returned %d", other)
		}
	})
}

// A party is a call of Wait with its results.
type party struct {
	index  int
	err    error
	ended  bool
	cancel context.CancelFunc
	tell   func()
}

func come(s *fifo.Scheduler, b *latch.Barrier) *party {
	ctx, cancel := schedtest.WithCancel()
	return comeWith(s, b, ctx, cancel)
}

func comeWith(s *fifo.Scheduler, b *latch.Barrier, ctx context.Context, cancel context.CancelFunc) *party {
	p := &party{cancel: cancel}
	_ = s.Go(func() { p.index, p.err = b.Wait(ctx); p.ended = true })
	suspend.Yield()
	return p
}

func (p *party) is(index int, err error) bool {
	return p.ended && p.index == index && errors.Is(p.err, err) && (err != nil || p.err == nil)
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestCancelledPartyBreaksItsRound(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		b := latch.NewBarrier(4)
		for range 3 { // in three rounds
			p, q, r := come(s, b), come(s, b), come(s, b)
			q.cancel()
			schedtest.Yield(3)
			if !q.is(-1, context.Canceled) || !p.is(-1, latch.ErrBroken) || !r.is(-1, latch.ErrBroken) {
				t.Fatalf("%+v, %+v, %+v", p, q, r)
			}
		}
		ps := []*party{come(s, b), come(s, b), come(s, b), come(s, b)}
		schedtest.Yield(2)
		for i, p := range ps {
			if !p.is(3-i, nil) {
				t.Errorf("after a broken round: %+v", p)
			}
		}
	})
}

func TestTwoCancelledPartiesBreakOneRound(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		b := latch.NewBarrier(3)
		p, q := new(party), new(party)
		ctx, together := schedtest.WithCancel()
		for _, p := range []*party{p, q} {
			_ = s.Go(func() { p.index, p.err = b.Wait(ctx); p.ended = true })
			suspend.Yield()
		}
		together() // before either of the two runs
		next := make([]*party, 3)
		_ = s.Go(func() { // arrive after the round was broken, and before the cancelled parties run
			for i := range next {
				next[i] = new(party)
				_ = s.Go(func() { next[i].index, next[i].err = b.Wait(bg); next[i].ended = true })
			}
		})
		schedtest.Yield(4)
		if !q.is(-1, context.Canceled) || !p.is(-1, context.Canceled) {
			t.Errorf("%+v, %+v", p, q)
		}
		for i, p := range next {
			if !p.is(2-i, nil) {
				t.Errorf("the next round: %+v", p)
			}
		}
	})
}

// untold is a context that calls its waiters only when the test calls tell.
type untold struct {
	context.Context
	tell func()
}

func (u *untold) AfterFunc(f func()) (stop func() bool) {
	u.tell = f
	return func() bool { return false }
}

// A party counts if its cancellation reaches the barrier only after the last party has arrived, even if its context ended before.
func TestPartyCancelledTooLateSucceeds(t *testing.T) {
	for name, meet := range map[string]func(p *party, last func()){
		"before the last": func(p *party, last func()) { p.cancel(); last(); p.tell() },
		"after the last":  func(p *party, last func()) { last(); p.cancel(); p.tell() },
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				b := latch.NewBarrier(3)
				for range 3 {
					ctx, cancel := context.WithCancel(bg)
					late := &untold{Context: ctx}
					p, q := comeWith(s, b, late, cancel), come(s, b)
					p.tell = late.tell
					meet(p, func() {
						if i, err := b.Wait(bg); i != 0 || err != nil {
							t.Errorf("the last: %d, %v", i, err)
						}
					})
					r := come(s, b) // belongs to the next round, which is not broken
					schedtest.Yield(3)
					if !p.is(2, nil) || !q.is(1, nil) || r.ended {
						t.Errorf("%+v, %+v, next round %+v", p, q, r)
					}
					r.cancel()
					if schedtest.Yield(2); !r.is(-1, context.Canceled) {
						t.Errorf("%+v", r)
					}
				}
			})
		})
	}
}

// The last party of a round arrives while another one is being cancelled. Either all succeed or none.
func TestLastAgainstCancellation(t *testing.T) {
	for n := 2; n <= 4; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
				b := latch.NewBarrier(n)
				var happened, tooLate, broken, told int
				covered := func() bool { return happened+tooLate > 0 && broken > 0 }
				for round := 0; schedtest.More(round, 400, covered); round++ {
					ctx, cancel := context.WithCancel(bg)
					giveUp, giveUpAll := context.WithCancel(bg)
					index, errs := make([]int, n), make([]error, n)
					doneByThen := false
					var all sync.WaitGroup
					all.Add(n)
					_ = next().Go(func() {
						defer all.Done()
						if index[0], errs[0] = b.Wait(ctx); errs[0] != nil {
							giveUpAll() // ends the waits of those that arrived after the round was broken
						}
						doneByThen = ctx.Err() != nil
					})
					for i := 1; i < n; i++ {
						_ = next().Go(func() {
							defer all.Done()
							index[i], errs[i] = b.Wait(giveUp)
						})
					}
					for range rand.IntN(40) * (round % 2) {
						suspend.Yield()
					}
					go cancel()
					all.Wait()
					cancel()
					giveUpAll()
					slices.Sort(index)
					for i, err := range errs {
						if (err == nil) != (errs[0] == nil) {
							t.Fatalf("round %d: some succeed and some do not: %v", round, errs)
						}
						if err == nil && index[i] != i {
							t.Fatalf("round %d: indices %v", round, index)
						}
						if errors.Is(err, latch.ErrBroken) {
							told++
						} else if err != nil && !errors.Is(err, context.Canceled) {
							t.Fatal(err)
						}
					}
					switch {
					case errs[0] != nil:
						broken++
					case doneByThen:
						tooLate++
					default:
						happened++
					}
				}
				t.Logf("%d complete, %d of them with a cancellation that was too late; %d broken, and %d waiters got ErrBroken", happened+tooLate, tooLate, broken, told)
				if !covered() {
					t.Error("an outcome was not covered")
				}
			})
		})
	}
}

// Every party of every complete round gets an index, so each index occurs equally often.
func TestBarrierStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const n, tasks, rounds = 3, 8, 300
		b := latch.NewBarrier(n)
		var counts [n]atomic.Int64
		var cancelled, broken atomic.Int64
		var all sync.WaitGroup
		covered := func() bool { return counts[0].Load() > 0 && cancelled.Load() > 0 && broken.Load() > 0 }
		stop, stopAll := context.WithCancel(bg)
		var working atomic.Int32
		working.Store(tasks)
		for i := range tasks {
			all.Add(1)
			_ = next().Go(func() {
				defer all.Done()
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				for k, more := 0, true; stop.Err() == nil; k++ {
					if more && !schedtest.More(k, rounds, covered) {
						if more = false; working.Add(-1) == 0 {
							stopAll()
						}
					}
					ctx, cancel := context.WithCancel(stop)
					switch rng.IntN(12) {
					case 0:
						cancel()
					case 1, 2:
						go cancel()
					}
					index, err := b.Wait(ctx)
					switch {
					case err == nil:
						counts[index].Add(1)
					case index != -1:
						t.Errorf("Wait = %d, %v", index, err)
					case errors.Is(err, latch.ErrBroken):
						broken.Add(1)
					case errors.Is(err, context.Canceled):
						cancelled.Add(1)
					default:
						t.Error(err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		stopAll()
		t.Logf("%d rounds, %d waiters cancelled, %d got ErrBroken", counts[0].Load(), cancelled.Load(), broken.Load())
		for i := range counts {
			if counts[i].Load() != counts[0].Load() {
				t.Errorf("index %d: %d times, index 0: %d", i, counts[i].Load(), counts[0].Load())
			}
		}
		if !covered() {
			t.Error("an outcome was not covered")
		}
	})
}

// A party whose cancellation comes too late leaves nothing behind when it returns.
func TestATooLateCancellationLeavesNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		b := latch.NewBarrier(2)
		ctx := bg
		stop, ended := false, false
		_ = s.Go(func() {
			for !stop {
				if _, err := b.Wait(ctx); err != nil {
					t.Error(err)
				}
			}
			ended = true
		})
		rounds := func(n int) (heap int64) {
			for range n {
				late, cancel := context.WithCancel(bg)
				ctx = &untold{Context: late}
				suspend.Yield()
				cancel()
				if _, err := b.Wait(bg); err != nil {
					t.Fatal(err)
				}
				ctx = bg
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		const n = 10000
		before := rounds(1000)
		if growth := rounds(n) - before; growth > n*10 {
			t.Errorf("%d bytes after %d rounds", growth, n)
		}
		stop = true
		if schedtest.Yield(2); !ended {
			t.Error("the last round has not ended")
		}
	})
}
