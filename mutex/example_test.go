package mutex_test

import (
	"context"
	"errors"
	"fmt"
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
