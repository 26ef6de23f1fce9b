package actor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A table holds requests. The message for a request is its index.
type table []*get

func (t *table) add(q *get) (i int) {
	*t = append(*t, q)
	return len(*t) - 1
}

// After a failure that Catch handles, the requests stay in the mailbox, even those that an Adapt has wrapped.
func TestAdaptedRequestStays(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var all table
		n := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, loop(func(i int) error {
			if n++; n == 1 {
				return errOops
			}
			all[i].Reply(n)
			return nil
		})), actor.Options[int]{})
		defer ref.Stop()
		part := actor.Adapt(ref, all.add)
		a, b := actor.AskLater(part, &get{}), actor.AskLater(part, &get{})
		_, err := a.Await(bg)
		require.ErrorIs(t, err, actor.ErrNoReply) // the request that was being handled
		v, err := b.Await(bg)                     // the request in the mailbox
		require.NoError(t, err)
		require.Equal(t, 2, v)
	})
}

// A request that an Adapt unwraps belongs to the actor that receives it.
func TestAdaptedForward(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var all table
		second := actor.Spawn(bg, s, once(func(q *get) error { q.Reply(7); return nil }), actor.Options[*get]{})
		unwrap := actor.Adapt(second, func(i int) *get { return all[i] })
		first := actor.Spawn(bg, s, func(_ context.Context, self *actor.Self[*get]) error {
			return self.React(func(q *get) error { return unwrap.Send(all.add(q)) }) // then the actor ends
		}, actor.Options[*get]{})
		v, err := actor.Ask(bg, first, &get{})
		second.Stop()
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// A nil pointer to a request is a message, but not a request.
func TestNilMessage(t *testing.T) {
	in := actor.Open[*get](bg, actor.Options[*get]{})
	require.NotPanics(t, func() { require.NoError(t, in.Ref().Send(nil)) })
	any := actor.Open[any](bg, actor.Options[any]{})
	require.NotPanics(t, func() { require.NoError(t, any.Ref().Send((*get)(nil))) })
	_, ok := carrier.Of((*get)(nil))
	require.False(t, ok)
	require.PanicsWithValue(t, "actor: Ask with a nil request", func() { _, _ = actor.Ask(bg, in.Ref(), (*get)(nil)) })
}

// The request in a message is found wherever the mailbox moves the message.
func TestWrappedRequestMoves(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		const n = 1000
		const plain = -1 // a message without a request
		var all table
		took := 0
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, loop(func(i int) error {
			switch {
			case i == plain:
				if took++; took == n {
					return errOops
				}
			case took < n:
				return actor.Skip
			default:
				all[i].Reply(took)
			}
			return nil
		})), actor.Options[int]{})
		defer ref.Stop()
		part := actor.Adapt(ref, all.add)
		var answers []promise.Future[int]
		for i := range n {
			if i%90 == 0 {
				answers = append(answers, actor.AskLater(part, &get{}))
			}
			require.NoError(t, ref.Send(plain))
			if i < n/2 && i%7 == 0 {
				suspend.Yield()
			}
		}
		for _, a := range answers {
			require.Equal(t, n, ok(a.Await(bg)))
		}
	})
}

// The same holds if the mailbox copies a few messages into an existing segment.
func TestWrappedRequestIsCopied(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		const first = -1
		var all table
		var part actor.Ref[*get]
		var answer promise.Future[int]
		ref := actor.Spawn(bg, s, actor.Restart(actor.Policy{}, func(_ context.Context, self *actor.Self[int]) error {
			return self.React(func(i int) error {
				if i != first {
					all[i].Reply(5)
					return nil
				}
				answer = actor.AskLater(part, &get{})
				err := self.HandleWithin(bg, 0, func(int) error { return actor.Skip })
				return errors.Join(err, errOops)
			})
		}), actor.Options[int]{})
		part = actor.Adapt(ref, all.add)
		require.NoError(t, ref.Send(first))
		require.NoError(t, ref.Wait(bg))
		require.Equal(t, 5, ok(answer.Await(bg)))
	})
}

// After a flood of messages, a mailbox gives memory back while its owner still receives them.
func TestMemoryOfAFlood(t *testing.T) {
	in := actor.Open[string](bg, actor.Options[string]{})
	defer in.Close()
	before := heap()
	const n = 300_000
	for range n {
		require.NoError(t, in.Ref().Send("m"))
	}
	flood := heap() - before
	for range n - 1 {
		ok(in.Receive(bg))
	}
	require.Less(t, heap()-before, flood/10)
	require.Equal(t, 1, in.Len())
}
