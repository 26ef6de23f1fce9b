package workstealing

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// Do runs all functions in fs, in parallel if workers are free, and returns when all have ended. It is Join for
// functions without values. The error is the first error in the order of fs. A panic or a runtime.Goexit is raised
// again in the caller after all functions have ended.
//
// If ctx is already cancelled, Do returns the cancellation error and runs no function. Otherwise Do runs all functions
// and waits for them, even if ctx is cancelled later.
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

// do implements Do in a task of p.
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
