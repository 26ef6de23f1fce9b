package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// A hostile program is a random program over all kinds of sources, in nested and parallel Runs, with cancellations and a Close at
// any time. Its result is not compared with a model: each Get must return the value of its key, the error of its source, or an
// error of a cancellation or of the end, and each call must return.

type hostile func(ctx context.Context) error

// An arsenal holds the sources and keys of a hostile program.
type arsenal struct {
	r       *rand.Rand
	pool    suspend.Spawner
	sources []*fetch.Source[int, int]
	effect  *fetch.Effect[int, int]
	atOnce  *fetch.Effect[int, int]
	memo    *fetch.Memo[int, int]

	mu    sync.Mutex
	wrong []error // errors that must not occur
}

const hostileKeys = 22

// hostileAnswer returns the value of a key, and hostileError the error that may come instead.
func hostileAnswer(k int) (int, error) {
	switch k % 11 {
	case 10:
		return 0, errOdd
	case 9:
		return 0, fetch.ErrNotFound
	case 8:
		return 0, fetch.Transient(errOdd)
	}
	return 2 * k, nil
}

// check records a wrong result. It returns some of the errors, so that some items of combinators fail.
func (a *arsenal) check(k, v int, err error) error {
	want, failure := hostileAnswer(k)
	right := errors.Is(err, context.Canceled) || errors.Is(err, suspend.ErrEnded)
	switch {
	case right:
	case failure == nil:
		right = err == nil && v == want
	default:
		right = err != nil && errors.Is(err, fetch.ErrNotFound) == (failure == fetch.ErrNotFound) && errors.Is(err, errOdd) == (failure != fetch.ErrNotFound)
	}
	if !right {
		a.mu.Lock()
		a.wrong = append(a.wrong, fmt.Errorf("key %d: %d, %w", k, v, err))
		a.mu.Unlock()
	}
	if k%2 == 0 {
		return err
	}
	return nil
}

func newArsenal(seed uint64, pool suspend.Spawner) *arsenal {
	load := func(_ context.Context, b *fetch.Batch[int, int]) error {
		for range len(b.Keys()) % 3 {
			runtime.Gosched()
		}
		for _, k := range b.Keys() {
			if v, err := hostileAnswer(k); err == nil {
				b.Set(k, v)
			} else {
				b.Fail(k, err)
			}
		}
		return nil
	}
	a := &arsenal{r: rand.New(rand.NewPCG(seed, 3)), pool: pool}
	for i, o := range []fetch.SourceOptions{
		{},
		{MaxBatch: 2, MaxOpen: 1},
		{Immediate: true},
		{MaxOpen: 2, Immediate: true},
		{Inline: true},
		{MaxBatch: 1, MaxOpen: 1, Inline: true},
		{Immediate: true, Inline: true},
		{MaxOpen: 1, Immediate: true, Inline: true},
	} {
		a.sources = append(a.sources, fetch.New(fmt.Sprint("source ", i), load, o))
	}
	a.sources = append(a.sources, fetch.Shared(fetch.New("shared", load, fetch.SourceOptions{}), 1),
		fetch.ByKey("each", 2, func(_ context.Context, k int) (int, error) { return hostileAnswer(k) }, fetch.SourceOptions{}))
	a.effect = fetch.NewEffect("effect", load, fetch.SourceOptions{MaxBatch: 2, MaxOpen: 1})
	a.atOnce = fetch.NewEffect("at once", load, fetch.SourceOptions{MaxOpen: 1, Immediate: true, Inline: true})
	a.memo = fetch.NewMemo("memo", func(ctx context.Context, k int) (int, error) { return a.sources[k%len(a.sources)].Get(ctx, k) })
	return a
}

// options returns random options for a Run inside a session.
func (a *arsenal) options() fetch.Options {
	return fetch.Options{Eager: a.r.IntN(2) > 0, On: []suspend.Spawner{nil, suspend.Goroutines, a.pool}[a.r.IntN(3)]}
}

// call returns a single call of a source.
func (a *arsenal) call() hostile {
	k, src := a.r.IntN(hostileKeys), a.sources[a.r.IntN(len(a.sources))]
	get := func(f func(ctx context.Context, k int) (int, error)) hostile {
		return func(ctx context.Context) error { v, err := f(ctx, k); return a.check(k, v, err) }
	}
	switch a.r.IntN(9) {
	case 1:
		return func(ctx context.Context) error { src.Forget(ctx, k); return nil }
	case 2:
		return func(ctx context.Context) error {
			if v, err := hostileAnswer(k); err == nil {
				src.Prime(ctx, k, v)
			}
			return nil
		}
	case 3:
		return get(a.effect.Do)
	case 4:
		return get(a.atOnce.Do)
	case 5:
		return get(a.memo.Get)
	case 6, 7:
		ks := []int{k, a.r.IntN(hostileKeys), k, a.r.IntN(hostileKeys)}
		return func(ctx context.Context) error {
			vs, err := src.All(ctx, ks)
			for i, v := range vs {
				_ = a.check(ks[i], v, nil)
			}
			if failed := (*fetch.Error)(nil); errors.As(err, &failed) {
				return a.check(failed.Key.(int), 0, err)
			}
			return nil
		}
	}
	return get(src.Get)
}

func (a *arsenal) some(depth int) (ps []func(ctx context.Context) error) {
	for range 2 + a.r.IntN(4) {
		ps = append(ps, a.program(depth))
	}
	return ps
}

func (a *arsenal) program(depth int) hostile {
	if depth == 0 || a.r.IntN(3) == 0 {
		return a.call()
	}
	p := a.program(depth - 1)
	switch a.r.IntN(6) {
	case 0: // in sequence
		q := a.program(depth - 1)
		return func(ctx context.Context) error { return errors.Join(p(ctx), q(ctx)) }
	case 1, 2:
		ps := a.some(depth - 1)
		return func(ctx context.Context) error { return fetch.Together(ctx, ps...) }
	case 3:
		q, turns := a.program(depth-1), a.r.IntN(4)
		return func(ctx context.Context) error { // with a context that is cancelled
			one, cancel := context.WithCancel(ctx)
			defer cancel()
			return fetch.Together(ctx, func(context.Context) error { return p(one) }, func(ctx context.Context) error {
				for range turns {
					suspend.Yield()
				}
				cancel()
				return q(ctx)
			})
		}
	case 4:
		o := a.options()
		return func(ctx context.Context) error { return fetch.Run(ctx, p, o) }
	}
	q := a.program(depth - 1)
	return func(ctx context.Context) error {
		_, _, err := fetch.Two(ctx, func(ctx context.Context) (bool, error) { return true, p(ctx) },
			func(ctx context.Context) (bool, error) { return false, q(ctx) })
		return err
	}
}

// run runs the program in a Run, or twice in a session that may be closed at any time: on goroutines, in a Run and outside any
// Run.
func (a *arsenal) run(t *testing.T) {
	p, o, turns := a.program(5), a.options(), a.r.IntN(60)
	o.Trace = a.r.IntN(2) == 0
	if a.r.IntN(2) == 0 {
		_ = fetch.Run(t.Context(), p, o)
		return
	}
	ctx, s := fetch.Open(t.Context(), fetch.Options{Eager: o.Eager, Trace: o.Trace, Settle: a.r.IntN(3)})
	o.Trace = false
	var both sync.WaitGroup
	both.Go(func() { _ = fetch.Run(ctx, p, o) })
	both.Go(func() { _ = p(ctx) })
	if turns < 30 {
		for range turns {
			runtime.Gosched()
		}
		s.Close()
	}
	both.Wait()
	s.Close()
}

func TestHostilePrograms(t *testing.T) {
	defer schedtest.NoGoroutines(t)
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	from, to := programs(t, 200)
	for seed := from; seed < to; seed++ {
		stop := schedtest.Within(t, schedtest.Deadline)
		a := newArsenal(seed, pool)
		a.run(t)
		require.Empty(t, a.wrong, "seed %d", seed)
		stop()
	}
}
