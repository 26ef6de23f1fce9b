package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braidgo/braid/mutex"
)

func ExampleMutex_LockContext() {
	var m mutex.Mutex
	m.Lock()

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := m.LockContext(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// A wait for a short critical section is short, too, so it needs no context.
func ExampleMutex_Lock() {
	var m mutex.Mutex
	hits := map[string]int{}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			m.Lock()
			defer m.Unlock()
			hits["/"]++
		})
	}
	all.Wait()
	fmt.Println(hits)
	// Output: map[/:3]
}
