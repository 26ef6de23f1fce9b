// Hang runs two callbacks on a thread like the main thread of a GUI toolkit. With native channels the thread deadlocks. With Braid it does
// not.
//
//	go run ./examples/hang
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/chanx"
)

// A mainThread runs one function after another, like the main thread of a GUI.
type mainThread chan func()

// Execute posts f to the main thread, as functions of GUI toolkits do.
func (m mainThread) Execute(f func()) error { m <- f; return nil }

func main() {
	fmt.Println("native:", native(200*time.Millisecond))
	fmt.Println("braid: ", braid(context.Background()))
}

// native returns the greeting, or "hangs" if no greeting arrives within patience.
func native(patience time.Duration) string {
	gui, greeting := make(mainThread, 8), make(chan string, 1)
	show := func(s string) { greeting <- s }
	replies := make(chan string)
	onClick := func() { show(<-replies) }             // blocks the only thread until a reply arrives
	onReply := func() { replies <- "hello" }          // must run on the same thread
	_, _ = gui.Execute(onClick), gui.Execute(onReply) // onClick blocks, so onReply never runs
	go func() {
		for f := range gui {
			f()
		}
	}()
	select {
	case s := <-greeting:
		return s
	case <-time.After(patience):
		return "hangs"
	}
}

func braid(ctx context.Context) string {
	gui, greeting := make(mainThread, 8), make(chan string, 1)
	show := func(s string) { greeting <- s }
	loop := callback.New(gui, callback.Options{}) // turns the main thread into a scheduler
	replies := chanx.New[string](0)
	onClick := func() { s, _ := replies.Recv(ctx); show(s) } // suspends the task, not the thread
	onReply := func() { _ = replies.Send(ctx, "hello") }
	_, _ = loop.Go(onClick), loop.Go(onReply)
	go func() {
		for f := range gui {
			f()
		}
	}()
	defer close(gui)
	defer loop.Close()
	return <-greeting
}
