package stage

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// Go runs f as a task of p: a handler of a further stage, which takes turns with the stages of p. So p is a
// suspend.Spawner of a bounded width, for scope.Map and the like. While 1024 functions wait, Go fails with
// ErrFull, and after Close with ErrClosed; then f never runs. It never suspends.
func (p *Pool) Go(f func()) error {
	if f == nil {
		panic("stage: nil function")
	}
	return p.functions().TrySubmit(context.Background(), f)
}

// Close refuses further functions, and waits for the accepted functions, as the Close of a stage does. It does not close the
// stages of p.
func (p *Pool) Close(ctx context.Context) error { return p.functions().Close(ctx) }

// functions returns the stage of Go.
func (p *Pool) functions() *Stage[func(), struct{}] {
	if s := p.funcs.Load(); s != nil {
		return s
	}
	p.making.Lock()
	defer p.making.Unlock()
	suspend.Bind(nil, func() { // Explore would switch at a guard, with the lock held
		if p.funcs.Load() == nil {
			p.funcs.Store(New(p.name, func(_ context.Context, f func()) (struct{}, error) {
				f()
				return struct{}{}, nil
			}, Options{Pool: p, Queue: 1024}))
		}
	})
	return p.funcs.Load()
}
