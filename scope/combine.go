package scope

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// Map calls f with each element of the slice in, each call in a new task, and returns the results in the order of the
// slice. The first error cancels the other calls. Map returns this error, without results, after all calls have ended. If
// ctx ends first, the calls are cancelled, and calls that have not begun do not run. Map then returns the error of a
// cancelled call. If on is nil, the tasks are plain goroutines. Map panics if f is nil.
//
// Map does not limit the number of simultaneous calls; see Limit.
func Map[T, U any](ctx context.Context, on suspend.Spawner, in []T, f func(context.Context, T) (U, error)) ([]U, error) {
	check(f != nil)
	out := make([]U, len(in))
	err := Run(ctx, func(_ context.Context, s *Scope) error {
		for i, v := range in {
			s.Go(on, func(ctx context.Context) (err error) {
				if err = suspend.Err(ctx); err == nil { // ctx may have ended while the call waited to begin
					out[i], err = f(ctx, v)
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// First calls the functions fs, each in a new task, and returns the first result without an error. It cancels the other
// calls, or does not begin them, and returns after they have ended. The results of the other calls are dropped, so a
// resource that such a call has acquired is lost. With suspend.Select no resource is lost. If all functions fail, First
// returns their errors, joined in the order of fs. If ctx ends first, the calls are cancelled, but if a call succeeds
// nevertheless, it wins. If on is nil, the tasks are plain goroutines. First panics if fs is empty or a function is nil.
func First[T any](ctx context.Context, on suspend.Spawner, fs ...func(context.Context) (T, error)) (T, error) {
	if len(fs) == 0 {
		panic("scope: First without functions")
	}
	for _, f := range fs {
		check(f != nil)
	}
	var (
		mu   atomicx.Mutex
		v    T
		won  bool
		errs = make([]error, len(fs))
	)
	err := Run(ctx, func(_ context.Context, s *Scope) error {
		for i, f := range fs {
			s.child(s, on, func() {
				s.member(func() error {
					mine, err := f(s.ctx)
					if err != nil {
						errs[i] = err
						return nil
					}
					mu.Lock()
					if !won {
						v, won = mine, true
					}
					mu.Unlock()
					s.Cancel(nil)
					return nil
				})
			}, func(err error, _ bool) { errs[i] = err }) // a call has won, ctx has ended, or the scheduler is closed
		}
		return nil
	})
	switch {
	case won:
		return v, nil
	case err == nil:
		err = errors.Join(errs...)
	}
	return v, err
}
