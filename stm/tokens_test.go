package stm_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cancelpkg "github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A heap is a Var with room for some tokens, last in, first out.
type heap struct {
	top  stm.Var[*cell]
	size stm.Var[int]
}

type cell struct {
	token int
	below *cell
}

const room = 3

func (h *heap) put(token int) func(tx *stm.Tx) (int, error) {
	return func(tx *stm.Tx) (int, error) {
		if h.size.Get(tx) == room {
			return 0, stm.Retry
		}
		h.size.Set(tx, h.size.Get(tx)+1)
		h.top.Set(tx, &cell{token, h.top.Get(tx)})
		return 0, nil
	}
}

func (h *heap) take(tx *stm.Tx) (int, error) {
	c := h.top.Get(tx)
	if c == nil {
		return 0, stm.Retry
	}
	h.top.Set(tx, c.below)
	h.size.Set(tx, h.size.Get(tx)-1)
	return c.token, nil
}

// Tokens move between Vars and channels, with Selects on both sides, on all schedulers at once, while contexts are cancelled. No
// token is lost or doubled. BRAID_MOVES is the number of moves.
func TestTokensMove(t *testing.T) {
	moves := 20_000
	if testing.Short() || schedtest.Race {
		moves = 4_000
	}
	if s := os.Getenv("BRAID_MOVES"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		moves = n
	}
	const tokens, workers = 12, 24
	defer schedtest.Within(t, schedtest.Deadline+time.Duration(moves)*200*time.Microsecond)()
	var opened []suspend.Spawner
	for _, s := range schedtest.All {
		on, closeAll := s.Open()
		defer closeAll()
		opened = append(opened, on)
	}
	var (
		heaps                           [3]heap
		chans                           = [2]*chanx.Chan[int]{chanx.New[int](0), chanx.New[int](2)}
		lock                            mutex.Mutex
		made                            atomic.Int64
		byTx, byChan, byThen, cancelled atomic.Int64
		mu                              sync.Mutex
		found                           []int
	)
	over, stop := context.WithCancel(bg)
	defer stop()
	// one performs one of the two operations, in a random way.
	one := func(ctx context.Context, rng *rand.Rand, tx, other suspend.Op[int]) (v int, err error) {
		count := func(kind *atomic.Int64) func(v int, err error) (int, error) {
			return func(v int, err error) (int, error) {
				if err == nil {
					kind.Add(1)
				}
				return v, err
			}
		}
		tx, other = suspend.Map(tx, count(&byTx)), suspend.Map(other, count(&byChan))
		on, isExecutor := suspend.As[suspend.Executor](suspend.Here())
		switch n := rng.IntN(8); {
		case n == 0 && isExecutor: // in a continuation, for which its task waits
			return suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
				suspend.Then(ctx, suspend.Choose(tx, other), on, func(v int, err error) {
					if err == nil {
						byThen.Add(1)
					}
					r.Resume(v, err)
				})
				return 0, false
			})
		case n == 1:
			return suspend.Do(ctx, suspend.Choose(other, tx))
		}
		a, b := suspend.CaseOf(tx), suspend.CaseOf(other)
		won, err := suspend.Select(ctx, a, b, suspend.CaseOf(lock.LockOp())) // the lock is never free, so this case only adds work
		switch won {
		case a:
			return a.Result()
		case b:
			return b.Result()
		}
		return 0, err
	}
	lock.Lock()
	var all sync.WaitGroup
	for i := range workers {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		all.Add(1)
		err := opened[i%len(opened)].Go(func() {
			defer all.Done()
			token := 0
			if i < tokens {
				token = i + 1
			}
			for over.Err() == nil {
				ctx, cancel := context.WithCancel(over)
				if rng.IntN(2) == 0 {
					c, end := cancelpkg.New(over) // its functions run in the call of cancel
					ctx, cancel = c, func() { end(nil) }
				}
				switch rng.IntN(6) {
				case 0:
					go cancel()
				case 1:
					_ = suspend.Here().Go(cancel)
				case 2:
					_ = suspend.Here().Go(func() { suspend.Yield(); cancel() })
				}
				h, c := &heaps[rng.IntN(len(heaps))], chans[rng.IntN(len(chans))]
				var err error
				if token == 0 {
					token, err = one(ctx, rng, stm.Op(h.take), c.RecvOp())
				} else {
					send := suspend.Map(c.SendOp(token), func(_ struct{}, err error) (int, error) { return 0, err })
					if _, err = one(ctx, rng, stm.Op(h.put(token)), send); err == nil {
						token = 0
					}
				}
				cancel()
				if err != nil {
					cancelled.Add(1)
				} else if made.Add(1) == int64(moves) {
					stop()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if token != 0 {
				found = append(found, token)
			}
		})
		require.NoError(t, err)
	}
	all.Wait()
	for i := range heaps {
		require.Zero(t, heaps[i].top.Linked()+heaps[i].size.Linked())
		for {
			var token int
			ok, err := stm.Try(func(tx *stm.Tx) (err error) { token, err = heaps[i].take(tx); return err })
			require.NoError(t, err)
			if !ok {
				break
			}
			found = append(found, token)
		}
	}
	for _, c := range chans {
		for v, ok, _ := c.TryRecv(); ok; v, ok, _ = c.TryRecv() {
			found = append(found, v)
		}
	}
	t.Logf("%d moves: %d by transactions, %d by channels, %d of them by Then; %d cancelled", made.Load(), byTx.Load(), byChan.Load(), byThen.Load(), cancelled.Load())
	want := make([]int, tokens)
	for i := range want {
		want[i] = i + 1
	}
	require.ElementsMatch(t, want, found)
	for _, n := range []*atomic.Int64{&byTx, &byChan, &byThen, &cancelled} {
		require.Positive(t, n.Load(), "an outcome is uncovered")
	}
}
