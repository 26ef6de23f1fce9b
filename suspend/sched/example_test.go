package sched_test

import (
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A logged scheduler prints a line for each task.
type logged struct{ suspend.Spawner }

func (l logged) Go(f func()) error {
	fmt.Println("a task starts")
	return l.Spawner.Go(f)
}

// Unwrap lets suspend.As find the capabilities of the wrapped scheduler.
func (l logged) Unwrap() suspend.Spawner { return l.Spawner }

func Example() {
	s := logged{fifo.New(fifo.Options{})}
	_, random := suspend.As[sched.Rand](s)
	_, holds := suspend.As[sched.Holder](s)
	_, watches := suspend.As[sched.Watcher](s)
	fmt.Println("fifo has random numbers:", random, "- stays open for waiters:", holds, "- watches contexts:", watches)
	// Output: fifo has random numbers: true - stays open for waiters: true - watches contexts: false
}
