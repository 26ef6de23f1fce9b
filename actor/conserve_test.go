package actor_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// An account records the fate of the messages of a run.
type account struct {
	accepted, received, dead []atomic.Int32
	outcomes                 *outcomes
}

// outcomes counts what has happened in the runs. An outcome that never occurred is not covered.
type outcomes struct {
	received, dead, refused, full, timeouts, killed, stopped, cancelled atomic.Int64
}

func (o *outcomes) String() string {
	return fmt.Sprintf("%d received, %d dead, %d refused as ended, %d as full, %d timeouts, %d killed, %d stopped, %d sends cancelled",
		o.received.Load(), o.dead.Load(), o.refused.Load(), o.full.Load(), o.timeouts.Load(), o.killed.Load(), o.stopped.Load(), o.cancelled.Load())
}

// conserve makes one random run, with an actor that waits in all ways, its senders, and an end. Each accepted message is
// either received once or becomes a dead letter once. A refused message is neither.
func conserve(rng *rand.Rand, s suspend.Spawner, o *outcomes) (start func(), check func() error) {
	const senders, each = 2, 6
	a := &account{make([]atomic.Int32, senders*each), make([]atomic.Int32, senders*each), make([]atomic.Int32, senders*each), o}
	seed := rng.Uint64()
	opts := actor.Options[int]{Cap: rng.IntN(4), Dead: func(m int) { a.dead[m].Add(1) }}
	ctx, cancel := context.WithCancelCause(bg)
	var ref actor.Ref[int]
	end, endAfter := rng.IntN(5), rng.IntN(each)
	var left sync.WaitGroup
	start = func() {
		ref = actor.Spawn(ctx, s, func(_ context.Context, self *actor.Self[int]) error {
			return a.body(self, rand.New(rand.NewPCG(seed, 1)))
		}, opts)
		for i := range senders {
			rng := rand.New(rand.NewPCG(seed, uint64(i)+2))
			left.Add(1)
			_ = s.Go(func() {
				defer left.Done()
				for j := range each {
					if i == 0 && j == endAfter {
						switch end {
						case 0:
							ref.Stop()
						case 1:
							ref.Kill(errOops)
						case 2:
							cancel(errOops)
						}
					}
					a.send(ref, i*each+j, rng)
				}
			})
		}
	}
	check = func() error {
		left.Wait()
		ref.Stop()
		switch err := ref.Wait(bg); {
		case err == nil:
			o.stopped.Add(1)
		case errors.Is(err, errOops):
			o.killed.Add(1)
		default:
			return err
		}
		cancel(nil)
		for m := range a.accepted {
			acc, rec, dead := a.accepted[m].Load(), a.received[m].Load(), a.dead[m].Load()
			if rec+dead != acc {
				return fmt.Errorf("message %d: accepted %d times, received %d, dead %d", m, acc, rec, dead)
			}
			o.received.Add(int64(rec))
			o.dead.Add(int64(dead))
		}
		return nil
	}
	return start, check
}

func (a *account) send(ref actor.Ref[int], m int, rng *rand.Rand) {
	if rng.IntN(3) == 0 {
		suspend.Yield()
	}
	var err error
	switch rng.IntN(4) {
	case 0:
		ctx, cancel := schedtest.MayCancel(rng)
		err = ref.SendWait(ctx, m)
		cancel()
	default:
		err = ref.Send(m)
	}
	switch {
	case err == nil:
		a.accepted[m].Add(1)
	case errors.Is(err, actor.ErrFull):
		a.outcomes.full.Add(1)
	case errors.Is(err, actor.ErrEnded):
		a.outcomes.refused.Add(1)
	default:
		a.outcomes.cancelled.Add(1)
	}
}

func (a *account) body(self *actor.Self[int], rng *rand.Rand) error {
	take := func(m int) error { a.received[m].Add(1); return nil }
	picky := func(m int) error {
		if m%3 == rng.IntN(3) {
			return actor.Skip
		}
		if rng.IntN(4) == 0 { // a nested receive
			if v, err := pending(&self.Inbox); err == nil {
				_ = take(v)
			}
			if rng.IntN(2) == 0 {
				return actor.Skip
			}
		}
		return take(m)
	}
	timeout := func(err error) error {
		if errors.Is(err, actor.ErrTimeout) {
			a.outcomes.timeouts.Add(1)
			return nil
		}
		return err
	}
	return actor.Loop(func() error {
		d := time.Duration(rng.IntN(3)-1) * 20 * time.Microsecond
		switch rng.IntN(9) {
		case 0:
			m, err := self.Receive(bg)
			if err == nil {
				_ = take(m)
			}
			return err
		case 1:
			return self.Handle(bg, take)
		case 2:
			return timeout(self.HandleWithin(bg, d, picky))
		case 3:
			return self.ReactWithin(d, picky, func() error { a.outcomes.timeouts.Add(1); return nil })
		case 4:
			mail, late := suspend.CaseOf(self.RecvOp(func(m int) bool { return m%2 == 0 })), suspend.CaseOf(suspend.After(d))
			won, err := suspend.Select(bg, mail, late)
			if won != suspend.Selectable(mail) {
				return err
			}
			m, err := mail.Result()
			if err == nil {
				_ = take(m)
			}
			return err
		case 5:
			return actor.Await(self, self.RecvOp(nil), func(m int, err error) error {
				if err == nil {
					_ = take(m)
				}
				return err
			})
		case 6:
			if rng.IntN(20) == 0 {
				return errOops
			}
			fallthrough
		default:
			return self.React(take)
		}
	})
}

// TestConservation makes BRAID_RUNS random runs, spread over three schedulers.
func TestConservation(t *testing.T) {
	defer schedtest.Within(t, time.Hour)()
	runs := ok(strconv.Atoi(cmp.Or(os.Getenv("BRAID_RUNS"), "3000")))
	if testing.Short() || schedtest.Race && os.Getenv("BRAID_RUNS") == "" {
		runs /= 5
	}
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	var o outcomes
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var check func() error
		switch seed % 3 {
		case 0, 1:
			s := suspend.Spawner(pool)
			if seed%3 == 0 {
				s = suspend.Goroutines
			}
			var start func()
			start, check = conserve(rng, s, &o)
			start()
		default:
			s := random.New(random.Options{Seed: seed + 1})
			start, waited := conserve(rng, s, &o)
			err := s.Run(bg, func(context.Context) (err error) {
				start()
				cannot := suspend.Blocking(bg, func() { err = waited() })
				return errors.Join(cannot, err)
			})
			check = func() error { return err }
		}
		if err := check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d runs: %v", runs, &o)
	for _, n := range []*atomic.Int64{&o.received, &o.dead, &o.refused, &o.full, &o.timeouts, &o.killed, &o.stopped, &o.cancelled} {
		require.NotZero(t, n.Load(), "an outcome was never seen: %v", &o)
	}
}
