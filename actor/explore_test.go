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

// The actor reads x in the reaction to one message, and writes it in that to the next, which is there already. Between the two it may wait:
// an operation begins. Another task that adds one there loses its update, on any scheduler of several threads.
func TestExploreLooksBetweenReactions(t *testing.T) {
	f := &fails{TB: t}
	suspendtest.Explore(f, func(w *suspendtest.World) {
		var x atomic.Int32 // no data race, and two sections that are not atomic together
		w.Go("starter", func(context.Context) {
			v := int32(0)
			a := actor.Spawn(context.Background(), suspend.Here(), func(_ context.Context, s *actor.Self[int]) error {
				return s.React(func(int) error {
					_ = s.Ref().Send(2)
					v = x.Load()
					return s.React(func(int) error { x.Store(v + 1); return nil })
				})
			})
			_ = a.Send(1)
		})
		w.Go("adds", func(context.Context) { x.Add(1) })
		w.Check(func() error {
			if x.Load() != 2 {
				return errors.New("lost")
			}
			return nil
		})
	})
	if !f.failed {
		t.Error("Explore has not found the lost update")
	}
}

type fails struct {
	testing.TB
	failed bool
}

func (f *fails) Helper()                   {}
func (f *fails) Errorf(s string, a ...any) { f.failed = true; f.TB.Logf(s, a...) }
