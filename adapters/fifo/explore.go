//go:build explore

package fifo

import "github.com/braidgo/braid/adapters/internal/coro"

// What follows is for the model checker, which stands outside adapters: the parts of a Runner that other goroutines touch.
type (
	// An Inbox is where a Runner is sent what others wake.
	Inbox = coro.Inbox
	// An Item is what is sent.
	Item = coro.Item
	// A Posting is a Runner with one task and no coroutine.
	Posting = coro.Posting
)

// NewPosting returns a Posting whose task is parked.
func NewPosting(wake func()) *Posting { return coro.NewPosting(wake) }
