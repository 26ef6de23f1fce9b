package beside

import (
	"container/heap"
	"context"

	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A workers runs jobs in n tasks, the most urgent job first.
type workers struct {
	tasks   *scope.Group
	mu      mutex.Mutex
	changed *cond.Cond
	jobs    jobs
	closed  bool
}

func newWorkers(ctx context.Context, on suspend.Spawner, n int) *workers {
	w := &workers{tasks: scope.Open(ctx, scope.FirstError)}
	w.changed = cond.New(&w.mu)
	for range n {
		_ = w.tasks.Go(on, w.work)
	}
	return w
}

func (w *workers) submit(ctx context.Context, urgency int, run func(ctx context.Context)) error {
	if err := w.mu.LockContext(ctx); err != nil {
		return err
	}
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	heap.Push(&w.jobs, job{urgency, run})
	w.changed.Signal()
	return nil
}

func (w *workers) work(ctx context.Context) error {
	for {
		run, err := w.next(ctx)
		if err != nil || run == nil {
			return err
		}
		run(ctx)
	}
}

func (w *workers) next(ctx context.Context) (func(ctx context.Context), error) {
	if err := w.mu.LockContext(ctx); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	for len(w.jobs) == 0 && !w.closed {
		if err := w.changed.Wait(ctx); err != nil {
			return nil, err
		}
	}
	if len(w.jobs) == 0 {
		return nil, nil
	}
	return heap.Pop(&w.jobs).(job).run, nil
}

// shutdown waits until the queued jobs have run. If ctx ends first, shutdown cancels the remaining jobs.
func (w *workers) shutdown(ctx context.Context) error {
	w.changed.L.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.changed.L.Unlock()
	return w.tasks.Shutdown(ctx)
}
