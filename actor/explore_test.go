package actor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// The actor reads x when it handles one message, and writes x when it handles the next one, which is already in the mailbox.
// Another task that adds one in between loses its update. Although no task waits there, Explore must find this, because it
// happens on real threads.
func TestExploreLooksBetweenMessages(t *testing.T) {
	var x atomic.Int32 // atomic, so that there is no data race, but read and write are not atomic together
	v, wrote := int32(0), false
	read := func() error { v = x.Load(); return nil }
	write := func() error { x.Store(v + 1); wrote = true; return nil }
	both := func(m int) error { return []func() error{read, write}[m-1]() }
	skips := func(m int) error {
		if m == 1 {
			_ = read()
			return actor.Skip
		}
		return write()
	}
	for name, body := range map[string]func(ctx context.Context, s *actor.Self[int]) error{
		"React": func(_ context.Context, s *actor.Self[int]) error {
			return s.React(func(int) error {
				_ = read()
				return s.React(func(int) error { return write() })
			})
		},
		"React that skips": func(_ context.Context, s *actor.Self[int]) error { return s.React(skips) },
		"ReactWithin": func(_ context.Context, s *actor.Self[int]) error {
			next := func() error { return s.ReactWithin(1, both, func() error { return nil }) }
			return actor.AndThen(next(), next)
		},
		"a Loop": func(_ context.Context, s *actor.Self[int]) error {
			left := 3
			return actor.LoopWhile(func() bool { left--; return left > 0 }, func() error { return s.React(both) })
		},
		"Handle": func(ctx context.Context, s *actor.Self[int]) error {
			return errors.Join(s.Handle(ctx, both), s.Handle(ctx, both))
		},
		"Handle that skips": func(ctx context.Context, s *actor.Self[int]) error { return s.Handle(ctx, skips) },
		"Receive": func(ctx context.Context, s *actor.Self[int]) error {
			_, _ = s.Receive(ctx)
			_ = read()
			_, _ = s.Receive(ctx)
			return write()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fails{TB: t}
			suspendtest.Explore(f, func(w *suspendtest.World) {
				x.Store(0)
				wrote = false
				w.Go("starter", func(context.Context) {
					actor.Spawn(context.Background(), suspend.Here(), func(ctx context.Context, s *actor.Self[int]) error {
						_, _ = s.Ref().Send(1), s.Ref().Send(2)
						return body(ctx, s)
					}, actor.Options[int]{})
				})
				w.Go("adds", func(context.Context) { x.Add(1) })
				w.Check(func() error {
					if wrote && x.Load() != 2 {
						return errors.New("lost")
					}
					return nil
				})
			}, suspendtest.ExploreOptions{})
			if !f.failed {
				t.Error("Explore has not found the lost update")
			}
		})
	}
}

type fails struct {
	testing.TB
	failed bool
}

func (f *fails) Helper()                   {}
func (f *fails) Errorf(s string, a ...any) { f.failed = true; f.TB.Logf(s, a...) }
