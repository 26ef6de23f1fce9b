package beside

import (
	"container/heap"
	"context"
	"sync"
)

type workersUsual struct {
	ctx     context.Context
	end     context.CancelFunc
	tasks   sync.WaitGroup
	mu      sync.Mutex
	changed *sync.Cond
	jobs    jobs
	closed  bool
}

func newWorkersUsual(ctx context.Context, n int) *workersUsual {
	w := new(workersUsual)
	w.ctx, w.end = context.WithCancel(ctx)
	w.changed = sync.NewCond(&w.mu)
	context.AfterFunc(w.ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})
	for range n {
		w.tasks.Go(w.work)
	}
	return w
}

func (w *workersUsual) submit(_ context.Context, urgency int, run func(ctx context.Context)) error {
	w.mu.Lock() // this wait cannot be cancelled
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	heap.Push(&w.jobs, job{urgency, run})
	w.changed.Signal()
	return nil
}

func (w *workersUsual) work() {
	for {
		run := w.next()
		if run == nil {
			return
		}
		run(w.ctx)
	}
}

func (w *workersUsual) next() func(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.jobs) == 0 && !w.closed && w.ctx.Err() == nil {
		w.changed.Wait()
	}
	if len(w.jobs) == 0 || w.ctx.Err() != nil {
		return nil
	}
	return heap.Pop(&w.jobs).(job).run
}

func (w *workersUsual) shutdown(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.tasks.Wait()
	}()
	select {
	case <-ended:
		w.end()
		return nil
	case <-ctx.Done():
	}
	w.end()
	<-ended
	return ctx.Err()
}
