package workstealing

import (
	"context"
	"math"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// For calls body in parallel, for parts that together make up [lo, hi). A part is never longer than grain. A grain of zero or less gives
// every worker a few parts. Parts are halved by Join, so the rules of Join for callers, panics and ctx hold here as well.
//
// After an error of body no further part is begun, and For returns the error when the running parts have ended. If there are several errors,
// it is that of the lowest part. A done ctx and a panic have the same effect.
func For(ctx context.Context, p *Pool, lo, hi, grain int, body func(ctx context.Context, lo, hi int) error) error {
	_, err := Reduce(ctx, p, lo, hi, grain, struct{}{},
		func(ctx context.Context, lo, hi int) (struct{}, error) { return struct{}{}, body(ctx, lo, hi) },
		func(struct{}, struct{}) struct{} { return struct{}{} })
	return err
}

// Reduce calls part for parts of [lo, hi), as For does, and combines the results in order: combine must be
// associative, and need not be commutative. The result of an empty range is empty, which is used for nothing else.
// With an error comes the zero T.
func Reduce[T any](ctx context.Context, p *Pool, lo, hi, grain int, empty T,
	part func(ctx context.Context, lo, hi int) (T, error), combine func(x, y T) T) (v T, err error) {
	if err := suspend.Err(ctx); err != nil {
		return v, err
	}
	if lo >= hi {
		return empty, nil
	}
	r := &reduction[T]{pool: p, grain: p.grain(lo, hi, grain), part: part, combine: combine}
	return within(p, func() (T, error) { return r.run(ctx, lo, hi) })
}

type reduction[T any] struct {
	pool    *Pool
	grain   uint
	part    func(ctx context.Context, lo, hi int) (T, error)
	combine func(x, y T) T
	failed  atomicx.Bool // begin no further part
}

func (r *reduction[T]) run(ctx context.Context, lo, hi int) (v T, err error) {
	if r.failed.Load() {
		return v, nil // not used
	}
	if length(lo, hi) <= r.grain {
		return r.leaf(ctx, lo, hi)
	}
	mid := middle(lo, hi)
	x, y, err := Join(ctx, r.pool,
		func(ctx context.Context) (T, error) { return r.run(ctx, lo, mid) },
		func(ctx context.Context) (T, error) { return r.run(ctx, mid, hi) })
	if err != nil || r.failed.Load() {
		return v, err
	}
	return r.combine(x, y), nil
}

func (r *reduction[T]) leaf(ctx context.Context, lo, hi int) (v T, err error) {
	if err = suspend.Err(ctx); err == nil {
		ok := false
		defer func() {
			if !ok {
				r.failed.Store(true)
			}
		}()
		if v, err = r.part(ctx, lo, hi); err == nil {
			ok = true
			return v, nil
		}
	}
	var zero T
	return zero, err
}

// Scan sets dst[i] to src[0] op src[1] op … op src[i], for all i of src, in parallel: op must be associative, and is
// applied about twice as often as in a loop. dst may be src; otherwise the two must not overlap. The rules of For hold here too, with
// parts of grain elements. After an error dst is half done.
//
// Scan panics if dst is shorter than src.
func Scan[T any](ctx context.Context, p *Pool, dst, src []T, grain int, op func(x, y T) T) error {
	if len(dst) < len(src) {
		panic("workstealing: Scan into a slice that is too short")
	}
	if len(src) == 0 {
		return suspend.Err(ctx)
	}
	part := int(p.grain(0, len(src), grain))
	parts := (len(src)-1)/part + 1
	bounds := func(i int) (lo, hi int) { return i * part, i*part + min(part, len(src)-i*part) }
	before := make([]T, parts) // the total before each part; the first has nothing before it

	err := For(ctx, p, 0, parts-1, 1, func(_ context.Context, i, _ int) error {
		lo, hi := bounds(i)
		total := src[lo]
		for _, x := range src[lo+1 : hi] {
			total = op(total, x)
		}
		before[i+1] = total
		return nil
	})
	if err != nil {
		return err
	}
	for i := 2; i < parts; i++ {
		before[i] = op(before[i-1], before[i])
	}
	return For(ctx, p, 0, parts, 1, func(_ context.Context, i, _ int) error {
		lo, hi := bounds(i)
		total := src[lo]
		if i > 0 {
			total = op(before[i], total)
		}
		dst[lo] = total
		for k := lo + 1; k < hi; k++ {
			total = op(total, src[k])
			dst[k] = total
		}
		return nil
	})
}

// Find returns the first i of [lo, hi) for which pred is true, and whether there is one. It calls pred in parallel, for parts as in For.
// Each hit ends the search beyond it. An error of pred counts as a hit, and is returned if no true one precedes it. So Find returns the same
// as a loop. It may call pred for more elements than a loop, and raises a panic there as well.
func Find(ctx context.Context, p *Pool, lo, hi, grain int, pred func(ctx context.Context, i int) (bool, error)) (i int, found bool, err error) {
	if err := suspend.Err(ctx); err != nil || lo >= hi {
		return 0, false, err
	}
	q := &quest{pool: p, grain: p.grain(lo, hi, grain), pred: pred}
	q.best.Store(math.MaxInt64)
	h, err := within(p, func() (hit, error) { return q.run(ctx, lo, hi) })
	switch {
	case err != nil:
		return 0, false, err
	case h.err != nil || !h.is:
		return 0, false, h.err
	}
	return h.i, true, nil
}

type quest struct {
	pool  *Pool
	grain uint
	pred  func(ctx context.Context, i int) (bool, error)
	best  atomicx.Int64 // the lowest hit so far; only falls
}

type hit struct {
	i   int
	is  bool
	err error // of pred(i)
}

func (q *quest) run(ctx context.Context, lo, hi int) (h hit, err error) {
	if int64(lo) > q.best.Load() {
		return h, nil
	}
	if length(lo, hi) <= q.grain {
		return q.leaf(ctx, lo, hi)
	}
	mid := middle(lo, hi)
	x, y, err := Join(ctx, q.pool,
		func(ctx context.Context) (hit, error) { return q.run(ctx, lo, mid) },
		func(ctx context.Context) (hit, error) { return q.run(ctx, mid, hi) })
	if x.is {
		return x, err
	}
	return y, err
}

func (q *quest) leaf(ctx context.Context, lo, hi int) (h hit, err error) {
	if err := suspend.Err(ctx); err != nil {
		return h, err
	}
	i, missed := lo, false
	defer func() {
		if !missed { // a hit, an error or a panic at i
			for best := q.best.Load(); int64(i) < best && !q.best.CompareAndSwap(best, int64(i)); {
				best = q.best.Load()
			}
		}
	}()
	for ; i < hi && int64(i) < q.best.Load(); i++ {
		if ok, err := q.pred(ctx, i); ok || err != nil {
			return hit{i, true, err}, nil
		}
	}
	missed = true
	return h, nil
}

// within runs f on a task of p: the caller, if it is one.
func within[T any](p *Pool, f func() (T, error)) (v T, err error) {
	if p.current() != nil {
		return f()
	}
	if errPool := p.inside(func() { v, err = f() }); errPool != nil {
		err = errPool
	}
	return v, err
}

// grain returns asked, or a default.
func (p *Pool) grain(lo, hi, asked int) uint {
	const partsPerWorker = 8
	if asked > 0 {
		return uint(asked)
	}
	return (length(lo, hi)-1)/uint(partsPerWorker*len(p.workers)) + 1
}

// length is a uint, since the difference of two ints need not be an int.
func length(lo, hi int) uint { return uint(hi) - uint(lo) }

func middle(lo, hi int) int { return lo + int(length(lo, hi)/2) }
