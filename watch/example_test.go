package watch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// A task follows the level of a log. It has the latest level when it wakes, and not each in between.
func ExampleValue_Changed() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		level := watch.New("info")
		err := suspend.Here().Go(func() {
			var err error
			for now := level.Load(); err == nil; now, err = level.Changed(ctx, now.Version) {
				fmt.Println("log from", now.Value)
			}
			fmt.Println(err)
		})
		suspend.Yield()
		for _, l := range []string{"debug", "warning"} {
			_ = level.Store(l)
		}
		suspend.Yield()
		_ = level.Close()
		return err
	})
	// Output:
	// log from info
	// log from debug
	// log from warning
	// watch: closed
}

// An event that can be reset is a watched bool.
func ExampleValue_Until() {
	ready := watch.New(false)
	go func() { _ = ready.Store(true) }()
	set, err := ready.Until(context.Background(), func(set bool) bool { return set })
	fmt.Println(set, err)
	_ = ready.Store(false)
	late, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	set, err = ready.Until(late, func(set bool) bool { return set })
	fmt.Println(set, err)
	// Output:
	// true <nil>
	// false context deadline exceeded
}

func ExampleValue_ChangedOp() {
	leader := watch.New("a")
	go func() { _ = leader.Store("b") }()
	now, err := suspend.Do(context.Background(), leader.ChangedOp(0))
	fmt.Println(now.Value, now.Version, err)
	// Output: b 1 <nil>
}
