package actor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/internal/carrier"
	"github.com/braidgo/braid/suspend"
)

// An actor that watches a line is notified once: of the end of the remote actor or of the line itself, whichever comes first.
func TestWatchOfALine(t *testing.T) {
	var far func(err error)
	stopped := 0
	line := func() (in *actor.Inbox[any], drop func()) {
		in = actor.Open[any](bg, actor.Options[any]{})
		return in, carrier.SetLine(in.Ref(), func(tell func(err error)) (stop func()) {
			far = tell
			return func() { stopped++ }
		})
	}
	told := make(chan error, 10)
	watch := func(in *actor.Inbox[any], then func(self *actor.Self[error], stop func())) {
		watched := make(chan struct{})
		me := actor.Spawn(bg, suspend.Goroutines, func(ctx context.Context, self *actor.Self[error]) error {
			then(self, self.Watch(in.Ref(), func(err error) error { return err }))
			close(watched)
			for {
				err, ended := self.Receive(ctx)
				if ended != nil {
					return nil
				}
				told <- err
			}
		}, actor.Options[error]{})
		<-watched
		me.Stop() // messages that were sent before are received first
		require.NoError(t, me.Wait(bg))
	}
	errFar := errors.New("far")

	in, _ := line()
	watch(in, func(*actor.Self[error], func()) {
		far(errFar)
		far(errors.New("again"))
		in.Close()
	})
	require.Equal(t, errFar, <-told)
	require.Empty(t, told)

	in, _ = line()
	watch(in, func(*actor.Self[error], func()) {
		in.Close()
		far(errFar)
	})
	require.NoError(t, <-told)
	require.Empty(t, told)

	stopped = 0
	in, drop := line()
	watch(in, func(_ *actor.Self[error], stop func()) {
		stop()
		far(errFar)
		in.Close()
	})
	require.Empty(t, told)
	require.Equal(t, 1, stopped)

	drop() // the remote actor is not watched any more
	far = nil
	watch(in, func(self *actor.Self[error], _ func()) {
		require.Nil(t, far)
		require.PanicsWithValue(t, "actor: Link to an actor in another process", func() { self.Link(in.Ref()) })
	})
	require.NoError(t, <-told)
}

// A request to a line identifies the goroutine that waits for it, as long as that goroutine waits.
func TestAsker(t *testing.T) {
	in := actor.Open[any](bg, actor.Options[any]{})
	defer carrier.SetLine(in.Ref(), nil)()
	next := func() (carrier.Carrier, *get) {
		m, err := in.Receive(bg)
		require.NoError(t, err)
		q, ok := carrier.Of(m)
		require.True(t, ok)
		return q, m.(*get)
	}
	answered := make(chan struct{})
	me := actor.Spawn(bg, suspend.Goroutines, func(ctx context.Context, self *actor.Self[any]) error {
		_, err := actor.Ask(ctx, in.Ref(), &get{})
		close(answered)
		return err
	}, actor.Options[any]{})
	q, m := next()
	require.NotZero(t, q.Asker())
	require.Equal(t, carrier.Goroutine(me), q.Asker())
	require.True(t, q.Asked())
	require.True(t, m.Reply(1))
	<-answered
	require.NoError(t, me.Wait(bg))
	require.Zero(t, q.Asker())
	require.True(t, q.Asked())
	require.False(t, q.Waited())

	_ = actor.AskLater(in.Ref(), &get{})
	q, _ = next()
	require.Zero(t, q.Asker())
	require.NoError(t, in.Ref().Send(&get{}))
	q, _ = next()
	require.False(t, q.Asked())
}
