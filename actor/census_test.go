package actor_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// The census reports a cycle of Asks over two schedulers as a possible deadlock, until one of its actors is killed. An Ask that
// waits behind the cycle is not part of it.
func TestCensusNamesACycleOfAsks(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer census.Start(census.Options{})()
	p := workstealing.New(workstealing.Options{Workers: 2})
	defer p.Close()
	f := fifo.New(fifo.Options{})
	ctx, cancel := context.WithCancel(bg)
	var runs sync.WaitGroup
	runs.Go(func() { _ = f.Run(ctx, func(ctx context.Context) error { return suspend.Sleep(ctx, time.Hour) }) })
	defer runs.Wait()
	defer cancel()

	const n = 3
	refs := make([]actor.Ref[any], n)
	asks := func(to int) func(context.Context, *actor.Self[any]) error {
		return func(ctx context.Context, self *actor.Self[any]) error {
			return self.React(func(any) error {
				_, err := actor.Ask(ctx, refs[to], &get{})
				return err
			})
		}
	}
	for i, on := range []suspend.Spawner{p, f, p} {
		refs[i] = actor.Spawn(ctx, on, asks((i+1)%n), actor.Options[any]{Name: string(rune('a' + i))})
	}
	for _, r := range refs {
		require.NoError(t, r.Send("go"))
	}
	behind := actor.Spawn(ctx, p, asks(0), actor.Options[any]{})
	require.NoError(t, behind.Send("go"))

	var s census.Snapshot
	schedtest.Eventually(t, "a cycle, and an Ask behind it", func() bool {
		s = census.Take()
		return len(s.Deadlocks) > 0 && s.Deadlocks[0].Behind > 0
	})
	require.Len(t, s.Deadlocks, 1)
	d := s.Deadlocks[0]
	require.Len(t, d.Cycle, n)
	require.True(t, d.Possible, "another goroutine may reply")
	for _, l := range d.Cycle {
		require.Equal(t, "actor.Ask", l.Waits.Operation)
		require.True(t, strings.HasPrefix(l.For, "actor.Request"), l.For)
		require.Contains(t, l.Waits.At.String(), "census_test.go")
	}
	require.Equal(t, n, strings.Count(s.String()[:strings.Index(s.String(), "\nwaiting")], "must reply"), s.String())
	require.Contains(t, s.String(), `actor "a", must reply`)
	schedulers := ""
	for _, l := range d.Cycle {
		schedulers += l.Task
	}
	require.Contains(t, schedulers, "fifo")
	require.Contains(t, schedulers, "workstealing")

	refs[1].Kill(errOops)
	for len(s.Deadlocks) > 0 {
		s = census.Take()
	}
	for _, r := range append(slices.Clone(refs), behind) {
		_ = r.Wait(bg)
	}
}

// The census names the actor that must reply to an Ask. While that actor computes, there is no deadlock.
func TestCensusNamesWhoHasToAnswer(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer census.Start(census.Options{})()
	p := workstealing.New(workstealing.Options{Workers: 1})
	defer p.Close()
	computes, goOn := make(chan struct{}), make(chan struct{})
	ref := actor.Spawn(bg, p, func(_ context.Context, self *actor.Self[*get]) error {
		return self.React(func(q *get) error {
			close(computes)
			<-goOn
			q.Reply(7)
			return nil
		})
	}, actor.Options[*get]{})
	var asker sync.WaitGroup
	asker.Go(func() {
		v, err := actor.Ask(bg, ref, &get{})
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
	<-computes
	s := census.Take()
	for !strings.Contains(s.String(), "must reply") {
		s = census.Take()
	}
	require.Empty(t, s.Deadlocks)
	i := slices.IndexFunc(s.Tasks, func(x census.Task) bool { return x.Waits != nil && x.Waits.Operation == "actor.Ask" })
	require.GreaterOrEqual(t, i, 0)
	require.Contains(t, s.Tasks[i].Waits.For[0].Holders[0].Task, "workstealing")
	for _, x := range s.Tasks {
		require.Empty(t, x.Holds, "an actor may have to answer thousands")
	}
	close(goOn)
	asker.Wait()
}
