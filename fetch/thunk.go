package fetch

import (
	"context"

	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/suspend"
)

// A thunk is the state of a function that Later returned.
type thunk struct {
	force func() // runs the function, or waits for it
	taken bool   // the function has been started; protected by the session's guard
}

// Later returns a thunk, that is, a function that returns the result of f. Later is for executors that collect thunks and call
// them later, as GraphQL executors do. The first call of a thunk runs all thunks that the session has so far, concurrently: as
// tasks of a Run on the calling goroutine, or of the calling task's Run. The requests of concurrent thunks share batches.
//
// f is called once, with ctx, and not before the first call of a thunk. A thunk may be called any number of times, from any
// goroutine, and suspends its caller. A panic in f is raised in each call. If f calls runtime.Goexit, the task of f ends, and
// thunks that wait for f fail with an error that is suspend.ErrAbandoned. Thunks that wait for themselves or for each other fail with
// lazy.ErrRecursive.
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

// start is the function of a task that forces l.
func (l *thunk) start() {
	defer func() { _ = recover() }() // each call of the thunk raises the panic
	l.force()
}

// force forces l and, concurrently, all other thunks of s, unless l has already been started. If the scheduler refuses or ends
// the task of another thunk, that thunk runs when its function is called.
func (s *Session) force(l *thunk) {
	s.guard.Lock()
	taken := l.taken
	s.guard.Unlock()
	if taken {
		return
	}
	f := new(frame).child(context.WithoutCancel(s.ctx), s, nil) // each f uses the context that was passed to Later
	f.inSource = false
	_ = Run(f, func(context.Context) error { // fails if the session has ended; fetches in f then return errEnded
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
	}, Options{Eager: s.opts.Eager})
}
