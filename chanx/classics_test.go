package chanx_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// uncovered fails the test for each outcome that did not occur.
func uncovered(t *testing.T, seen map[string]int, outcomes ...string) {
	t.Helper()
	for _, o := range outcomes {
		if seen[o] == 0 {
			t.Errorf("uncovered: %s; seen: %v", o, seen)
		}
	}
}

// A ledger records the fate of each value: sent or failed, and received once if it was sent.
type ledger struct {
	mu           sync.Mutex
	sent, failed map[int]bool
	got          []int
	seen         map[string]int
	next         int
	a, b         *chanx.Chan[int]
	twice        bool
	capacity     int
}

func newLedger(capacity int) *ledger {
	return &ledger{
		capacity: capacity, sent: map[int]bool{}, failed: map[int]bool{}, seen: map[string]int{},
		a: chanx.New[int](capacity), b: chanx.New[int](capacity),
	}
}

func (l *ledger) value() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.next
}

func (l *ledger) send(what string, v int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent[v] || l.failed[v] {
		l.twice = true
	}
	if ok {
		l.sent[v] = true
		l.seen[what]++
	} else {
		l.failed[v] = true
		l.seen[what+" failed"]++
	}
}

func (l *ledger) recv(what string, v int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok {
		l.got = append(l.got, v)
		l.seen[what]++
	} else {
		l.seen[what+" failed"]++
	}
}

// operate performs one operation, chosen at random.
func (l *ledger) operate(ctx context.Context, rng *rand.Rand) {
	a, b := l.a, l.b
	if rng.IntN(2) == 0 {
		a, b = b, a
	}
	choose := func(ops ...func() (suspend.Selectable, func(won bool))) {
		var cases []suspend.Selectable
		var ends []func(bool)
		for _, op := range ops {
			c, end := op()
			cases, ends = append(cases, c), append(ends, end)
		}
		won, _ := suspend.Select(ctx, cases...)
		for i, c := range cases {
			ends[i](c == won)
		}
	}
	send := func(c *chanx.Chan[int]) func() (suspend.Selectable, func(won bool)) {
		return func() (suspend.Selectable, func(bool)) {
			v := l.value()
			k := suspend.CaseOf(c.SendOp(v))
			return k, func(won bool) {
				if won {
					_, err := k.Result()
					won = err == nil
				}
				l.send("selected send", v, won)
			}
		}
	}
	recv := func(c *chanx.Chan[int]) func() (suspend.Selectable, func(won bool)) {
		return func() (suspend.Selectable, func(bool)) {
			k := suspend.CaseOf(c.RecvOp())
			return k, func(won bool) {
				v := 0
				if won {
					var err error
					v, err = k.Result()
					won = err == nil
				}
				l.recv("selected recv", v, won)
			}
		}
	}
	switch rng.IntN(10) {
	case 0, 1:
		v := l.value()
		l.send("send", v, a.Send(ctx, v) == nil)
	case 2, 3:
		v, err := a.Recv(ctx)
		l.recv("recv", v, err == nil)
	case 4:
		v := l.value()
		ok, _ := a.TrySend(v)
		l.send("try send", v, ok)
	case 5:
		v, ok, _ := a.TryRecv()
		l.recv("try recv", v, ok)
	case 6:
		choose(send(a), recv(b))
	case 7:
		choose(send(a), recv(a))
	case 8:
		choose(send(a), send(b), send(a))
	case 9:
		choose(recv(a), recv(b))
	}
}

var ways = []string{"send", "send failed", "recv", "recv failed", "try send", "try send failed", "try recv", "try recv failed",
	"selected send", "selected send failed", "selected recv", "selected recv failed"}

// check drains both channels and compares the fates.
func (l *ledger) check() error {
	for _, c := range []*chanx.Chan[int]{l.a, l.b} {
		for {
			v, ok, _ := c.TryRecv()
			if !ok {
				break
			}
			l.got = append(l.got, v)
		}
		if ok, err := c.TrySend(0); ok != (l.capacity > 0) && err == nil {
			return fmt.Errorf("a waiter is left in a channel")
		}
	}
	slices.Sort(l.got)
	if n := len(slices.Compact(slices.Clone(l.got))); n != len(l.got) {
		return fmt.Errorf("a value was received twice: %v", l.got)
	}
	for _, v := range l.got {
		if !l.sent[v] {
			return fmt.Errorf("%d was received; failed: %v", v, l.failed[v])
		}
	}
	if len(l.got) != len(l.sent) || len(l.sent)+len(l.failed) != l.next || l.twice {
		return fmt.Errorf("%d values, %d sent, %d failed, %d received", l.next, len(l.sent), len(l.failed), len(l.got))
	}
	return nil
}

func TestConservationUnderTheAdversary(t *testing.T) {
	seen := map[string]int{}
	schedtest.Seeds(t, 5000, func(rng *rand.Rand, s *random.Scheduler) func() error {
		l := newLedger(rng.IntN(3))
		const tasks, ops = 5, 8
		var cancels [tasks]context.CancelFunc
		left := tasks
		for i := range tasks {
			rng := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
			_ = s.Go(func() {
				for range ops {
					var ctx context.Context
					ctx, cancels[i] = schedtest.WithCancel()
					l.operate(ctx, rng)
				}
				left--
			})
		}
		closing := rng.IntN(4) == 0
		_ = s.Go(func() {
			for left > 0 { // until the adversary has cancelled each waiter
				if cancel := cancels[rng.IntN(tasks)]; cancel != nil && rng.IntN(2) == 0 {
					cancel()
				}
				if closing && rng.IntN(20) == 0 {
					_ = l.a.Close()
				}
				suspend.Yield()
			}
		})
		return func() error {
			for k, n := range l.seen {
				seen[k] += n
			}
			return l.check()
		}
	})
	t.Log(seen)
	uncovered(t, seen, ways...)
}

func TestConservationOnAllSchedulers(t *testing.T) {
	seen := map[string]int{}
	for _, capacity := range []int{0, 1, 8} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
				l := newLedger(capacity)
				const tasks, rounds = 10, 300
				var all sync.WaitGroup
				for i := range tasks {
					all.Add(1)
					_ = next().Go(func() {
						defer all.Done()
						rng := rand.New(rand.NewPCG(uint64(i), 2))
						for range rounds {
							ctx, cancel := context.WithCancel(bg)
							if rng.IntN(2) == 0 {
								go cancel()
							} else {
								time.AfterFunc(time.Duration(rng.IntN(300))*time.Microsecond, cancel)
							}
							l.operate(ctx, rng)
							cancel()
						}
					})
				}
				all.Wait()
				if err := l.check(); err != nil {
					t.Error(err)
				}
				for k, n := range l.seen {
					seen[k] += n
				}
			})
		})
	}
	t.Log(seen)
	uncovered(t, seen, ways...)
}

// opposite starts pairs of tasks: one task selects {send a, recv b}, the other {recv a, send b}.
func opposite(s suspend.Spawner, pairs, rounds int) (tasks []func(), check func() error) {
	a, b := chanx.New[int](0), chanx.New[int](0)
	var mu sync.Mutex
	var bad error
	sums := map[*chanx.Chan[int]]int{}
	task := func(to, from *chanx.Chan[int]) func() {
		return func() {
			for i := range rounds {
				send, recv := suspend.CaseOf(to.SendOp(i+1)), suspend.CaseOf(from.RecvOp())
				won, err := suspend.Select(bg, send, recv)
				mu.Lock()
				switch won {
				case send:
					sums[to] += i + 1
				case recv:
					sums[from] -= recv.Value()
				default:
					bad = err
				}
				mu.Unlock()
			}
		}
	}
	for range pairs {
		tasks = append(tasks, task(a, b), task(b, a))
	}
	return tasks, func() error {
		if bad != nil || sums[a] != 0 || sums[b] != 0 {
			return fmt.Errorf("%v; left in a: %d, in b: %d", bad, sums[a], sums[b])
		}
		return nil
	}
}

func TestOppositeSelects(t *testing.T) {
	for _, pairs := range []int{1, 2} {
		t.Run(fmt.Sprint(2*pairs), func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				tasks, check := opposite(s, pairs, 300)
				schedtest.Run(t, s, tasks...)
				if err := check(); err != nil {
					t.Error(err)
				}
			})
			schedtest.Seeds(t, 1000, func(_ *rand.Rand, s *random.Scheduler) func() error {
				tasks, check := opposite(s, pairs, 5)
				for _, f := range tasks {
					_ = s.Go(f)
				}
				return check
			})
		})
	}
}

// Both queues of a Chan[struct{}] have the same type, and so have all slots.
func TestSelectOnSignals(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var c chanx.Chan[struct{}]
		var sent [2]int
		task := func(i int) func() {
			return func() {
				send, recv := suspend.CaseOf(c.SendOp(struct{}{})), suspend.CaseOf(c.RecvOp())
				for range 300 {
					if won, _ := suspend.Select(bg, send, recv); won == suspend.Selectable(send) {
						sent[i]++
					}
				}
			}
		}
		schedtest.Run(t, s, task(0), task(1))
		if sent[0]+sent[1] != 300 {
			t.Errorf("sent %v", sent)
		}
	})
}

// The same holds between tasks of different schedulers.
func TestOppositeSelectsMixed(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		tasks, check := opposite(nil, 2, 300)
		var all sync.WaitGroup
		for _, f := range tasks {
			all.Add(1)
			_ = next().Go(func() { defer all.Done(); f() })
		}
		all.Wait()
		if err := check(); err != nil {
			t.Error(err)
		}
	})
}

// philosophers take the fork that is free first, and the other one if it is free, too. Otherwise they put the first one back.
func philosophers(n, meals int) (tasks []func(), check func() error) {
	forks := make([]*chanx.Chan[int], n)
	users := make([]int, n) // of each fork; the race detector and the count check exclusion
	for i := range forks {
		forks[i] = chanx.New[int](1)
		_ = forks[i].Send(bg, i)
	}
	var bad error
	for i := range n {
		left, right := forks[i], forks[(i+1)%n]
		tasks = append(tasks, func() {
			for eaten := 0; eaten < meals; {
				l, r := suspend.CaseOf(left.RecvOp()), suspend.CaseOf(right.RecvOp())
				first, second := left, right
				won, err := suspend.Select(bg, l, r)
				if err != nil {
					panic(err)
				}
				fork := 0
				if won == suspend.Selectable(l) {
					fork = l.Value()
				} else {
					fork = r.Value()
					first, second = right, left
				}
				if other, ok, _ := second.TryRecv(); ok {
					users[fork]++
					users[other]++
					suspend.Yield()
					if users[fork] != 1 || users[other] != 1 {
						bad = fmt.Errorf("%d shares a fork", i)
					}
					users[fork]--
					users[other]--
					eaten++
					_ = second.Send(bg, other)
				}
				if ok, err := first.TrySend(fork); !ok || err != nil {
					bad = fmt.Errorf("no room for a fork: %v", err)
				}
				suspend.Yield()
			}
		})
	}
	return tasks, func() error {
		for i, f := range forks {
			if v, ok, _ := f.TryRecv(); v != i || !ok {
				return fmt.Errorf("fork %d is gone", i)
			}
		}
		return bad
	}
}

func TestDiningPhilosophers(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		tasks, check := philosophers(5, 100)
		schedtest.Run(t, s, tasks...)
		if err := check(); err != nil {
			t.Error(err)
		}
	})
	schedtest.Seeds(t, 1000, func(rng *rand.Rand, s *random.Scheduler) func() error {
		tasks, check := philosophers(2+rng.IntN(4), 3)
		for _, f := range tasks {
			_ = s.Go(f)
		}
		return check
	})
}

// closing has one task that sends, two that receive, and one that closes. Either the value was sent and one receiver has it, or
// it was not sent and none has it.
func closing(capacity, variant int) (tasks []func(), check func() (outcome string, err error)) {
	c := chanx.New[int](capacity)
	var sent error
	var got [2]int
	var errs [2]error
	for i := range got {
		tasks = append(tasks, func() {
			if variant&1 != 0 {
				got[i], errs[i] = suspend.Do(bg, c.RecvOp())
			} else {
				got[i], errs[i] = c.Recv(bg)
			}
		})
	}
	tasks = append(tasks, func() {
		if variant&2 != 0 {
			_, sent = suspend.Do(bg, c.SendOp(7))
		} else {
			sent = c.Send(bg, 7)
		}
	}, func() { _ = c.Close() })
	return tasks, func() (string, error) {
		received := 0
		for i := range got {
			switch {
			case got[i] == 7 && errs[i] == nil:
				received++
			case got[i] != 0 || errs[i] != chanx.ErrClosed:
				return "", fmt.Errorf("Recv = %d, %v", got[i], errs[i])
			}
		}
		switch {
		case sent == nil && received == 1:
			return "sent", nil
		case sent == chanx.ErrClosed && received == 0:
			return "closed", nil
		}
		return "", fmt.Errorf("Send = %v, received %d times", sent, received)
	}
}

func TestCloseAgainstSendAndTwoReceivers(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for i := range 400 {
			tasks, check := closing(i%2, i/2)
			var all sync.WaitGroup
			for _, f := range tasks {
				all.Add(1)
				_ = next().Go(func() { defer all.Done(); f() })
			}
			all.Wait()
			if _, err := check(); err != nil {
				t.Fatal(err)
			}
		}
	})
	seen := map[string]int{}
	schedtest.Seeds(t, 2000, func(rng *rand.Rand, s *random.Scheduler) func() error {
		tasks, check := closing(rng.IntN(2), rng.IntN(4))
		for _, f := range tasks {
			_ = s.Go(f)
		}
		return func() error {
			outcome, err := check()
			seen[outcome]++
			return err
		}
	})
	uncovered(t, seen, "sent", "closed")
}
