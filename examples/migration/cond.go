package migration

import (
	"context"
	"sync"

	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
)

// condBefore is a queue on sync.Cond. Its take ends with the context, by an AfterFunc that wakes all waiters.
type condBefore struct {
	mu       sync.Mutex
	notEmpty *sync.Cond
	jobs     []int
}

func newCondBefore() *condBefore {
	q := &condBefore{}
	q.notEmpty = sync.NewCond(&q.mu)
	return q
}

func (q *condBefore) put(job int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, job)
	q.notEmpty.Signal()
}

func (q *condBefore) take(ctx context.Context) (int, error) {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.notEmpty.Broadcast() // wakes all to end one
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		if err := ctx.Err(); err != nil {
			q.notEmpty.Signal() // the wake-up may have been another's
			return 0, err
		}
		q.notEmpty.Wait()
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	return job, nil
}

type condAfter struct {
	mu       mutex.Mutex
	notEmpty *cond.Cond
	jobs     []int
}

func newCondAfter() *condAfter {
	q := &condAfter{}
	q.notEmpty = cond.New(q.mu.Locker())
	return q
}

func (q *condAfter) put(job int) {
	l := q.mu.Locker() // Lock without a context and without an error
	l.Lock()
	defer l.Unlock()
	q.jobs = append(q.jobs, job)
	q.notEmpty.Signal()
}

func (q *condAfter) take(ctx context.Context) (int, error) {
	if err := q.mu.Lock(ctx); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		if err := q.notEmpty.Wait(ctx); err != nil {
			return 0, err // the lock is held again, and no signal is used up
		}
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	return job, nil
}
