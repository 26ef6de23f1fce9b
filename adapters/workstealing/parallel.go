package workstealing

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// For calls body in parallel, for parts that together make up [lo, hi). No part is longer than grain. If grain is zero
// or negative, For makes a few parts for each worker. It runs the two halves of the range with Join, recursively, so
// the rules of Join for callers, panics and ctx apply.
//
// After an error from body no further part begins, and For returns the error when the running parts have ended. If
// several parts fail, For returns the error from the lowest part. Cancelling ctx, or a panic, also keeps further parts
// from beginning.
func For(ctx context.Context, p *Pool, lo, hi, grain int, body func(ctx context.Context, lo, hi int) error) error {
	_, err := Reduce(ctx, p, lo, hi, grain, struct{}{},
		func(ctx context.Context, lo, hi int) (struct{}, error) { return struct{}{}, body(ctx, lo, hi) },
		func(struct{}, struct{}) struct{} { return struct{}{} })
	return err
}

// Reduce calls the function part for parts of [lo, hi), as For calls body, and combines the results in order. The
// function combine must be associative, but need not be commutative. The value empty is the result for an empty range,
// and is used for nothing else. With an error, Reduce returns the zero T.
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
	failed  atomicx.Bool // set when no further part may begin
}

func (r *reduction[T]) run(ctx context.Context, lo, hi int) (v T, err error) {
	if r.failed.Load() {
		return v, nil // the result is not used
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

// within runs f in a task of p, which is the calling task or else a new task.
func within[T any](p *Pool, f func() (T, error)) (v T, err error) {
	if p.current() != nil {
		return f()
	}
	if errPool := p.inside(func() { v, err = f() }); errPool != nil {
		err = errPool
	}
	return v, err
}

// grain returns the grain that the caller has asked for, if it is positive, and otherwise a default.
func (p *Pool) grain(lo, hi, asked int) uint {
	const partsPerWorker = 8
	if asked > 0 {
		return uint(asked)
	}
	return (length(lo, hi)-1)/uint(partsPerWorker*p.opts.Workers) + 1
}

// length returns hi-lo as a uint, because the difference of two ints may overflow an int.
func length(lo, hi int) uint { return uint(hi) - uint(lo) }

func middle(lo, hi int) int { return lo + int(length(lo, hi)/2) }
