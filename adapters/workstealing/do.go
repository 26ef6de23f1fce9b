package workstealing

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// Do runs all fs, in parallel where workers are free, and returns when all have ended: it is Join for functions without
// values. The error is the first in the order of fs. A panic or a runtime.Goexit is raised again in the caller, when
// all have ended.
//
// If ctx is done already, Do returns the cancellation error and runs none. Once begun it runs all, and waits for them.
func Do(ctx context.Context, p *Pool, fs ...func(context.Context) error) (err error) {
	if err = suspend.Err(ctx); err != nil || len(fs) == 0 {
		return err
	}
	if p.current() != nil {
		return p.do(ctx, fs)
	}
	if closed := p.inside(func() { err = p.do(ctx, fs) }); closed != nil {
		return closed
	}
	return err
}

// do is Do in a task of p.
func (p *Pool) do(ctx context.Context, fs []func(context.Context) error) error {
	if len(fs) == 1 {
		return fs[0](ctx)
	}
	part := func(fs []func(context.Context) error) func(context.Context) (struct{}, error) {
		return func(ctx context.Context) (struct{}, error) { return struct{}{}, p.do(ctx, fs) }
	}
	half := (len(fs) + 1) / 2
	_, _, err := joinOn(ctx, p.current(), part(fs[:half]), part(fs[half:]))
	return err
}
