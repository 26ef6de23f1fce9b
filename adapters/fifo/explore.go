//go:build explore

package fifo

import "github.com/braidgo/braid/adapters/internal/coro"

// What follows is for the model checker, which stands outside adapters: the parts of a scheduler that other goroutines touch.
type (
	// An Inbox is where a Runner is sent what others wake.
	Inbox = coro.Inbox
	// An Item is what is sent.
	Item = coro.Item
	// A Posting is a Runner without coroutines.
	Posting = coro.Posting
)

// NewPosting returns a Posting with so many tasks, all parked.
func NewPosting(tasks int) *Posting { return coro.NewPosting(tasks) }
