package watch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// A task follows the level of a log. When it wakes up it gets the latest level, and not each level in between.
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

// Two tasks count with Modify. A Load and a Store would lose an update.
func ExampleValue_Modify() {
	visits := watch.New(0)
	err := scope.Run(context.Background(), func(ctx context.Context, s *scope.Scope) error {
		for range 2 {
			s.Go(suspend.Goroutines, func(context.Context) error {
				for range 100 {
					if _, err := visits.Modify(func(n int) int { return n + 1 }); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	fmt.Println(visits.Load().Value, err)
	// Output: 200 <nil>
}

// A task waits until a queue is short, or until it is cancelled.
func ExampleValue_UntilOp() {
	length := watch.New(12)
	go func() {
		for length.Load().Value > 0 {
			_, _ = length.Modify(func(n int) int { return n - 1 })
		}
	}()
	short := suspend.CaseOf(length.UntilOp(func(n int) bool { return n < 3 }))
	late := suspend.CaseOf(suspend.After(time.Minute))
	switch won, err := suspend.Select(context.Background(), short, late); won {
	case short:
		fmt.Println(short.Value() < 3, err)
	case late:
		fmt.Println("give up")
	}
	// Output: true <nil>
}

func ExampleValue_ChangedOp() {
	leader := watch.New("a")
	go func() { _ = leader.Store("b") }()
	now, err := suspend.Do(context.Background(), leader.ChangedOp(0))
	fmt.Println(now.Value, now.Version, err)
	// Output: b 1 <nil>
}
