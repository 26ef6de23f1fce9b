package natsactor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/actor/natsactor"
	"github.com/braidgo/braid/suspend"
)

// An actor that watches a Ref of Dial is notified of the end of the actor in the other process, or of the Ref itself.
func TestWatchOfALine(t *testing.T) {
	ncs := network(t, 3)
	watcher := func(ref actor.Ref[any]) (told <-chan error, stop func()) {
		c, stops := make(chan error, 10), make(chan func())
		me := actor.Spawn(bg, suspend.Goroutines, func(_ context.Context, self *actor.Self[any]) error {
			stop := self.Watch(ref, func(err error) any { return fmt.Errorf("ended: %w", err) })
			stops <- stop
			return actor.Loop(func() error {
				return self.React(func(m any) error { c <- errors.Unwrap(m.(error)); return nil })
			})
		}, actor.Options[any]{})
		t.Cleanup(me.Stop)
		return c, <-stops
	}
	line := func(name string, lease time.Duration) (served, ref actor.Ref[any]) {
		served = actor.Spawn(bg, suspend.Goroutines, adder, actor.Options[any]{})
		s := ok(natsactor.Serve(ncs[0], name, served, codec(), natsactor.Options{Beat: 10 * time.Millisecond}))
		t.Cleanup(func() { _ = s.Close() })
		ref = ok(natsactor.Dial(bg, suspend.Goroutines, ncs[1], name, codec(), natsactor.DialOptions[any]{Lease: lease}))
		t.Cleanup(ref.Stop)
		return served, ref
	}
	watched := func(name string) { // waits until the Watch has begun, which asks the server for a sign of life
		for n := 0; n < 2; { // two signs, because one may be a beat that was already under way
			sub := ok(ncs[2].SubscribeSync("_braid.life." + name))
			_, err := sub.NextMsg(short)
			require.NoError(t, err)
			n++
		}
	}

	killed, ref := line("killed", time.Hour)
	told, _ := watcher(ref)
	again, stop := watcher(ref)
	stop()
	watched("killed")
	killed.Kill(errors.New("oops"))
	require.ErrorContains(t, <-told, "oops")
	require.NoError(t, ref.Send(add{1})) // the Ref still works
	require.Empty(t, again)

	_, ref = line("hung", -1)
	told, _ = watcher(ref)
	ref.Kill(errors.New("hung up"))
	require.EqualError(t, <-told, "hung up")

	_, ref = line("lost", time.Second)
	told, _ = watcher(ref)
	ncs[0].Close()
	require.ErrorIs(t, <-told, natsactor.ErrUnreachable)
	require.Empty(t, told)

	done := make(chan any)
	actor.Spawn(bg, suspend.Goroutines, func(_ context.Context, self *actor.Self[any]) error {
		defer func() { done <- recover() }()
		self.Link(ref)
		return nil
	}, actor.Options[any]{})
	require.Equal(t, "actor: Link to an actor in another process", <-done)
}

type via struct { // the reply comes through the other actor, Depth times
	actor.Request[int]
	Depth int
	Later bool // uses AskLater
}

// A cycle of Asks between processes is an error that names the cycle. Without a cycle there is no such error.
func TestCycleOfAsks(t *testing.T) {
	ncs := network(t, 3)
	c := natsactor.JSON[any](&via{})
	names := []string{"a", "b", "c"}
	to := make([]actor.Ref[any], len(names)) // for each actor, the next one
	served := make([]actor.Ref[any], len(names))
	for i := range names {
		next := (i + 1) % len(names)
		to[i] = ok(natsactor.Dial(bg, suspend.Goroutines, ncs[i], names[next], c, natsactor.DialOptions[any]{Lease: -1}))
		served[i] = actor.Spawn(bg, suspend.Goroutines, func(ctx context.Context, self *actor.Self[any]) error {
			return actor.Loop(func() error {
				return self.React(func(m any) error {
					q := m.(*via)
					if q.Depth == 0 {
						q.Reply(7)
						return nil
					}
					further := &via{Depth: q.Depth - 1, Later: q.Later}
					if q.Later {
						f := actor.AskLater(to[i], further)
						go func() { v, _ := f.Await(bg); q.Reply(v) }()
						return nil
					}
					if v, err := actor.Ask(ctx, to[i], further); err != nil {
						q.Refuse(err)
					} else {
						q.Reply(v)
					}
					return nil
				})
			})
		}, actor.Options[any]{})
		s := ok(natsactor.Serve(ncs[i], names[i], served[i], c, natsactor.Options{}))
		t.Cleanup(func() { s.Close(); served[i].Stop(); to[i].Stop() })
	}
	for _, from := range []actor.Ref[any]{served[0], to[2]} {
		require.Equal(t, 7, ok(actor.Ask(within(t), from, &via{Depth: 2})))
		require.Equal(t, 7, ok(actor.Ask(within(t), from, &via{Depth: 7, Later: true}))) // each actor replies while it waits
		_, err := actor.Ask(within(t), from, &via{Depth: 3})
		require.ErrorIs(t, err, natsactor.ErrCycle)
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorContains(t, err, "a -> b -> c -> a")
	}
}

var errSoldOut, errClosed = errors.New("sold out"), errors.New("closed for the night")

// If both processes have registered an error, the receiver gets the same value, in a refusal and as the error of an actor.
func TestRegisteredErrors(t *testing.T) {
	natsactor.RegisterError("sold-out", errSoldOut)
	natsactor.RegisterError("sold-out", errSoldOut) // for the second time
	natsactor.RegisterError("closed", errClosed)
	for _, bad := range []func(){
		func() { natsactor.RegisterError("sold-out", errClosed) },
		func() { natsactor.RegisterError("full", errClosed) }, // has the text of actor.ErrFull
		func() { natsactor.RegisterError("", errClosed) },
		func() { natsactor.RegisterError("two words", errClosed) },
		func() { natsactor.RegisterError("x", nil) },
	} {
		require.Panics(t, bad)
	}
	ncs := network(t, 1)
	served := actor.Spawn(bg, suspend.Goroutines, func(_ context.Context, self *actor.Self[any]) error {
		return actor.Loop(func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case *sum:
					m.Refuse(fmt.Errorf("chairs: %w", errSoldOut))
				case *fail:
					return fmt.Errorf("the shop: %w", errClosed)
				}
				return nil
			})
		})
	}, actor.Options[any]{})
	s := ok(natsactor.Serve(ncs[0], "shop", served, codec(), natsactor.Options{}))
	defer s.Close()
	ref := ok(natsactor.Dial(bg, suspend.Goroutines, ncs[0], "shop", codec(), natsactor.DialOptions[any]{}))
	defer ref.Stop()
	_, err := actor.Ask(within(t), ref, &sum{})
	require.EqualError(t, err, "chairs: sold out")
	require.ErrorIs(t, err, errSoldOut)
	require.NotErrorIs(t, err, errClosed)
	told := make(chan error, 1)
	require.NoError(t, natsactor.Watch(bg, ncs[0], "shop", short, func(err error) { told <- err }))
	_, err = actor.Ask(within(t), ref, &fail{})
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, err, actor.ErrNoReply)
	require.ErrorIs(t, <-told, errClosed)
}

// The error of an Ask says whether the request may have been handled.
func TestDoubtfulAsks(t *testing.T) {
	ncs := network(t, 2)
	quiet := ok(ncs[0].SubscribeSync("quiet")) // accepts requests, and never replies
	dial := func(subject string, lease time.Duration) actor.Ref[any] {
		return ok(natsactor.Dial(bg, suspend.Goroutines, ncs[1], subject, codec(), natsactor.DialOptions[any]{Lease: lease}))
	}
	came := func() { ok(quiet.NextMsg(short)) }

	_, err := actor.Ask(within(t), dial("nobody", time.Hour), &sum{})
	require.ErrorIs(t, err, natsactor.ErrUnreachable)
	require.NotErrorIs(t, err, natsactor.ErrInDoubt)

	_, err = actor.Ask(within(t), dial("quiet", 50*time.Millisecond), &sum{})
	came()
	require.ErrorIs(t, err, natsactor.ErrUnreachable)
	require.ErrorIs(t, err, natsactor.ErrInDoubt)

	ref := dial("quiet", time.Hour)
	asked := actor.AskLater(ref, &sum{})
	came()
	ref.Stop()
	_, err = asked.Await(within(t))
	require.ErrorIs(t, err, actor.ErrNoReply)
	require.ErrorIs(t, err, natsactor.ErrInDoubt)

	ref = dial("quiet", time.Hour)
	asked = actor.AskLater(ref, &sum{})
	came()
	ncs[1].Close()
	_, err = asked.Await(within(t))
	require.ErrorIs(t, err, natsactor.ErrInDoubt)
	require.ErrorContains(t, err, "connection closed")
	require.Error(t, ref.Wait(within(t)))
}
