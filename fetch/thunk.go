package fetch

import (
	"context"

	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/suspend"
)

// Later is for executors that collect thunks and then call them, as GraphQL executors do: it returns a function that returns what f
// returns. The first thunk that is called runs all that were made so far in the session, at the same time: as tasks of a Run on
// the calling goroutine, or of the Run that calls it. So their requests are batched exactly.
//
// f is called once, with ctx, and not before. A thunk may be called any number of times, from any goroutine, and suspends its caller.
// A panic of f is raised in each call. If f calls runtime.Goexit, it ends its own task, and a thunk that waits for it fails with
// lazy.ErrAbandoned. Thunks that wait for each other, or for themselves, fail with lazy.ErrRecursive.
func Later[T any](ctx context.Context, f func(ctx context.Context) (T, error)) (get func() (T, error)) {
	if f == nil {
		panic("fetch: nil function")
	}
	fr := frameOf(ctx)
	if err := fr.check(ctx); err != nil {
		return func() (v T, _ error) { return v, err }
	}
	s := fr.s
	if fr.trail != nil {
		own := fr.child(ctx, s, fr.d)
		own.trail = fr.trail.combinator()
		ctx = own
	}
	value := lazy.New(func(context.Context) (T, error) { return f(ctx) }, lazy.Record)
	l := &thunk{force: func() { _, _ = value.Force(context.Background()) }}
	s.guard.Lock()
	s.thunks = append(s.thunks, l)
	s.guard.Unlock()
	return func() (T, error) {
		s.force(l)
		return value.Force(context.Background())
	}
}

// start is a task that forces l.
func (l *thunk) start() {
	defer func() { _ = recover() }() // the thunk raises it
	l.force()
}

// force forces l, and at the same time all other thunks, unless l is taken. A thunk that then does not run, as the scheduler refuses
// it or another has ended its task, runs when its function is called.
func (s *Session) force(l *thunk) {
	s.guard.Lock()
	taken := l.taken
	s.guard.Unlock()
	if taken {
		return
	}
	f := new(frame).child(context.WithoutCancel(s.ctx), s, nil) // each function uses the context that Later was given
	f.inSource = false
	_ = Options{Policy: s.opts.Policy}.Run(f, func(context.Context) error { // does not run if the session has ended, so that they get ErrEnded
		s.guard.Lock()
		all := s.thunks
		s.thunks = nil
		for _, l := range all {
			l.taken = true
		}
		s.guard.Unlock()
		on := suspend.Here()
		for _, other := range all {
			if other != l {
				_ = on.Go(other.start)
			}
		}
		l.force()
		return nil
	})
}
