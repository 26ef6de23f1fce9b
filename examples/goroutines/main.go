// Goroutines uses Braid with plain goroutines only: a mutex, a condition variable and a select, each of which a context can cancel.
//
//	go run ./examples/goroutines
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

// A queue is a job queue that several goroutines share.
type queue struct {
	mu   mutex.Mutex
	more *cond.Cond // signalled for each job
	jobs []string
}

func newQueue() *queue {
	q := &queue{}
	q.more = cond.New(&q.mu)
	return q
}

func (q *queue) put(ctx context.Context, job string) error {
	if err := q.mu.LockContext(ctx); err != nil {
		return err
	}
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, job)
	q.more.Signal()
	return nil
}

func (q *queue) take(
	ctx context.Context,
) (string, error) {
	// sync.Mutex ignores contexts.
	err := q.mu.LockContext(ctx)
	if err != nil {
		return "", err
	}
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		// So does sync.Cond.
		err := q.more.Wait(ctx)
		if err != nil {
			return "", err
		}
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	return job, nil
}

// report waits for the lock, a message or a timeout, whichever comes first. The losing cases have no effect: the mutex is not locked, and
// the message is not received.
func report(ctx context.Context, mu *mutex.Mutex, inbox *chanx.Chan[string]) (string, error) {
	lock, message, late := suspend.CaseOf(mu.LockOp()), suspend.CaseOf(inbox.RecvOp()), suspend.CaseOf(suspend.After(time.Second))
	switch won, err := suspend.Select(ctx, lock, message, late); won {
	case lock:
		defer mu.Unlock()
		return "locked", nil
	case message:
		return message.Result()
	case late:
		return "nothing for a second", nil
	default:
		return "", err // ctx ended first
	}
}

func main() {
	q := newQueue()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := q.take(ctx)
	fmt.Println("take from an empty queue:", errors.Is(err, context.DeadlineExceeded))

	bg := context.Background()
	go func() { _ = q.put(bg, "job 1") }()
	job, err := q.take(bg)
	fmt.Println("take:", job, err)

	var held mutex.Mutex
	held.Lock()
	inbox := chanx.New[string](1)
	_ = inbox.Send(bg, "mail")
	what, err := report(bg, &held, inbox)
	fmt.Println("select:", what, err)
}
