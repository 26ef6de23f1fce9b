package suspend_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/stretchr/testify/require"
)

func TestBlockingSuspendsOnlyTheTask(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		gate := make(chan struct{})
		_ = s.Go(func() { close(gate) }) // runs only if f blocks natively
		ran := false
		if err := suspend.Blocking(bg, func() { <-gate; ran = true }); err != nil || !ran {
			t.Errorf("Blocking = %v, ran = %v", err, ran)
		}
	})
}

func TestBlockingOffEveryTaskRunsHere(t *testing.T) {
	ran := false
	if err := suspend.Blocking(bg, func() { ran = true }); err != nil || !ran {
		t.Errorf("Blocking = %v, ran = %v", err, ran)
	}
}

func TestBlockingHandsPanicAndExitBack(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		func() {
			defer func() {
				if v := recover(); v != "boom" {
					t.Errorf("panic %v", v)
				}
			}()
			_ = suspend.Blocking(bg, func() { panic("boom") })
		}()
		exited, done := true, false
		_ = s.Go(func() {
			defer func() { done = true }()
			_ = suspend.Blocking(bg, runtime.Goexit)
			exited = false
		})
		for !done {
			suspend.Yield()
		}
		if !exited {
			t.Error("the task has survived the Goexit of its f")
		}
	})
}

func TestBlockingIsCancellableOnlyBeforeTheStart(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ctx, cancel := schedtest.WithCancel()
		ended := false
		err := suspend.Blocking(ctx, func() {
			cancel()
			turn := make(chan struct{})
			_ = s.Go(func() { close(turn) }) // would run after the caller if the call were cancelled
			<-turn
			ended = true
		})
		if err != nil || !ended {
			t.Errorf("Blocking = %v, ended = %v", err, ended)
		}
		if err := suspend.Blocking(ctx, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
			t.Errorf("Blocking with a done context = %v", err)
		}
	})
	t.Run("queued", func(t *testing.T) {
		defer schedtest.Within(t, schedtest.Deadline)()
		var started []func()
		ctx, cancel := context.WithCancel(bg)
		task := &blockTask{Task: sched.NewThread(), start: func(f func()) { started = append(started, f); cancel() }}
		suspend.Bind(task, func() {
			if err := suspend.Blocking(ctx, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
				t.Errorf("Blocking = %v", err)
			}
		})
		for _, f := range started {
			f() // f runs late
		}
		if len(started) != 1 {
			t.Errorf("%d handed to Block", len(started))
		}
	})
}

// A blockTask is a task on a scheduler with a Block of its own.
type blockTask struct {
	suspend.Task
	start func(f func())
}

func (b *blockTask) Spawner() suspend.Spawner { return b }
func (b *blockTask) Go(f func()) error        { return suspend.ErrClosed }
func (b *blockTask) Block(f func()) error     { b.start(f); return nil }

func TestSleep(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			start := time.Now()
			if err := suspend.Sleep(bg, 3*time.Millisecond); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d < 3*time.Millisecond {
				t.Errorf("slept %v", d)
			}
			ctx, cancel := context.WithTimeout(bg, time.Millisecond)
			defer cancel()
			if err := suspend.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sleep = %v", err)
			}
			if err := suspend.Sleep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sleep(0) with a done context = %v", err)
			}
			if err := suspend.Sleep(bg, -1); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestGoroutinesSpawnerRunsF(t *testing.T) {
	done := make(chan struct{})
	if err := suspend.Goroutines.Go(func() { close(done) }); err != nil {
		t.Fatal(err)
	}
	<-done
	if suspend.Here() != suspend.Goroutines {
		t.Error("Here on a plain goroutine")
	}
}

// A task's context may be used on goroutines, and Background in a task: a context does not carry the scheduler.
func TestContextIsForCancellationOnly(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var resumed atomic.Int32
		got := make(chan int, 1)
		resumer := make(chan suspend.Resumer[int], 1)
		go func() { // parks natively, because it is a goroutine
			v, _ := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
				resumer <- r
				return 0, false
			})
			resumed.Add(1)
			got <- v
		}()
		if !(<-resumer).Resume(5, nil) || <-got != 5 {
			t.Error("not resumed")
		}
		other := false
		_ = s.Go(func() { other = true })
		_, _ = suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
			_ = s.Go(func() { r.Resume(1, nil) })
			return 0, false
		})
		if !other {
			t.Error("the scheduler stood still")
		}
	})
}

// BlockingValue returns the result of its function and passes its panic on. If ctx has ended, it does not call the function.
func TestBlockingValue(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			v, err := suspend.BlockingValue(bg, func() (int, error) { return 3, io.EOF })
			if v != 3 || err != io.EOF {
				t.Errorf("%v, %v", v, err)
			}
			done, end := context.WithCancel(bg)
			end()
			if v, err := suspend.BlockingValue(done, func() (int, error) { return 3, nil }); v != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that is done: %v, %v", v, err)
			}
			defer func() {
				if v := recover(); v != "oops" {
					t.Errorf("recovered %v", v)
				}
			}()
			_, _ = suspend.BlockingValue(bg, func() (int, error) { panic("oops") })
		})
	})
}

// An unnamed wraps a Task, adds nothing, and has no Spawner of its own.
type unnamed struct{ suspend.Task }

func (u unnamed) Unwrap() suspend.Task { return u.Task }

// The methods Spawner and Yield of a wrapped Task must be found. Otherwise Go would leave the scheduler, a Select would not use
// the scheduler's seed, and a Yield would not run the other task.
func TestAWrapperHasWhatItWraps(t *testing.T) {
	var drawn [2][]uint64
	for i := range drawn {
		s := random.New(random.Options{Seed: 7})
		require.NoError(t, s.Run(bg, func(context.Context) error {
			suspend.Bind(unnamed{unnamed{suspend.Current()}}, func() {
				require.Equal(t, suspend.Spawner(s), suspend.Here())
				for range 3 {
					drawn[i] = append(drawn[i], suspend.Random().Uint64())
				}
				ran := false
				require.NoError(t, suspend.Here().Go(func() { ran = true }))
				for range 100 {
					suspend.Yield()
				}
				require.True(t, ran)
			})
			return nil
		}))
	}
	require.Equal(t, drawn[0], drawn[1])
}

// A nil Spawner means plain goroutines.
func TestWithinANilSpawner(t *testing.T) {
	if !suspend.Within(nil) || !suspend.Within(suspend.Goroutines) {
		t.Error("Within is false on a goroutine without a task")
	}
	schedtest.OnFIFO(t, func(*fifo.Scheduler) {
		if suspend.Within(nil) {
			t.Error("Within is true in a task of a fifo")
		}
	})
}
