// Hang runs three lines on the main thread of a toolkit that has one: first in native Go, where the thread
// hangs, and then with Braid, where it does not.
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

// A mainThread runs one function after another, as the main thread of a GUI does.
type mainThread chan func()

// Execute posts f, which is all that toolkits offer.
func (m mainThread) Execute(f func()) error { m <- f; return nil }

func main() {
	fmt.Println("native:", native(200*time.Millisecond))
	fmt.Println("braid: ", braid(context.Background()))
}

// native returns the greeting, but "hangs" if there is none within the time patience.
func native(patience time.Duration) string {
	gui, greeting := make(mainThread, 8), make(chan string, 1)
	show := func(s string) { greeting <- s }
	replies := make(chan string)
	onClick := func() { show(<-replies) }             // the only thread waits here for a reply
	onReply := func() { replies <- "hello" }          // the same thread must deliver the reply
	_, _ = gui.Execute(onClick), gui.Execute(onReply) // nothing moves any more
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
	loop := callback.New(gui, callback.Options{}) // makes a scheduler of the main thread
	replies := chanx.New[string](0)
	onClick := func() { s, _ := replies.Recv(ctx); show(s) } // the task waits, but its thread goes on
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
