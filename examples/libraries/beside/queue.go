package beside

import (
	"context"

	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
)

// A queue holds jobs. The take method removes and returns the first job that fits. It waits until there is such a job, or until ctx ends.
type queue struct {
	mu      mutex.Mutex
	changed *cond.Cond
	jobs    []int
}

func newQueue() *queue {
	q := &queue{}
	q.changed = cond.New(&q.mu)
	return q
}

func (q *queue) put(job int) {
	q.changed.L.Lock()
	defer q.changed.L.Unlock()
	q.jobs = append(q.jobs, job)
	q.changed.Broadcast()
}

func (q *queue) take(ctx context.Context, fits func(job int) bool) (int, error) {
	if err := q.mu.LockContext(ctx); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	for {
		for i, job := range q.jobs {
			if fits(job) {
				q.jobs = append(q.jobs[:i], q.jobs[i+1:]...)
				return job, nil
			}
		}
		if err := q.changed.Wait(ctx); err != nil {
			return 0, err
		}
	}
}
