package scope_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

type tree struct {
	name     string
	children []*tree
}

// grow makes a complete tree.
func grow(name string, width, depth int) *tree {
	t := &tree{name: name}
	for i := 0; i < width && depth > 0; i++ {
		t.children = append(t.children, grow(fmt.Sprintf("%s%d", name, i), width, depth-1))
	}
	return t
}

// All workers of a pool run a depth-first search, which ends at the first hit. Every subtree is a child of one scope.
func ExampleRun_search() {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()

	var found atomic.Pointer[tree]
	err := scope.Run(context.Background(), func(ctx context.Context, s *scope.Scope) error {
		var visit func(t *tree)
		visit = func(t *tree) {
			if t.name == "/20132" {
				found.Store(t)
				s.Cancel(nil) // cancels the other children
			}
			for _, sub := range t.children {
				s.Go(pool, func(context.Context) error { visit(sub); return nil })
			}
		}
		visit(grow("/", 4, 6))
		return nil
	})
	fmt.Println(found.Load().name, err)
	// Output: /20132 <nil>
}

func ExampleScope_Go() {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()

	err := fifo.Run(context.Background(), func(ctx context.Context) error {
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			s.Go(pool, func(ctx context.Context) error { return errors.New("the disk is full") })
			s.Go(suspend.Here(), func(ctx context.Context) error {
				return suspend.Sleep(ctx, time.Hour) // returns at once
			})
			return nil
		})
	})
	fmt.Println(err)
	// Output: the disk is full
}

func ExampleScope_OnRelease() {
	_ = scope.Run(context.Background(), func(ctx context.Context, s *scope.Scope) error {
		var moved func() bool
		for _, name := range []string{"database", "listener", "file"} {
			moved = s.OnRelease(func() { fmt.Println("close the", name) })
		}
		s.Go(nil, func(context.Context) error {
			fmt.Println("serve")
			return nil
		})
		moved() // another owner closes the file
		return nil
	})
	// Output:
	// serve
	// close the listener
	// close the database
}

func ExampleMap() {
	squares, err := scope.Map(context.Background(), suspend.Goroutines, []int{1, 2, 3}, func(_ context.Context, n int) (int, error) {
		return n * n, nil
	})
	fmt.Println(squares, err)
	// Output: [1 4 9] <nil>
}

// The loop gets results in the order in which the calls end: the calls send them to a channel, which is closed when all have
// ended. If a call fails, Run returns its error.
func ExampleMap_asTheyCome() {
	err := fifo.Run(context.Background(), func(ctx context.Context) error {
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			results, here := chanx.New[int](0), suspend.Here()
			s.Go(here, func(ctx context.Context) error {
				defer results.Close()
				_, err := scope.Map(ctx, scope.Limit(2, here), []int{3, 1, 2}, func(ctx context.Context, n int) (none struct{}, err error) {
					for range n {
						suspend.Yield() // stands for the work
					}
					return none, results.Send(ctx, n)
				})
				return err
			})
			for n, err := range results.All(ctx) {
				if err != nil {
					return err
				}
				fmt.Println(n)
			}
			s.Cancel(nil) // cancels the calls if a break has left the loop
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// 1
	// 3
	// 2
	// <nil>
}

func ExampleFirst() {
	mirror := func(name string, delay time.Duration) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return name, suspend.Sleep(ctx, delay) }
	}
	fastest, err := scope.First(context.Background(), suspend.Goroutines, mirror("far", time.Hour), mirror("near", time.Millisecond))
	fmt.Println(fastest, err)
	// Output: near <nil>
}
