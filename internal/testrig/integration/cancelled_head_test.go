package integration_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A line is an object with two waiters. The second waits only because the first does.
type line struct {
	first  func(ctx context.Context) error
	asOp   suspend.Op[struct{}] // performs first; not used if the object has no Op
	second func(ctx context.Context) error
	want   error              // the result of second
	cut    func(end func())   // ends the context of first; nil if a call of end is enough
	check  func(t *testing.T) // is called after all waits have ended
}

var lines = map[string]func(t *testing.T) line{
	"semaphore": func(t *testing.T) line {
		s := semaphore.New(2)
		require.True(t, s.TryAcquire(1))
		return line{
			first:  func(ctx context.Context) error { return s.Acquire(ctx, 2) },
			asOp:   s.AcquireOp(2),
			second: func(ctx context.Context) error { return s.Acquire(ctx, 1) },
			check:  func(t *testing.T) { s.Release(2); require.True(t, s.TryAcquire(2)) },
		}
	},
	"RWMutex": func(t *testing.T) line {
		m := new(mutex.RWMutex)
		require.True(t, m.TryRLock())
		return line{first: m.LockContext, asOp: m.LockOp(), second: m.RLockContext, check: func(t *testing.T) {
			m.RUnlock()
			m.RUnlock()
			require.True(t, m.TryLock())
		}}
	},
	"Barrier": func(*testing.T) line {
		b := latch.NewBarrier(3)
		wait := func(ctx context.Context) error { _, err := b.Wait(ctx); return err }
		return line{first: wait, second: wait, want: latch.ErrBroken, check: func(t *testing.T) {}}
	},
	"Limiter": func(t *testing.T) line {
		l := rate.NewLimiter(rate.Every(time.Hour), 2)
		require.True(t, l.Allow(1))
		return line{
			first:  func(ctx context.Context) error { return l.WaitN(ctx, 2) },
			asOp:   suspend.Map(l.WaitOp(2), func(time.Time, error) (struct{}, error) { return struct{}{}, nil }),
			second: l.Wait,
			check:  func(t *testing.T) { require.False(t, l.Allow(1)) },
		}
	},
	"lazy, the next in turn": func(*testing.T) line {
		begun, fail, failed := make(chan struct{}), make(chan struct{}), errors.New("failed")
		runs := 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			if runs++; runs == 1 {
				close(begun)
				<-fail
				return 0, failed
			}
			return 1, nil
		}, lazy.Restart)
		force := func(ctx context.Context) error { _, err := l.Force(ctx); return err }
		ctx, end := context.WithCancel(bg)
		runner := make(chan error)
		go func() { runner <- force(ctx) }()
		<-begun
		return line{
			first:  force,
			second: force,
			cut: func(endFirst func()) {
				end()
				close(fail) // now the first should run the function
				<-runner
				endFirst() // before it runs
			},
			check: func(t *testing.T) { require.Equal(t, 2, runs) },
		}
	},
}

// In each of these places the task f waits, and its scheduler does not run it again before resume is called.
var stuckPlaces = map[string]func(t *testing.T, f func(on suspend.Executor)) (resume func()){
	"a busy fifo": func(t *testing.T, f func(on suspend.Executor)) (resume func()) {
		waits, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			s := fifo.New(fifo.Options{StallAfter: -1})
			_ = s.Run(bg, func(context.Context) error {
				_ = s.Go(func() { f(s) })
				suspend.Yield()
				close(waits)
				<-goOn
				return nil
			})
		}()
		<-waits
		return func() { close(goOn); <-over }
	},
	"a loop whose executor has stopped": func(t *testing.T, f func(on suspend.Executor)) (resume func()) {
		e := new(stoppable)
		l := callback.New(e, callback.Options{Direct: true, StallAfter: -1})
		require.NoError(t, l.Go(func() { f(l) }))
		e.run() // the executor runs nothing after this
		return func() {
			e.goOn()
			require.NoError(t, l.Close())
		}
	},
}

// stoppable is an executor that runs functions only in its method run, until goOn is called.
type stoppable struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

func (e *stoppable) Execute(f func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue = append(e.queue, f); e.running {
		go e.run()
	}
	return nil
}

// run runs all queued functions, in order.
func (e *stoppable) run() {
	for {
		e.mu.Lock()
		if len(e.queue) == 0 {
			e.mu.Unlock()
			return
		}
		f := e.queue[0]
		e.queue = slices.Delete(e.queue, 0, 1)
		e.mu.Unlock()
		f()
	}
}

func (e *stoppable) goOn() {
	e.mu.Lock()
	e.running = true
	e.mu.Unlock()
	e.run()
}

var onlyCalls = map[string]bool{"Barrier": true, "lazy, the next in turn": true}

var headContexts = map[string]func() (context.Context, context.CancelFunc){
	"WithCancel": func() (context.Context, context.CancelFunc) {
		ctx, end := context.WithCancel(bg)
		return ctx, end
	},
	"cancel.New": schedtest.WithCancel,
	"a child of cancel.New": func() (context.Context, context.CancelFunc) {
		ctx, end := schedtest.WithCancel()
		ctx, _ = cancel.New(ctx)
		return ctx, end
	},
	"WithCancel of cancel.New": func() (context.Context, context.CancelFunc) {
		ctx, end := schedtest.WithCancel()
		ctx, stop := context.WithCancel(ctx)
		return ctx, func() { end(); stop() }
	},
}

// headWaits lists the ways in which the first waits. Each calls ended once, with its error.
var headWaits = map[string]func(l line, ctx context.Context, on suspend.Executor, ended func(error)){
	"a call": func(l line, ctx context.Context, _ suspend.Executor, ended func(error)) { ended(l.first(ctx)) },
	"a case of a Select": func(l line, ctx context.Context, _ suspend.Executor, ended func(error)) {
		var another mutex.RWMutex // this Op has an heir, too
		another.TryLock()
		_, err := suspend.Select(ctx, suspend.CaseOf(another.LockOp()), suspend.CaseOf(l.asOp))
		ended(err)
	},
	"a case beside a timer": func(l line, ctx context.Context, _ suspend.Executor, ended func(error)) {
		_, err := suspend.Select(ctx, suspend.CaseOf(l.asOp), suspend.CaseOf(suspend.After(time.Hour)))
		ended(err)
	},
	"a Then": func(l line, ctx context.Context, on suspend.Executor, ended func(error)) {
		suspend.Then(ctx, l.asOp, on, func(_ struct{}, err error) { ended(err) })
	},
}

// The first waiter is cancelled, but its scheduler is busy or has stopped, and does not run it. The second waiter must be resumed
// anyway. It runs on every scheduler in turn.
func TestACancelledWaiterOfAStuckSchedulerDelaysNobody(t *testing.T) {
	n := 0
	for name, open := range lines {
		for where, stuck := range stuckPlaces {
			for way, wait := range headWaits {
				for kind, newContext := range headContexts {
					if onlyCalls[name] && way != "a call" {
						continue
					}
					place := schedtest.All[n%len(schedtest.All)]
					n++
					t.Run(name+", "+way+", "+where+", "+kind+", "+place.Name, func(t *testing.T) {
						defer schedtest.Within(t, schedtest.Deadline)()
						on, closed := place.Open()
						defer closed()
						l := open(t)
						ctx, end := newContext()
						var err error
						resume := stuck(t, func(on suspend.Executor) { wait(l, ctx, on, func(e error) { err = e }) })
						begins, second := make(chan struct{}), make(chan error)
						require.NoError(t, on.Go(func() {
							close(begins)
							err := l.second(bg)
							go func() { second <- err }()
						}))
						<-begins // a loop may seem to wait before it returns from its system call
						schedtest.Quiet(t)
						if l.cut != nil {
							l.cut(end)
						} else {
							end()
						}
						require.ErrorIs(t, <-second, l.want)
						resume()
						require.ErrorIs(t, err, context.Canceled)
						l.check(t)
					})
				}
			}
		}
	}
}
