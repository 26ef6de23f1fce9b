package fetch

import (
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
)

// Or calls all at the same time. The first that returns true ends it: the others are cancelled, and Or returns true when they have
// ended. If none does, Or returns the error of the first in order that has failed, or false. A panic is raised as by Map, also
// beside a result: none is swallowed.
func Or(ctx context.Context, fs ...func(ctx context.Context) (bool, error)) (bool, error) {
	return search(ctx, true, fs)
}

// And is Or with false for true: the first that returns false ends it.
func And(ctx context.Context, fs ...func(ctx context.Context) (bool, error)) (bool, error) {
	found, err := search(ctx, false, fs)
	return !found && err == nil, err
}

// search reports whether one of fs returns sought.
func search(ctx context.Context, sought bool, fs []func(ctx context.Context) (bool, error)) (bool, error) {
	var found atomicx.Bool
	errs := make([]error, len(fs))
	outer := frameOf(ctx)
	if err := outer.check(ctx); err != nil {
		return false, err
	}
	inner, stop := cancel.New(ctx)
	defer stop(nil)
	err := together(outer.child(inner, outer.s, outer.d), len(fs), func(ctx context.Context, i int) error {
		if found.Load() {
			return nil
		}
		ok, err := fs[i](ctx)
		if err == nil && ok == sought {
			found.Store(true)
			stop(nil)
		}
		errs[i] = err
		return nil
	})
	switch {
	case err != nil:
		return false, err
	case found.Load():
		return true, nil
	}
	for _, err := range errs {
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
