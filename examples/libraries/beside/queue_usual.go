package beside

import (
	"context"
	"sync"
)

type queueUsual struct {
	mu      sync.Mutex
	changed *sync.Cond
	jobs    []int
}

func newQueueUsual() *queueUsual {
	q := &queueUsual{}
	q.changed = sync.NewCond(&q.mu)
	return q
}

func (q *queueUsual) put(job int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, job)
	q.changed.Broadcast()
}

func (q *queueUsual) take(ctx context.Context, fits func(job int) bool) (int, error) {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for i, job := range q.jobs {
			if fits(job) {
				q.jobs = append(q.jobs[:i], q.jobs[i+1:]...)
				return job, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		q.changed.Wait()
	}
}
