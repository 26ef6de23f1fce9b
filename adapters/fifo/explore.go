//go:build explore

package fifo

import "github.com/braidgo/braid/adapters/internal/runner"

// This file is for the model checker, which is outside adapters: the parts of a scheduler that other goroutines touch.
type (
	// An Item is a unit that is sent.
	Item = runner.Item
	// A Posting is a Runner without coroutines.
	Posting = runner.Posting
	// A Leased is a Runner that is taken from its tasks.
	Leased = runner.Leased
	// An Emulated is a coroutine of a Leased.
	Emulated = runner.Emulated
)

// NewLeased returns a Leased with this number of coroutines, all idle.
func NewLeased(coroutines int, careful bool) *Leased { return runner.NewLeased(coroutines, careful) }

// NewPosting returns a Posting with this number of tasks, all parked.
func NewPosting(tasks int) *Posting { return runner.NewPosting(tasks) }

// An Inbox is where a Runner is sent what others wake.
type Inbox struct{ runner.Inbox }

// Push reports whether the caller has to wake the Runner.
func (in *Inbox) Push(it *Item) bool { wake, _ := in.Inbox.Push(it); return wake }
