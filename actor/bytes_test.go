//go:build !explore

package actor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// An actor that reacts in a Loop, and has a function for its end, needs at most 500 bytes while it waits. In a build for the
// model checker, the atomics are larger.
func TestBytes(t *testing.T) {
	const n, most = 10_000, 500
	ends := 0
	for name, spawn := range map[string]func(s *fifo.Scheduler, body func(*actor.Self[int]) error) actor.Ref[int]{
		"OnEnd of its own": func(s *fifo.Scheduler, body func(*actor.Self[int]) error) actor.Ref[int] {
			return actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error {
				self.OnEnd(func() { ends++ })
				return body(self)
			}, actor.Options[int]{})
		},
		"OnEnd of the Options": func(s *fifo.Scheduler, body func(*actor.Self[int]) error) actor.Ref[int] {
			return actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[int]) error { return body(self) },
				actor.Options[int]{OnEnd: func(error) { ends++ }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				ends = 0
				sum, refs := 0, make([]actor.Ref[int], n)
				before := heap()
				for i := range refs {
					refs[i] = spawn(s, func(self *actor.Self[int]) error {
						return actor.Loop(func() error { return self.React(func(m int) error { sum += m + i; return nil }) })
					})
					suspend.Yield() // lets each actor reach its wait, so that one coroutine is enough
				}
				each := (heap() - before) / n
				t.Log(each, "bytes")
				for _, r := range refs {
					r.Stop()
					require.NoError(t, r.Wait(bg))
				}
				// The check comes after the actors have ended, because a failure while they wait would hang.
				require.LessOrEqual(t, each, int64(most+20), "including 16 for the body of this test, and 4 for the rest of the heap")
				require.Equal(t, n, ends)
			})
		})
	}
}
