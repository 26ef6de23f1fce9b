package callback_test

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// mainThread stands for a GUI toolkit that can only run a function on its thread.
type mainThread chan func()

func (m mainThread) Execute(f func()) error { m <- f; return nil }

func Example() {
	ctx := context.Background()
	gui := make(mainThread, 8)
	loop := callback.New(gui, callback.Options{})
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()

	var document mutex.Mutex // shared with a plain goroutine, which holds it at first
	_ = document.LockContext(ctx)
	words := promise.Go(ctx, pool, func(context.Context) (int, error) { return 1000, nil })

	// A task on the thread of the GUI has direct style. It suspends without blocking the thread.
	done := promise.Go(ctx, loop, func(ctx context.Context) (string, error) {
		if err := document.LockContext(ctx); err != nil {
			return "", err
		}
		defer document.Unlock()
		n, err := words.Await(ctx)
		return fmt.Sprintf("%d words", n), err
	})
	// A continuation runs on the thread of the GUI, too.
	suspend.Then(ctx, done.AwaitOp(), loop, func(label string, err error) {
		fmt.Println(label, err)
		go func() { _ = loop.Close(); close(gui) }()
	})

	go document.Unlock() // the goroutine unlocks the document
	for f := range gui { // the toolkit's own loop
		f()
	}
	// Output: 1000 words <nil>
}

// A toolkit that has quit runs nothing more, but reports no error. A Close alone would wait for ever.
func ExampleLoop_Abandon() {
	gui := make(mainThread, 8)
	loop := callback.New(gui, callback.Options{})
	_ = loop.Go(func() { fmt.Println("saved") })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := loop.Shutdown(ctx); err != nil {
		fmt.Println(err)
		loop.Abandon()
	}
	fmt.Println(loop.Close())
	// Output:
	// context deadline exceeded
	// saved
	// <nil>
}
