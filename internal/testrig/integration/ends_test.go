package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// A closer is a scheduler with a Close.
type closer interface {
	suspend.Spawner
	Close() error
	Shutdown(ctx context.Context) error
}

// closers opens each scheduler that has a Close, by the name of its package.
var closers = map[string]func(t *testing.T) closer{
	"workstealing": func(*testing.T) closer { return workstealing.New(workstealing.Options{Workers: 2}) },
	"limited":      func(*testing.T) closer { return limited.New(2, limited.Options{}) },
	"eventloop": func(t *testing.T) closer {
		l, err := eventloop.New(eventloop.Options{Loops: 2})
		require.NoError(t, err)
		return l
	},
	"callback": func(t *testing.T) closer {
		p := workstealing.New(workstealing.Options{})
		t.Cleanup(func() { _ = p.Close() })
		return callback.New(p, callback.Options{Direct: true})
	},
	"stage": func(*testing.T) closer { return stage.NewPool("p", 2, nil) },
}

// The Close of a scheduler waits for every task, because no other function reports a task that has not ended. A Shutdown waits
// until its context ends, and a later Close continues the wait. Both refuse new tasks at once.
func TestSchedulersWaitAtTheirEnd(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, open := range closers {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			s := open(t)
			var begun, gate promise.Promise[int]
			ended := false
			require.NoError(t, s.Go(func() {
				_ = begun.Fill(1)
				_, _ = gate.Await(context.Background())
				ended = true
			}))
			_, _ = begun.Await(context.Background())
			require.ErrorIs(t, s.Shutdown(over), context.Canceled)
			require.ErrorIs(t, s.Go(func() { t.Error("ran") }), suspend.ErrClosed)
			require.ErrorIs(t, s.Shutdown(over), context.Canceled, "the task runs on")
			_ = gate.Fill(1)
			require.NoError(t, s.Close())
			require.True(t, ended)
			require.NoError(t, errors.Join(s.Shutdown(over), s.Shutdown(context.Background()), s.Close()), "nothing is left")
		})
		t.Run(name+"/waits", func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			s := open(t)
			n := 0
			require.NoError(t, s.Go(func() {
				for range 1000 {
					suspend.Yield()
					n++
				}
			}))
			require.NoError(t, s.Shutdown(context.Background()))
			require.Equal(t, 1000, n)
		})
	}
}

// Each closed object returns an error that names its package and matches suspend.ErrClosed. A refusal does not allocate.
func TestClosedNamesItself(t *testing.T) {
	bg := context.Background()
	nothing := func() {}
	refuses := map[string]func() error{}
	for name, open := range closers {
		s := open(t)
		require.NoError(t, s.Close())
		refuses[name] = func() error { return s.Go(nothing) }
	}
	refuses["p"], refuses["stage"] = refuses["stage"], nil // its error has the name of the pool
	delete(refuses, "stage")
	f, r := fifo.New(fifo.Options{}), random.New(random.Options{})
	ends := func(context.Context) error { return nil }
	require.NoError(t, errors.Join(f.Run(bg, ends), r.Run(bg, ends)))
	refuses["fifo"], refuses["random"] = func() error { return f.Go(nothing) }, func() error { return r.Go(nothing) }
	refuses["fifo: "], refuses["random: "] = func() error { return f.Run(bg, ends) }, func() error { return r.Run(bg, ends) }
	var w *simulation.World
	require.NoError(t, simulation.Run(func(_ context.Context, of *simulation.World) error { w = of; return nil }, simulation.Options{}).Err)
	refuses["simulation"] = func() error { return w.Go(nothing) }

	sem, ch, v, topic := semaphore.New(1), chanx.New[int](1), watch.New(1), broadcast.New[int]()
	sub := topic.Subscribe(1, broadcast.Wait)
	pool := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
	s := stage.New("orders", func(context.Context, int) (int, error) { return 1, nil }, stage.Options{})
	g := scope.Open(bg, scope.FirstError)
	require.NoError(t, errors.Join(sem.Close(), ch.Close(), v.Close(), topic.Close(), sub.Close(), pool.Close(), s.Close(), g.Close()))
	refuses["semaphore"], refuses["semaphore: "] = func() error { return sem.Acquire(bg, 1) }, sem.Close
	refuses["chanx"], refuses["chanx: "] = func() error { return ch.Send(bg, 1) }, ch.Close
	refuses["watch"], refuses["watch: "] = func() error { return v.Store(1) }, v.Close
	refuses["broadcast"], refuses["broadcast: "], refuses["broadcast: c"] = func() error { return topic.Publish(bg, 1) }, topic.Close, sub.Close
	refuses["respool"], refuses["respool: "] = func() error { _, err := pool.Acquire(bg); return err }, pool.Close
	refuses["orders: stage"] = func() error { return s.Submit(bg, 1) }
	refuses["scope"] = func() error {
		_, err := scope.Start(g, nil, func(context.Context) (int, error) { return 1, nil }).Await(bg)
		return err
	}

	in := actor.Open[int](bg, actor.Options[int]{})
	require.NoError(t, in.Close())
	refuses["actor"] = func() error { return in.Ref().Send(1) }
	ctx, session := fetch.Open(bg, fetch.Options{})
	src := fetch.Shared(fetch.ByKey("users", 1, func(context.Context, int) (int, error) { return 1, nil }, fetch.SourceOptions{}), 1)
	require.NoError(t, src.Close())
	_, err := src.Get(ctx, 1)
	require.EqualError(t, err, "users 1: fetch: the source is closed")
	require.NoError(t, session.Close())
	_, err = src.Get(ctx, 1)
	refuses["fetch"] = func() error { return err }

	for name, refuse := range refuses {
		err := refuse()
		require.ErrorIs(t, err, suspend.ErrClosed, name)
		require.True(t, strings.HasPrefix(err.Error(), strings.TrimSuffix(name, ": c")), "%q of %s", err, name)
		require.NotContains(t, err.Error(), "suspend", name)
		switch name {
		case "scope", "p", "simulation", "orders: stage": // these allocate the task before they refuse it
			continue
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = refuse() }), name)
	}
}
