package fetch

import "context"

// Map calls f for each item, each in a task of its own, and returns the results in the order of the items. Otherwise it returns
// the error of the first item in order that fails, or raises its panic, when all calls have ended: the items before a failed one
// go on, the others are cancelled or not begun. It suspends its caller meanwhile.
//
// The tasks are of the caller's scheduler: of the Run, in a Run.
func Map[T, R any](ctx context.Context, items []T, f func(ctx context.Context, item T) (R, error)) ([]R, error) {
	out := make([]R, len(items))
	err := together(ctx, len(items), func(ctx context.Context, i int) (err error) {
		out[i], err = f(ctx, items[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Two calls both at the same time, and returns both results, or the error of the first in order that fails. Otherwise it is
// like Map.
func Two[A, B any](ctx context.Context, a func(context.Context) (A, error), b func(context.Context) (B, error)) (va A, vb B, err error) {
	err = together(ctx, 2, func(ctx context.Context, i int) (err error) {
		if i == 0 {
			va, err = a(ctx)
		} else {
			vb, err = b(ctx)
		}
		return err
	})
	if err != nil {
		return *new(A), *new(B), err
	}
	return va, vb, nil
}

// Three is Two for three.
func Three[A, B, C any](ctx context.Context, a func(context.Context) (A, error), b func(context.Context) (B, error),
	c func(context.Context) (C, error)) (va A, vb B, vc C, err error) {
	err = together(ctx, 3, func(ctx context.Context, i int) (err error) {
		switch i {
		case 0:
			va, err = a(ctx)
		case 1:
			vb, err = b(ctx)
		default:
			vc, err = c(ctx)
		}
		return err
	})
	if err != nil {
		return *new(A), *new(B), *new(C), err
	}
	return va, vb, vc, nil
}

// Together calls all at the same time, and returns the error of the first in order that fails. Otherwise it is like Map.
func Together(ctx context.Context, fs ...func(ctx context.Context) error) error {
	return together(ctx, len(fs), func(ctx context.Context, i int) error { return fs[i](ctx) })
}
