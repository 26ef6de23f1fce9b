package actor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/carrier"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A caught failure leaves the requests in the mailbox, also those that an Adapt has wrapped.
func TestAdaptedRequestStays(t *testing.T) {
	type envelope struct{ q *get }
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		n := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, loop(func(e envelope) error {
			if n++; n == 1 {
				return errOops
			}
			e.q.Reply(n)
			return nil
		})))
		defer ref.Stop()
		part := actor.Adapt(ref, func(q *get) envelope { return envelope{q} })
		a, b := actor.AskLater(part, &get{}), actor.AskLater(part, &get{})
		_, err := a.Await(bg)
		require.ErrorIs(t, err, actor.ErrNoReply) // it was in hand
		v, err := b.Await(bg)                     // it was in the mailbox
		require.NoError(t, err)
		require.Equal(t, 2, v)
	})
}

// A request that an Adapt unwraps belongs to the actor that gets it.
func TestAdaptedForward(t *testing.T) {
	type envelope struct{ q *get }
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		second := actor.Spawn(bg, s, once(func(q *get) error { q.Reply(7); return nil }))
		unwrap := actor.Adapt(second, func(e envelope) *get { return e.q })
		first := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[*get]) error {
			return self.React(func(q *get) error { return unwrap.Send(envelope{q}) }) // and ends
		})
		v, err := actor.Ask(bg, first, &get{})
		second.Stop()
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// A nil pointer to a request is a message, and no request.
func TestNilMessage(t *testing.T) {
	in := actor.Open[*get](bg)
	require.NotPanics(t, func() { require.NoError(t, in.Ref().Send(nil)) })
	any := actor.Open[any](bg)
	require.NotPanics(t, func() { require.NoError(t, any.Ref().Send((*get)(nil))) })
	_, ok := carrier.Of((*get)(nil))
	require.False(t, ok)
	require.PanicsWithValue(t, "actor: Ask with a nil request", func() { _, _ = actor.Ask(bg, in.Ref(), (*get)(nil)) })
}

// A wrapped request is known wherever the mailbox moves it.
func TestWrappedRequestMoves(t *testing.T) {
	type envelope struct{ q *get }
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		const n = 1000
		took := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, loop(func(e envelope) error {
			switch {
			case e.q == nil:
				if took++; took == n {
					return errOops
				}
			case took < n:
				return actor.Skip
			default:
				e.q.Reply(took)
			}
			return nil
		})))
		defer ref.Stop()
		part := actor.Adapt(ref, func(q *get) envelope { return envelope{q} })
		var answers []promise.Future[int]
		for i := range n {
			if i%90 == 0 {
				answers = append(answers, actor.AskLater(part, &get{}))
			}
			require.NoError(t, ref.Send(envelope{}))
			if i < n/2 && i%7 == 0 {
				suspend.Yield()
			}
		}
		for _, a := range answers {
			require.Equal(t, n, ok(a.Await(bg)))
		}
	})
}

// So it is when a few messages are copied to those that are there.
func TestWrappedRequestIsCopied(t *testing.T) {
	type envelope struct{ q *get }
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var part actor.Ref[*get]
		var answer promise.Future[int]
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, func(_ context.Context, self *actor.Self[envelope]) error {
			return self.React(func(e envelope) error {
				if e.q != nil {
					e.q.Reply(5)
					return nil
				}
				answer = actor.AskLater(part, &get{})
				err := self.HandleWithin(bg, 0, func(envelope) error { return actor.Skip })
				return errors.Join(err, errOops)
			})
		}))
		part = actor.Adapt(ref, func(q *get) envelope { return envelope{q} })
		require.NoError(t, ref.Send(envelope{}))
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, 5, ok(answer.Await(bg)))
	})
}

// A mailbox gives the memory of a flood back while its owner goes on, before it has received all.
func TestMemoryOfAFlood(t *testing.T) {
	in := actor.Open[[64]byte](bg)
	defer in.Close()
	before := heap()
	const n = 100_000
	for range n {
		require.NoError(t, in.Ref().Send([64]byte{}))
	}
	flood := heap() - before
	for range n - 1 {
		ok(in.Receive(bg))
	}
	require.Less(t, heap()-before, flood/10)
	require.Equal(t, 1, in.Len())
}
