package eventloop_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Tasks use everything that a reactor offers. One of fifty steps blocks natively or computes for longer than HandOver, and one of
// a hundred is ready all the time. Nothing is lost or done twice: each task has counters of its own, which are not atomic.
func TestNothingIsLostWhereTasksAreStuck(t *testing.T) {
	outcomes := stress.Of("a hand-over", "a task is outside")
	defer schedtest.Within(t, max(schedtest.Deadline, 3*stress.For(t)))()
	var seed uint64
	stress.Rounds(t, outcomes, func() {
		seed++
		strays(t, outcomes, seed)
	})
}

const strayOps, strayTasks = 60, 30

func strays(t *testing.T, outcomes *stress.Outcomes, seed uint64) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const after = 500 * time.Microsecond
	var panics atomic.Int64
	l := must(eventloop.New(eventloop.Options{Loops: 1 + int(seed%2), HandOver: after, StallAfter: -1, OnPanic: func(v any, _ []byte) {
		if v != "on purpose" {
			panic(v)
		}
		panics.Add(1)
	}}))
	ring := make([]*chanx.Chan[int], strayTasks)
	for i := range ring {
		ring[i] = chanx.New[int](0)
	}
	var callbacks, expected, children, begun, panicked atomic.Int64
	var ended [strayTasks]atomic.Int32
	watching := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-watching:
				return
			case <-time.After(after):
				if l.Stats().Outside > 0 {
					outcomes.Add("a task is outside")
				}
			}
		}
	}()
	var all sync.WaitGroup
	all.Add(strayTasks)
	for i := range strayTasks {
		must(0, l.Go(func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			stuck := func() {
				switch random.IntN(100) {
				case 0:
					time.Sleep(time.Duration(random.Int64N(int64(5 * after))))
				case 1:
					for began := time.Now(); time.Since(began) < 2*after; {
						runtime.Gosched()
					}
				case 2: // is ready all the time for a while
					for began := time.Now(); time.Since(began) < 2*after; {
						must(0, suspend.Sleep(bg, 0))
					}
				}
			}
			r, w, err := l.Pipe()
			must(0, err)
			defer r.Close()
			defer w.Close()
			steps := 0
			for range strayOps {
				stuck()
				switch random.IntN(9) {
				case 0:
					suspend.Yield()
				case 1:
					must(0, suspend.Sleep(bg, time.Duration(random.Int64N(int64(after)))))
				case 2: // wakes another task, and waits for one
					if i%2 == 0 && i+1 < strayTasks {
						_, _ = ring[i+1].TrySend(steps)
					} else if _, _, err := ring[i].TryRecv(); err != nil {
						t.Error(err)
					}
				case 3:
					begun.Add(1)
					var p promise.Promise[int]
					must(0, l.Go(func() { sometimesStuck(after); children.Add(1); _ = p.Fill(steps) }))
					stuck()
					if n := must(p.Await(bg)); n != steps {
						t.Errorf("%d after %d steps", n, steps)
					}
				case 4:
					begun.Add(1)
					must(0, l.Go(func() {
						defer children.Add(1)
						sometimesStuck(after)
						suspend.Yield()
						sometimesStuck(after)
						runtime.Goexit()
					}))
				case 5:
					panicked.Add(1)
					must(0, l.Go(func() { sometimesStuck(after); panic("on purpose") }))
				case 6:
					expected.Add(1)
					must(0, l.Execute(func() { sometimesStuck(after); callbacks.Add(1) }))
				case 7:
					expected.Add(1)
					var p promise.Promise[int]
					l.AfterFunc(time.Duration(random.Int64N(int64(after))), func() { callbacks.Add(1); _ = p.Fill(1) })
					stuck()
					must(p.Await(bg))
				case 8:
					buf := []byte(fmt.Sprintf("%8d", steps))
					must(w.Write(buf))
					stuck()
					got := make([]byte, 8)
					must(io.ReadFull(r, got))
					if string(got) != string(buf) {
						t.Errorf("%q instead of %q", got, buf)
					}
				}
				steps++
			}
			ended[i].Add(int32(steps))
		}))
	}
	all.Wait()
	must(0, l.Close()) // child tasks may be outside
	close(watching)
	<-watched
	if s := l.Stats(); s.HandOvers > 0 {
		outcomes.Add("a hand-over")
		if s.Outside != 0 || s.Live != 0 || s.Suspended != 0 {
			t.Errorf("%+v", s)
		}
	}
	for i := range ended {
		if n := ended[i].Load(); n != strayOps {
			t.Errorf("task %d has made %d steps", i, n)
		}
	}
	if callbacks.Load() != expected.Load() || children.Load() != begun.Load() || panics.Load() != panicked.Load() {
		t.Errorf("%d of %d callbacks, %d of %d children, %d of %d panics", callbacks.Load(), expected.Load(), children.Load(), begun.Load(),
			panics.Load(), panicked.Load())
	}
}

func sometimesStuck(after time.Duration) {
	if rand.IntN(20) == 0 {
		time.Sleep(2 * after)
	}
}
