package suspend_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/stretchr/testify/require"
)

// A drawn scheduler counts its random numbers.
type drawn struct {
	suspend.Spawner
	n int
}

func (d *drawn) Uint64() uint64 { d.n++; return uint64(d.n) }

// A moving coroutine is used by one scheduler after another.
type moving struct {
	suspend.Task
	on *drawn
}

func (m *moving) Spawner() suspend.Spawner { return m.on }

// A kept coroutine may run a task of another scheduler next. That task uses the random numbers of its own scheduler from its
// first choice on. Otherwise a simulation would depend on the tasks before it.
func TestTheNextTaskDrawsFromItsScheduler(t *testing.T) {
	first, second := &drawn{}, &drawn{}
	m := &moving{sched.NewThread(), first}
	bound, entered := suspend.Enter(m)
	defer entered.Exit()
	choose := func() { // a choice of two uses one bit of a number; a choice of three uses a whole number
		ready := suspend.OpOf[int](atOnce{})
		for _, ops := range [][]suspend.Op[int]{{ready, ready}, {ready, ready, ready}} {
			_, err := suspend.Do(bg, suspend.Choose(ops...))
			require.NoError(t, err)
		}
	}
	choose()
	require.Equal(t, 2, first.n)
	bound.TaskEnded()
	m.on = second
	choose()
	require.Equal(t, 2, first.n)
	require.Equal(t, 2, second.n)
}

// An atOnce is a level that is always ready.
type atOnce struct{}

func (atOnce) Guard() *suspend.Guard        { return nil }
func (atOnce) Try() (int, bool, error)      { return 1, true, nil }
func (atOnce) Enqueue(suspend.Resumer[int]) {}
func (atOnce) Remove(suspend.Resumer[int])  {}

// An error ends only its own wait. A Sleep that ended with ErrClosed must not make the task's next Sleep return ErrClosed.
func TestAnErrorIsOfOneWait(t *testing.T) {
	var resume atomic.Pointer[suspend.Resumer[struct{}]]
	for name, wait := range map[string]func(ctx context.Context) error{
		"Suspend": func(ctx context.Context) error {
			_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
				resume.Store(&r)
				return struct{}{}, false
			})
			return err
		},
		"Wait": func(ctx context.Context) error {
			_, err := suspend.Wait[struct{}](ctx, &waitsFor{resume: &resume})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				schedtest.Run(t, s, func() {
					for _, want := range []error{suspend.ErrClosed, nil, suspend.ErrClosed, nil} {
						go func() {
							var r *suspend.Resumer[struct{}]
							schedtest.Eventually(t, "it waits", func() bool { r = resume.Swap(nil); return r != nil })
							r.Resume(struct{}{}, want)
						}()
						require.Equal(t, want, wait(bg))
					}
				})
			})
		})
	}
}

// A waitsFor is a Source that gives the test the Resumer of its waiter.
type waitsFor struct {
	guard  suspend.Guard
	resume *atomic.Pointer[suspend.Resumer[struct{}]]
}

func (w *waitsFor) Guard() *suspend.Guard                    { return &w.guard }
func (w *waitsFor) Try() (none struct{}, ok bool, err error) { return none, false, nil }
func (w *waitsFor) Enqueue(r suspend.Resumer[struct{}])      { w.resume.Store(&r) }
func (w *waitsFor) Remove(suspend.Resumer[struct{}])         {}
