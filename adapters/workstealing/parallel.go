package workstealing

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// For calls body in parallel, for parts that together make up [lo, hi). A part is never longer than grain. A grain of
// zero or less gives every worker a few parts. Parts are halved by Join, so the rules of Join for callers, panics and
// ctx hold.
//
// After an error of body no further part is begun, and For returns the error when the running parts have ended. Of
// several errors For returns the error of the lowest part. A done ctx and a panic have the same effect.
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
		return v, nil // unused
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
	return (length(lo, hi)-1)/uint(partsPerWorker*p.opts.Workers) + 1
}

// length is a uint, since the difference of two ints need not be an int.
func length(lo, hi int) uint { return uint(hi) - uint(lo) }

func middle(lo, hi int) int { return lo + int(length(lo, hi)/2) }
