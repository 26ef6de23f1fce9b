package fifo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// givesAway runs main in a Run of s that has given idle coroutines to the cache, after s had recognised their goroutines as its
// own. It returns when they are in the cache. The channel is closed when the Run has ended.
func givesAway(t *testing.T, s *fifo.Scheduler, main func()) (ended chan struct{}) {
	const tasks = 1700
	given, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := s.Run(bg, func(context.Context) error {
			begin, done := latch.New(1), latch.New(tasks)
			for i := range tasks {
				_ = s.Go(func() {
					_ = begin.Wait(bg)
					if i >= tasks-256 && i < tasks-192 { // a Run remembers 64 goroutines, and keeps the coroutines that end last
						for range 8 {
							_ = s.Execute(func() {})
						}
					}
					done.CountDown()
				})
			}
			suspend.Yield()
			begin.CountDown()
			_ = done.Wait(bg)
			suspend.Yield()
			close(given)
			main()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-given
	return ended
}

// crowd runs f in enough tasks of a Run for some of their coroutines to come from the cache.
func crowd(t *testing.T, f func()) {
	require.NoError(t, fifo.Run(bg, func(context.Context) error {
		begin := latch.New(1)
		for range 600 {
			if err := suspend.Here().Go(func() { _ = begin.Wait(bg); f() }); err != nil {
				return err
			}
		}
		suspend.Yield()
		begin.CountDown()
		return nil
	}))
}

// One Run gives a coroutine to the cache, and another Run takes it. Callbacks that its tasks submit to the first Run must not be
// lost.
func TestCallbacksFromACoroutineGivenAway(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s, over, called := fifo.New(fifo.Options{}), latch.New(1), 0
	ended := givesAway(t, s, func() { _ = over.Wait(bg) })
	crowd(t, func() {
		for range 100 {
			_ = s.Execute(func() { called++ })
		}
	})
	over.CountDown()
	<-ended
	require.Equal(t, 600*100, called)
}

// A value that its tasks send must not wake a task of the first Run on the wrong goroutine.
func TestValuesFromACoroutineGivenAway(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for range 3 { // repeats, because one round may miss a mistake
		valuesFromACoroutineGivenAway(t)
	}
}

func valuesFromACoroutineGivenAway(t *testing.T) {
	s, c, got := fifo.New(fifo.Options{}), chanx.New[int](0), 0
	ended := givesAway(t, s, func() {
		for range 4 {
			_ = s.Go(func() {
				for range c.All(bg) {
					got++
				}
			})
		}
	})
	crowd(t, func() {
		for range 30 {
			_ = c.Send(bg, 1)
		}
	})
	_ = c.Close()
	<-ended
	require.Equal(t, 600*30, got)
}
