package stage_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// flows has a stage, and flows that are made of stages. Each takes an int, waits for let, and returns twice the number; 7 fails.
func flows(let chan struct{}, reject bool) map[string]func() stage.Flow[int, int] {
	f := func(_ context.Context, n int) (int, error) {
		<-let
		if n == 7 {
			return 0, errOops
		}
		return 2 * n, nil
	}
	o := stage.Options{Width: 1, Queue: 1, Reject: reject}
	same := func(_ context.Context, n int) (int, error) { return n, nil }
	return map[string]func() stage.Flow[int, int]{
		"Stage": func() stage.Flow[int, int] {
			return stage.New("s", f, o)
		},
		"NewBatch": func() stage.Flow[int, int] {
			o := o
			o.Batch = 1
			s := stage.NewBatch("s", func(ctx context.Context, in, out []int) (err error) {
				out[0], err = f(ctx, in[0])
				return err
			}, o)
			return s
		},
		"Pipe": func() stage.Flow[int, int] {
			a, b := stage.New("a", f, o), stage.New("b", same, stage.Options{})
			return stage.Pipe(a, b)
		},
		"a long pipe on one pool": func() stage.Flow[int, int] {
			o := o
			o.Pool = stage.NewPool("p", 1, nil)
			narrow := stage.Options{Pool: o.Pool, Queue: stage.NoQueue}
			a, b, c, d := stage.New("a", f, o), stage.New("b", same, narrow), stage.New("c", same, narrow), stage.New("d", same, narrow)
			p := stage.Pipe(stage.Pipe(stage.Pipe(a, b), c), d)
			return p
		},
		"Replicate": func() stage.Flow[int, int] {
			r := stage.Replicate(2, func(int) uint64 { return 1 }, func(i int) *stage.Stage[int, int] { return stage.New(fmt.Sprint("r", i), f, o) })
			return r
		},
	}
}

// TestFlows checks the same rules for every kind of Flow.
func TestFlows(t *testing.T) {
	for name := range flows(nil, false) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				let := make(chan struct{})
				f := flows(let, true)[name]()
				done, cancel := context.WithCancel(bg)
				cancel()
				_, err := f.Do(done, 1)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, f.Submit(done, 1), context.Canceled)

				first, err := f.Begin(bg, 1)
				require.NoError(t, err)
				synctest.Wait()
				second, err := f.Begin(bg, 7)
				require.NoError(t, err)
				for _, err := range []error{f.Submit(bg, 3), f.TrySubmit(bg, 3)} {
					require.ErrorIs(t, err, stage.ErrFull)
				}
				_, err = f.Do(bg, 3)
				require.ErrorIs(t, err, stage.ErrFull)
				_, err = f.Begin(bg, 3)
				require.ErrorIs(t, err, stage.ErrFull)

				late, stop := context.WithTimeout(bg, time.Second)
				defer stop()
				close(let)
				v, err := first.Await(late)
				require.NoError(t, err)
				require.Equal(t, 2, v)
				_, err = second.Await(late)
				require.Equal(t, errOops, err)
				for i := range 5 { // the room is free when the result arrives
					v, err := f.Do(bg, i)
					require.NoError(t, err)
					require.Equal(t, 2*i, v)
				}
				require.NoError(t, f.Shutdown(bg))
				_, err = f.Do(bg, 1)
				require.ErrorIs(t, err, suspend.ErrClosed)
				for _, s := range stage.Stages(f) {
					holds(t, s.Stats())
				}
			})
			synctest.Test(t, func(t *testing.T) {
				let := make(chan struct{})
				f := flows(let, false)[name]()
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						v, err := f.Do(bg, 10+i)
						require.NoError(t, err)
						require.Equal(t, 20+2*i, v)
					})
				}
				synctest.Wait()
				require.ErrorIs(t, f.TrySubmit(bg, 1), stage.ErrFull)
				close(let)
				all.Wait()
				require.NoError(t, f.Shutdown(bg))
			})
		})
	}
}

// A Spawner that cannot be compared does not cause a panic.
func TestASpawnerThatCannotBeCompared(t *testing.T) {
	s := stage.New("s", double, stage.Options{On: spawners{suspend.Goroutines}})
	v, err := s.Do(bg, 2)
	require.NoError(t, err)
	require.Equal(t, 4, v)
	require.NoError(t, s.Shutdown(bg))
}

type spawners []suspend.Spawner

func (s spawners) Go(f func()) error { return s[0].Go(f) }

// An input is not kept after its task, whichever way the task took.
func TestNothingIsKept(t *testing.T) {
	type large struct{ _ [1 << 16]byte }
	s := stage.New("s", func(_ context.Context, p *large) (*large, error) { return p, nil }, stage.Options{Queue: 4})
	b := stage.NewBatch("b", func(_ context.Context, in, out []*large) error { copy(out, in); return nil }, stage.Options{Queue: 4})
	p := stage.Pipe(s, b)
	var gone sync.WaitGroup
	for range 10 {
		v := new(large)
		gone.Add(1)
		runtime.AddCleanup(v, func(struct{}) { gone.Done() }, struct{}{})
		require.NoError(t, p.Submit(bg, v))
	}
	collected := make(chan struct{})
	go func() { gone.Wait(); close(collected) }()
	for {
		runtime.GC()
		select {
		case <-collected:
			require.NoError(t, stage.Shutdown(bg, s, b))
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
