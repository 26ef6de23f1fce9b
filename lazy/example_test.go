package lazy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

func ExampleLazy_Force() {
	config := lazy.New(func(ctx context.Context) (string, error) {
		fmt.Println("reading the file")
		return "verbose", nil
	}, lazy.Restart)

	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	modes, err := scope.Map(context.Background(), pool, make([]int, 3), func(ctx context.Context, _ int) (string, error) {
		return config.Force(ctx)
	})
	fmt.Println(modes, err)
	// Output:
	// reading the file
	// [verbose verbose verbose] <nil>
}

// If a server does not answer, the next call asks again.
func ExampleMode_retry() {
	asked := 0
	config := lazy.New(func(ctx context.Context) (string, error) {
		if asked++; asked < 3 {
			return "", fmt.Errorf("attempt %d: no answer", asked)
		}
		return "verbose", nil
	}, lazy.Retry)
	for range 4 {
		fmt.Println(config.Force(context.Background()))
	}
	// Output:
	//  attempt 1: no answer
	//  attempt 2: no answer
	// verbose <nil>
	// verbose <nil>
}

func ExampleErrRecursive() {
	var chicken, egg *lazy.Lazy[int]
	chicken = lazy.New(func(ctx context.Context) (int, error) { return egg.Force(ctx) }, lazy.Restart)
	egg = lazy.New(func(ctx context.Context) (int, error) { return chicken.Force(ctx) }, lazy.Restart)
	_, err := egg.Force(context.Background())
	fmt.Println(errors.Is(err, lazy.ErrRecursive))
	// Output: true
}

func ExampleLazy_ValueOp() {
	answer := lazy.New(func(context.Context) (int, error) { return 42, nil }, lazy.Restart)
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(func() { _, _ = answer.Force(ctx) })

		value, quit := suspend.CaseOf(answer.ValueOp()), suspend.CaseOf(suspend.Done(ctx))
		switch won, err := suspend.Select(ctx, value, quit); won {
		case value:
			fmt.Println("somebody found", value.Value())
		case quit:
			fmt.Println("nobody asked")
		case nil:
			return err
		}
		return nil
	})
	// Output: somebody found 42
}

func ExampleLazy_Value() {
	l := lazy.New(func(context.Context) (int, error) { return 42, nil }, lazy.Restart)
	_, ok, _ := l.Value()
	fmt.Println(ok)
	_, _ = l.Force(context.Background())
	v, ok, err := l.Value()
	fmt.Println(v, err, ok)
	// Output:
	// false
	// 42 <nil> true
}

// A cache loads each key once. If the task that loads is cancelled, the next waiting task takes over.
func Example_cache() {
	var users sync.Map // the values are *lazy.Lazy[string]
	user := func(ctx context.Context, id int) (string, error) {
		l, _ := users.LoadOrStore(id, lazy.New(func(context.Context) (string, error) {
			fmt.Println("load", id)
			return fmt.Sprint("user ", id), nil
		}, lazy.Restart))
		return l.(*lazy.Lazy[string]).Force(ctx)
	}
	for _, id := range []int{1, 2, 1} {
		fmt.Println(user(context.Background(), id))
	}
	// Output:
	// load 1
	// user 1 <nil>
	// load 2
	// user 2 <nil>
	// user 1 <nil>
}
