package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braidgo/braid/mutex"
)

func ExampleMutex_Lock() {
	var m mutex.Mutex
	_ = m.Lock(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := m.Lock(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// A short critical section needs no context: its wait is as short.
func ExampleMutex_With() {
	var m mutex.Mutex
	hits := map[string]int{}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { m.With(func() { hits["/"]++ }) })
	}
	all.Wait()
	fmt.Println(hits)
	// Output: map[/:3]
}
