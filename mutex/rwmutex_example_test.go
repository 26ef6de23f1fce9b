package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

// Many tasks read a table, and few write to it.
func ExampleRWMutex() {
	var m mutex.RWMutex
	table := map[string]int{}
	ctx := context.Background()

	set := func(key string, v int) error {
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		defer m.Unlock()
		table[key] = v
		return nil
	}
	get := func(key string) (int, error) {
		if err := m.RLockContext(ctx); err != nil {
			return 0, err
		}
		defer m.RUnlock()
		return table[key], nil
	}

	_ = set("answer", 42)
	fmt.Println(get("answer"))
	// Output: 42 <nil>
}

func ExampleRWMutex_Lock() {
	var m mutex.RWMutex
	m.RLock()

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := m.LockContext(ctx) // m has a reader
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

func ExampleRWMutex_RLock() {
	var m mutex.RWMutex
	ctx := context.Background()
	_ = m.RLockContext(ctx)
	fmt.Println(m.RLockContext(ctx), m.TryLock()) // a second reader is admitted, a writer is not
	// Output: <nil> false
}

// A writer continues as a reader of the data that it has written.
func ExampleRWMutex_Downgrade() {
	var m mutex.RWMutex
	m.Lock()
	m.Downgrade()
	fmt.Println(m.TryRLock(), m.TryLock())
	// Output: true false
}

// RLockOp reads the table whose lock is free first.
func ExampleRWMutex_RLockOp() {
	ctx := context.Background()
	var a, b mutex.RWMutex
	_ = a.LockContext(ctx)

	readA, readB := suspend.CaseOf(a.RLockOp()), suspend.CaseOf(b.RLockOp())
	switch won, _ := suspend.Select(ctx, readA, readB); won {
	case readA:
		fmt.Println("a")
	case readB:
		fmt.Println("b")
	}
	// Output: b
}

// A write is dropped if the lock is not free in time.
func ExampleRWMutex_LockOp() {
	ctx := context.Background()
	var m mutex.RWMutex
	_ = m.RLockContext(ctx)

	write, timeout := suspend.CaseOf(m.LockOp()), suspend.CaseOf(suspend.After(time.Millisecond))
	switch won, _ := suspend.Select(ctx, write, timeout); won {
	case write:
		fmt.Println("written")
	case timeout:
		fmt.Println("given up")
	}
	// Output: given up
}
