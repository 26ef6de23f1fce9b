package fetch

import (
	"context"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/promise"
)

// Later is for executors that collect thunks and then call them, as those of GraphQL do: it returns a function that returns what f
// returns. The first thunk that is called runs all that were made so far in the session, at the same time: as tasks of a Run on
// the calling goroutine, or of the Run that calls it. So their requests are batched exactly.
//
// f is called once, with ctx, and not before. A thunk may be called any number of times, from any goroutine, and suspends its caller.
// A panic of f is raised in each call.
func Later[T any](ctx context.Context, f func(ctx context.Context) (T, error)) (thunk func() (T, error)) {
	fr := frameOf(ctx)
	var v T
	var err error
	if err := fr.check(ctx); err != nil {
		return func() (T, error) { return v, err }
	}
	s := fr.s
	if fr.trail != nil {
		own := fr.child(ctx, s, fr.d)
		own.trail = fr.trail.combinator()
		ctx = own
	}
	l := new(later)
	l.f = func() { v, err = f(ctx) }
	s.guard.Lock()
	s.later = append(s.later, l)
	s.guard.Unlock()
	return func() (T, error) {
		s.force(l)
		l.how.Rethrow()
		return v, err
	}
}

// A later is the function of one thunk.
type later struct {
	f     func()
	taken bool // somebody runs it, or has; guarded by the session's guard
	how   outcome.Outcome
	over  promise.Promise[struct{}]
}

// force returns when l has run.
func (s *Session) force(l *later) {
	s.guard.Lock()
	var taken []*later
	if !l.taken {
		taken, s.later = s.later, nil
		for _, l := range taken {
			l.taken = true
		}
	}
	s.guard.Unlock()
	if taken == nil {
		_, _ = l.over.Await(context.Background())
		return
	}
	f := new(frame).child(context.WithoutCancel(s.ctx), s, nil) // the functions have contexts of their own
	f.inSource = false
	all := func(ctx context.Context) error {
		return together(ctx, len(taken), len(taken), func(_ context.Context, i int) error {
			taken[i].run()
			return nil
		})
	}
	if err := (Options{Policy: s.opts.Policy}).Run(f, all); err != nil { // the session has ended, and so they find out
		for _, l := range taken {
			l.run()
		}
	}
}

func (l *later) run() {
	f := l.f
	l.f = nil
	outcome.Of(f, func(o outcome.Outcome) {
		l.how = o
		_ = l.over.Fill(struct{}{})
	})
}
