// Package linear_test records the results of operations that run in parallel, on all schedulers together and randomly cancelled.
// Porcupine looks for an order in which they may have happened one at a time. Cancelled operations have no effect, and are left out.
package linear_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/linear"
)

// A call is an operation and its argument.
type call struct {
	name string
	arg  int
}

// A state is the state of an object, in a form that can be compared.
type state string

// A step returns the state of the object after an operation with the given result, and whether this result is possible.
type step = func(s state, c call, result string) (state, bool)

// A history holds the operations on one object.
type history struct {
	*linear.History[state, call, string]
	seen *stress.Outcomes
}

func newHistory(o object, seen *stress.Outcomes) *history {
	return &history{(&linear.Model[state, call, string]{First: o.init, Step: o.step}).New(), seen}
}

// do performs an operation and records it.
func (h *history) do(client int, c call, f func() (string, error)) (result string) {
	result, err := h.Do(client, c, func() (string, error) {
		result, err := f()
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return "", err
		}
		if err != nil {
			result = err.Error()
		}
		return result, nil
	})
	if err != nil {
		h.seen.Add(c.name + ": cancelled")
		return ""
	}
	kind, _, _ := strings.Cut(result, "=")
	h.seen.Add(c.name + ": " + kind)
	return result
}

// An object is a primitive under test.
type object struct {
	name     string
	outcomes []string
	init     state
	step     step
	// creates the object, and returns a function that performs the next step of a task
	anew func() func(h *history, client int, ctx context.Context, rng *rand.Rand)
}

const (
	clients = 4
	each    = 6 // operations, some of which are followed by another one
	at      = 16
)

// record runs tasks that use several objects at the same time, and returns an error if a history is not linearizable.
func record(t *testing.T, o object, seen *stress.Outcomes, next func() suspend.Spawner, seed uint64) error {
	var all sync.WaitGroup
	histories := make([]*history, at)
	for i := range histories {
		h := newHistory(o, seen)
		histories[i] = h
		use := o.anew()
		for client := range clients {
			rng := rand.New(rand.NewPCG(seed, uint64(i*clients+client)))
			all.Add(1)
			err := next().Go(func() {
				defer all.Done()
				for range each {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(2000))*time.Microsecond)
					if rng.IntN(3) == 0 {
						go cancel()
					}
					use(h, client, ctx, rng)
					cancel()
					if rng.IntN(3) == 0 {
						suspend.Yield()
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	all.Wait()
	for _, h := range histories {
		if err := h.Check(); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

func TestHistoriesAreLinearizable(t *testing.T) {
	for _, o := range objects {
		t.Run(o.name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline+2*stress.For(t))()
			seen := stress.Of(o.outcomes...)
			seed := rand.Uint64()
			var opened []suspend.Spawner
			for _, s := range schedtest.All {
				on, closeAll := s.Open()
				defer closeAll()
				opened = append(opened, on)
			}
			n := 0
			stress.Rounds(t, seen, func() {
				seed++
				if err := record(t, o, seen, func() suspend.Spawner { n++; return opened[n%len(opened)] }, seed); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A brokenMVar sometimes gives one value to two tasks, because its look and its take are two steps.
type brokenMVar struct{ mvar.MVar[int] }

func (m *brokenMVar) Take(ctx context.Context) (int, error) {
	v, err := m.Read(ctx)
	if err == nil {
		suspend.Yield()
		_, _ = m.TryTake()
	}
	return v, err
}

// Porcupine finds the mistake of brokenMVar.
func TestBrokenMVarIsNotLinearizable(t *testing.T) {
	broken := mvarObject(func() placer { return new(brokenMVar) })
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for seed := range uint64(100) {
			if err := record(t, broken, stress.Of(), next, seed); err != nil {
				t.Log(err)
				return
			}
		}
		t.Error("a value was given to two tasks, and no check fails")
	})
}

// Each model rejects an impossible history of two or three operations.
func TestModelsReject(t *testing.T) {
	for _, c := range []struct {
		object  int
		history []string // operation, argument, result
	}{
		{0, []string{"Lock 0 ok", "Lock 0 ok"}},
		{0, []string{"Lock 0 ok", "Unlock 0 ok", "TryLock 0 no"}},
		{1, []string{"Put 1 ok", "Put 2 ok"}},
		{1, []string{"Put 1 ok", "Take 0 =1", "Take 0 =1"}},
		{1, []string{"Put 1 ok", "TryTake 0 no"}},
		{2, []string{"Send 1 ok", "Send 2 ok", "Recv 0 =2"}},
		{2, []string{"Send 1 ok", "Send 2 ok", "Send 3 ok"}},
		{2, []string{"Send 1 ok", "TryRecv 0 no"}},
		{3, []string{"Acquire 2 ok", "Acquire 2 ok"}},
		{3, []string{"TryAcquire 1 no"}},
		{4, []string{"Lock 0 ok", "RLock 0 ok"}},
		{4, []string{"RLock 0 ok", "Lock 0 ok"}},
		{4, []string{"Lock 0 ok", "Unlock 0 ok", "TryRLock 0 no"}},
		{5, []string{"Fill 1 ok", "Await 0 =2"}},
		{5, []string{"Fill 1 ok", "Fill 2 ok"}},
		{5, []string{"Fill 1 ok", "Try 0 no"}},
	} {
		o := objects[c.object]
		h := newHistory(o, stress.Of())
		for _, line := range c.history {
			f := strings.Fields(line)
			arg, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			h.do(0, call{f[0], arg}, func() (string, error) { return f[2], nil })
		}
		if h.Check() == nil {
			t.Errorf("%s: %v is accepted", o.name, c.history)
		}
	}
}

var objects = []object{
	{
		name: "mutex", init: "free",
		outcomes: []string{"Lock: ok", "Lock: cancelled", "TryLock: ok", "TryLock: no", "Unlock: ok"},
		step: func(s state, c call, result string) (state, bool) {
			switch {
			case c.name == "Unlock":
				return "free", s == "held"
			case result == "no":
				return s, s == "held"
			}
			return "held", s == "free"
		},
		anew: func() func(*history, int, context.Context, *rand.Rand) {
			var m mutex.Mutex
			return func(h *history, client int, ctx context.Context, rng *rand.Rand) {
				var got string
				switch rng.IntN(4) {
				case 0:
					got = h.do(client, call{"TryLock", 0}, func() (string, error) { return tried("ok", m.TryLock()), nil })
				case 1:
					got = h.do(client, call{"Lock", 0}, func() (string, error) { return ok(suspend.Do(ctx, m.LockOp())) })
				default:
					got = h.do(client, call{"Lock", 0}, func() (string, error) { return "ok", m.LockContext(ctx) })
				}
				if got == "ok" {
					linger(rng)
					h.do(client, call{"Unlock", 0}, func() (string, error) { m.Unlock(); return "ok", nil })
				}
			}
		},
	},
	mvarObject(func() placer { return mvar.New[int]() }),
	{
		name: "chanx", init: "",
		outcomes: []string{"Send: ok", "Send: cancelled", "Recv: ", "Recv: cancelled", "TrySend: ok", "TrySend: no", "TryRecv: ", "TryRecv: no",
			"Close: ok", "Close: chanx: closed", "Send: chanx: closed", "Recv: chanx: closed"},
		step: chanStep,
		anew: func() func(*history, int, context.Context, *rand.Rand) {
			c := chanx.New[int](capacity)
			var last atomic.Int64
			return func(h *history, client int, ctx context.Context, rng *rand.Rand) {
				v := int(last.Add(1))
				switch rng.IntN(20) {
				case 0:
					if v > 3*each {
						h.do(client, call{"Close", 0}, func() (string, error) { return "ok", c.Close() })
					}
				case 1, 2:
					h.do(client, call{"TrySend", v}, func() (string, error) { ok, err := c.TrySend(v); return tried("ok", ok), err })
				case 3, 4:
					h.do(client, call{"TryRecv", 0}, func() (string, error) { v, ok, err := c.TryRecv(); return tried(equals(v), ok), err })
				case 5, 6:
					h.do(client, call{"Recv", 0}, func() (string, error) { v, err := suspend.Do(ctx, c.RecvOp()); return equals(v), err })
				case 7, 8:
					h.do(client, call{"Send", v}, func() (string, error) { return ok(suspend.Do(ctx, c.SendOp(v))) })
				case 9, 10, 11, 12, 13:
					h.do(client, call{"Recv", 0}, func() (string, error) { v, err := c.Recv(ctx); return equals(v), err })
				default:
					h.do(client, call{"Send", v}, func() (string, error) { return "ok", c.Send(ctx, v) })
				}
			}
		},
	},
	{
		name: "semaphore", init: free(permits),
		outcomes: []string{"Acquire: ok", "Acquire: cancelled", "TryAcquire: ok", "TryAcquire: no", "Release: ok"},
		step: func(s state, c call, result string) (state, bool) {
			n, _ := strconv.Atoi(string(s))
			switch {
			case c.name == "Release":
				return free(n + c.arg), n+c.arg <= permits
			case result == "no": // otherwise a waiter may exist, which is impossible while all permits are free
				return s, n < permits
			}
			return free(n - c.arg), n >= c.arg
		},
		anew: func() func(*history, int, context.Context, *rand.Rand) {
			s := semaphore.New(permits)
			return func(h *history, client int, ctx context.Context, rng *rand.Rand) {
				n := 1 + rng.IntN(permits)
				var got string
				switch rng.IntN(4) {
				case 0:
					got = h.do(client, call{"TryAcquire", n}, func() (string, error) { return tried("ok", s.TryAcquire(int64(n))), nil })
				case 1:
					got = h.do(client, call{"Acquire", n}, func() (string, error) { return ok(suspend.Do(ctx, s.AcquireOp(int64(n)))) })
				default:
					got = h.do(client, call{"Acquire", n}, func() (string, error) { return "ok", s.Acquire(ctx, int64(n)) })
				}
				if got == "ok" {
					linger(rng)
					h.do(client, call{"Release", n}, func() (string, error) { s.Release(int64(n)); return "ok", nil })
				}
			}
		},
	},
	{
		name: "rwmutex", init: "0",
		outcomes: []string{"Lock: ok", "Lock: cancelled", "RLock: ok", "RLock: cancelled", "TryLock: ok", "TryLock: no", "TryRLock: ok", "TryRLock: no",
			"Unlock: ok", "RUnlock: ok", "Downgrade: ok"},
		step: func(s state, c call, result string) (state, bool) {
			n, _ := strconv.Atoi(string(s)) // the number of readers, or -1
			switch {
			case result == "no": // otherwise a waiter may exist, which is impossible while the lock is free
				return s, n != 0
			case c.name == "Lock" || c.name == "TryLock":
				return "-1", n == 0
			case c.name == "RLock" || c.name == "TryRLock":
				return free(n + 1), n >= 0
			case c.name == "RUnlock":
				return free(n - 1), n > 0
			case c.name == "Downgrade":
				return "1", n == -1
			}
			return "0", n == -1
		},
		anew: func() func(*history, int, context.Context, *rand.Rand) {
			var m mutex.RWMutex
			return func(h *history, client int, ctx context.Context, rng *rand.Rand) {
				write, got := rng.IntN(2) == 0, ""
				runlock := func() {
					h.do(client, call{"RUnlock", 0}, func() (string, error) { m.RUnlock(); return "ok", nil })
				}
				switch how := rng.IntN(4); {
				case how == 0 && write:
					got = h.do(client, call{"TryLock", 0}, func() (string, error) { return tried("ok", m.TryLock()), nil })
				case how == 0:
					got = h.do(client, call{"TryRLock", 0}, func() (string, error) { return tried("ok", m.TryRLock()), nil })
				case how == 1 && write:
					got = h.do(client, call{"Lock", 0}, func() (string, error) { return ok(suspend.Do(ctx, m.LockOp())) })
				case how == 1:
					got = h.do(client, call{"RLock", 0}, func() (string, error) { return ok(suspend.Do(ctx, m.RLockOp())) })
				case write:
					got = h.do(client, call{"Lock", 0}, func() (string, error) { return "ok", m.LockContext(ctx) })
				default:
					got = h.do(client, call{"RLock", 0}, func() (string, error) { return "ok", m.RLockContext(ctx) })
				}
				switch {
				case got != "ok":
				case !write:
					linger(rng)
					runlock()
				case rng.IntN(3) == 0:
					linger(rng)
					h.do(client, call{"Downgrade", 0}, func() (string, error) { m.Downgrade(); return "ok", nil })
					runlock()
				default:
					linger(rng)
					h.do(client, call{"Unlock", 0}, func() (string, error) { m.Unlock(); return "ok", nil })
				}
			}
		},
	},
	{
		name: "promise", init: "",
		outcomes: []string{"Await: ", "Await: cancelled", "Try: ", "Try: no", "Fill: ok", "Fill: filled already"},
		step: func(s state, c call, result string) (state, bool) {
			switch {
			case c.name == "Fill" && result == "ok":
				return state(equals(c.arg)), s == ""
			case c.name == "Fill":
				return s, s != ""
			case result == "no":
				return s, s == ""
			}
			return s, s == state(result) && s != ""
		},
		anew: func() func(*history, int, context.Context, *rand.Rand) {
			p := promise.New[int]()
			return func(h *history, client int, ctx context.Context, rng *rand.Rand) {
				switch v := rng.Int(); v % 8 {
				case 0:
					h.do(client, call{"Fill", v}, func() (string, error) { return map[bool]string{true: "ok", false: "filled already"}[p.Fill(v)], nil })
				case 1, 2:
					h.do(client, call{"Try", 0}, func() (string, error) { v, ok, err := p.Try(); return tried(equals(v), ok), err })
				case 3:
					h.do(client, call{"Await", 0}, func() (string, error) { v, err := suspend.Do(ctx, p.AwaitOp()); return equals(v), err })
				default:
					h.do(client, call{"Await", 0}, func() (string, error) { v, err := p.Await(ctx); return equals(v), err })
				}
			}
		},
	},
}

// A placer is an MVar, or an imitation.
type placer interface {
	Put(ctx context.Context, v int) error
	PutOp(v int) suspend.Op[struct{}]
	Take(ctx context.Context) (int, error)
	Read(ctx context.Context) (int, error)
	Swap(ctx context.Context, v int) (int, error)
	TryPut(v int) bool
	TryTake() (int, bool)
	TryRead() (int, bool)
}

func mvarObject(anew func() placer) object {
	return object{
		name: "mvar", init: "",
		outcomes: []string{"Put: ok", "Put: cancelled", "Take: ", "Take: cancelled", "Read: ", "Read: cancelled", "Swap: ", "Swap: cancelled",
			"TryPut: ok", "TryPut: no", "TryTake: ", "TryTake: no", "TryRead: ", "TryRead: no"},
		step: func(s state, c call, result string) (state, bool) {
			switch {
			case c.name == "TryPut" && result == "no":
				return s, s != ""
			case result == "no":
				return s, s == ""
			case c.name == "Put" || c.name == "TryPut":
				return state(equals(c.arg)), s == ""
			case c.name == "Take" || c.name == "TryTake":
				return "", s != "" && s == state(result)
			case c.name == "Swap":
				return state(equals(c.arg)), s != "" && s == state(result)
			}
			return s, s != "" && s == state(result)
		},
		anew: func() func(*history, int, context.Context, *rand.Rand) {
			m := anew()
			var last atomic.Int64
			return func(h *history, client int, ctx context.Context, rng *rand.Rand) {
				v := int(last.Add(1))
				switch rng.IntN(16) {
				case 0:
					h.do(client, call{"TryPut", v}, func() (string, error) { return tried("ok", m.TryPut(v)), nil })
				case 1:
					h.do(client, call{"TryTake", 0}, func() (string, error) { v, ok := m.TryTake(); return tried(equals(v), ok), nil })
				case 2:
					h.do(client, call{"TryRead", 0}, func() (string, error) { v, ok := m.TryRead(); return tried(equals(v), ok), nil })
				case 3, 4:
					h.do(client, call{"Read", 0}, func() (string, error) { v, err := m.Read(ctx); return equals(v), err })
				case 5, 6:
					h.do(client, call{"Swap", v}, func() (string, error) { w, err := m.Swap(ctx, v); return equals(w), err })
				case 7:
					h.do(client, call{"Put", v}, func() (string, error) { return ok(suspend.Do(ctx, m.PutOp(v))) })
				case 8, 9, 10, 11:
					h.do(client, call{"Put", v}, func() (string, error) { return "ok", m.Put(ctx, v) })
				default:
					h.do(client, call{"Take", 0}, func() (string, error) { v, err := m.Take(ctx); return equals(v), err })
				}
			}
		},
	}
}

const (
	capacity = 2
	permits  = 3
)

// chanStep is the step function of the model of a channel. Its state holds the values, each after a "=", and a "!" at the end once the channel is closed.
func chanStep(s state, c call, result string) (state, bool) {
	values, closed := strings.CutSuffix(string(s), "!")
	closes := ""
	if closed {
		closes = "!"
	}
	n := strings.Count(values, "=")
	switch {
	case c.name == "Close":
		return state(values + "!"), closed == (result == chanx.ErrClosed.Error())
	case c.name == "Send" || c.name == "TrySend":
		switch result {
		case "ok":
			return state(values + equals(c.arg)), !closed && n < capacity
		case "no":
			return s, !closed && n == capacity
		}
		return s, closed
	case result == "no":
		return s, !closed && n == 0
	case result == chanx.ErrClosed.Error():
		return s, closed && n == 0
	}
	i := strings.IndexByte(values[min(1, len(values)):], '=') + 1
	if i == 0 {
		i = len(values)
	}
	return state(values[i:] + closes), n > 0 && values[:i] == result
}

func free(n int) state { return state(strconv.Itoa(n)) }

func equals(v int) string { return "=" + strconv.Itoa(v) }

func tried(yes string, ok bool) string {
	if ok {
		return yes
	}
	return "no"
}

func ok(_ struct{}, err error) (string, error) { return "ok", err }

// linger lets other tasks run while the caller holds something.
func linger(rng *rand.Rand) {
	for range rng.IntN(3) {
		suspend.Yield()
	}
}
