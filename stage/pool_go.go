package stage

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// Go runs f as a task of a stage that shares p with the other stages. Thus p is a suspend.Spawner with a bounded width, for example
// for scope.Map. If 1024 functions are waiting, Go fails with ErrFull. After Close it fails with ErrClosed. If Go fails, f never
// runs. Go never suspends.
func (p *Pool) Go(f func()) error {
	if f == nil {
		panic("stage: nil function")
	}
	return p.functions().TrySubmit(context.Background(), f)
}

// Close refuses further functions and waits for the accepted functions, as Stage.Close does. Close does not close the other stages
// of p.
func (p *Pool) Close(ctx context.Context) error { return p.functions().Close(ctx) }

// functions returns the stage that runs the functions given to Go. The first call makes the stage.
func (p *Pool) functions() Flow[func(), struct{}] {
	if s := p.funcs.Load(); s != nil {
		return *s
	}
	p.making.Lock()
	defer p.making.Unlock()
	suspend.Bind(nil, func() { // otherwise the model checker would switch to another task at a guard while the lock is held
		if p.funcs.Load() == nil {
			var s Flow[func(), struct{}] = New(p.name, func(_ context.Context, f func()) (struct{}, error) {
				f()
				return struct{}{}, nil
			}, Options{Pool: p, Queue: 1024})
			p.funcs.Store(&s)
		}
	})
	return *p.funcs.Load()
}
